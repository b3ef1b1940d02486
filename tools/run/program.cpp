// program: fork, redirect, exec, wait.
#include "program.h"

#include <kiln/base/error.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace kiln::cli {

std::string variable(const char *name) {
  for (char **entry = environ; *entry; ++entry)
    if (std::strncmp(*entry, name, std::strlen(name)) == 0 &&
        (*entry)[std::strlen(name)] == '=')
      return *entry + std::strlen(name) + 1;
  return "";
}

std::string find_in_path(const std::string &name) {
  if (name.find('/') != std::string::npos)
    return name;
  std::string path = variable("PATH");
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0 &&
        !std::filesystem::is_directory(candidate))
      return candidate;
    at = end + 1;
  }
  return "";
}

/// In the child: let a stream be that file.
static void redirect(int stream, const std::string &path) {
  if (path.empty())
    return;
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, stream) < 0)
    _exit(static_cast<int>(ExitStatus::machine));
  close(file);
}

/// The program that runs, or its group (negative), for signal handlers.
static volatile pid_t target = 0;

/// What a program gets to end in order; together it is less than a second.
static constexpr itimerval a_moment = {{}, {.tv_sec = 0, .tv_usec = 800'000}},
                           no_time = {};

extern "C" {
static void kiln_pass_on(int signal) {
  int failure = errno;
  kill(target, signal);
  if (signal == SIGTERM)
    setitimer(ITIMER_REAL, &a_moment, nullptr);
  errno = failure;
}
static void kiln_time_is_up(int) {
  int failure = errno;
  kill(target, SIGKILL);
  errno = failure;
}
}

static constexpr int passed_on[] = {SIGTERM, SIGHUP, SIGINT};

/// Whether this process owns its terminal, whose signals reach the program by
/// themselves then.
static bool is_in_foreground() {
  return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/// In the child: what it begins with, but for `mask` as every program has it.
/// It does not outlive `parent`.
static void become_program(pid_t parent, bool has_group, const sigset_t &mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(static_cast<int>(ExitStatus::machine));
  if (has_group)
    setpgid(0, 0);
  for (int signal : {SIGPIPE, SIGXFSZ}) // which main ignores
    std::signal(signal, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

/// Wait for it; signals reach it until it has ended.
static int wait_for(pid_t child, bool has_group, const sigset_t &mask) {
  if (has_group)
    setpgid(child, child); // whoever is first
  target = has_group ? -child : child;
  struct sigaction action{}, before[std::size(passed_on)];
  for (std::size_t i = 0; i < std::size(passed_on); ++i) {
    // Of its foreground the terminal tells the program itself.
    bool is_told = !has_group && passed_on[i] == SIGINT;
    action.sa_handler = is_told ? SIG_IGN : kiln_pass_on;
    sigaction(passed_on[i], &action, &before[i]);
  }
  action.sa_handler = kiln_time_is_up;
  sigaction(SIGALRM, &action, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  setitimer(ITIMER_REAL, &no_time, nullptr);
  for (std::size_t i = 0; i < std::size(passed_on); ++i)
    sigaction(passed_on[i], &before[i], nullptr);
  return status;
}

int run_program(const std::string &path, const std::vector<std::string> &words,
                const std::string &out, const std::string &error) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  sigset_t signals, before;
  sigemptyset(&signals);
  for (int signal : passed_on)
    sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  bool has_group = !is_in_foreground();
  pid_t parent = getpid(), child = fork();
  if (child < 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    throw RuntimeError(
        fmt::format("{} was not started: {}", path, std::strerror(errno)));
  }
  if (child == 0) {
    become_program(parent, has_group, before);
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, error);
    execv(path.c_str(), arguments.data());
    std::fprintf(stderr, "kiln: error: %s cannot be run: %s\n", path.c_str(),
                 std::strerror(errno));
    _exit(static_cast<int>(ExitStatus::refused));
  }
  return wait_for(child, has_group, before);
}

} // namespace kiln::cli
