// Process: run a program to its end and keep what it says.
//
// posix_spawn rather than fork: the caller may be a large process with many
// threads, where a fork copies page tables and may not allocate before exec.
#include "ptx/tools/Process.h"

#include "support/Error.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace kiln {

using Clock = std::chrono::steady_clock;

namespace {

/// The two ends of a pipe; what is still open is closed at the end.
struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      runtimeError("cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
  void closeEnd(int which) {
    if (ends[which] >= 0)
      close(ends[which]);
    ends[which] = -1;
  }
};

/// posix_spawn's two option objects.
struct SpawnOptions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

/// A started program. Whatever way its owner leaves, it is ended and waited
/// for, so that neither a runaway nor a zombie stays behind.
struct Child {
  pid_t id;
  bool ended = false;
  int status = 0;

  ~Child() {
    if (ended)
      return;
    kill(-id, SIGKILL);
    while (waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
  }
  /// Has it ended? Does not wait.
  bool poll() {
    ended = ended || waitpid(id, &status, WNOHANG) == id;
    return ended;
  }
};

} // namespace

/// Start `command` in a process group of its own, its output into `pipe`.
static pid_t start(const std::vector<std::string> &command, const Pipe &pipe) {
  SpawnOptions options;
  posix_spawn_file_actions_addopen(&options.actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&options.actions, pipe.ends[1],
                                   STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&options.actions, pipe.ends[1],
                                   STDERR_FILENO);
  posix_spawnattr_setflags(&options.attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&options.attributes, 0);

  std::vector<char *> arguments;
  for (const std::string &word : command)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);

  pid_t id = 0;
  int error = posix_spawn(&id, command.front().c_str(), &options.actions,
                          &options.attributes, arguments.data(), environ);
  if (error != 0)
    runtimeError("cannot run '{}': {}", command.front(), std::strerror(error));
  return id;
}

/// Append what the pipe has until its other end is closed; false: `deadline`
/// came first.
static bool readToEnd(int from, Clock::time_point deadline, std::string &text) {
  char buffer[16384];
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd waiting{from, POLLIN, 0};
    int ready = poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready <= 0)
      continue;
    ssize_t got = read(from, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

/// Wait for the child itself; false: `deadline` came first. A program may close
/// its output and go on, so the end of the pipe is not the end of the program.
static bool waitForEnd(Child &child, Clock::time_point deadline) {
  while (!child.poll()) {
    if (Clock::now() >= deadline)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

ProcessResult runProcess(const std::vector<std::string> &command,
                         std::chrono::milliseconds limit) {
  Clock::time_point deadline = Clock::now() + limit;
  Pipe pipe;
  Child child{start(command, pipe)};
  pipe.closeEnd(1);

  ProcessResult result;
  if (!readToEnd(pipe.ends[0], deadline, result.output) ||
      !waitForEnd(child, deadline))
    runtimeError("'{}' was still running after {} ms and was stopped",
                 command.front(), limit.count());
  if (WIFSIGNALED(child.status))
    runtimeError("'{}' was ended by signal {} ({}); it had said: {}",
                 command.front(), WTERMSIG(child.status),
                 strsignal(WTERMSIG(child.status)),
                 result.output.empty() ? "nothing" : result.output);
  result.exitCode = WEXITSTATUS(child.status);
  return result;
}

} // namespace kiln
