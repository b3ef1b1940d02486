// program: fork, redirect, exec, wait.
#include "program.h"

#include <kiln/base/error.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
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

int run_program(const std::string &path, const std::vector<std::string> &words,
                const std::string &out, const std::string &error) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0)
    throw RuntimeError(
        fmt::format("{} was not started: {}", path, std::strerror(errno)));
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, error);
    execv(path.c_str(), arguments.data());
    std::fprintf(stderr, "kiln: error: %s cannot be run: %s\n", path.c_str(),
                 std::strerror(errno));
    _exit(static_cast<int>(ExitStatus::refused));
  }
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

} // namespace kiln::cli
