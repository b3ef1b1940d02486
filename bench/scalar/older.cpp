// older: two pipes.
#include "older.h"

#include <kiln/base/error.h>

#include <cinttypes>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace scalar {

Older::Older(const std::string &path) {
  int to[2], from[2];
  if (access(path.c_str(), X_OK) != 0 || pipe(to) != 0 || pipe(from) != 0)
    throw kiln::RuntimeError(path + " cannot be run");
  // Where it ends early, the write shall fail instead of ending this process.
  std::signal(SIGPIPE, SIG_IGN);
  process_ = fork();
  if (process_ == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (int end : {to[0], to[1], from[0], from[1]})
      close(end);
    execl(path.c_str(), path.c_str(), "--serve", nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  requests_ = fdopen(to[1], "w");
  answers_ = fdopen(from[0], "r");
}

Older::~Older() {
  std::fclose(requests_);
  std::fclose(answers_);
  waitpid(process_, nullptr, 0);
}

Sample Older::simulate(const Case &one, const Setting &setting) {
  std::fprintf(requests_, "%s %d %d\n", one.name.c_str(), setting.has_checks,
               setting.threads);
  std::fflush(requests_);
  Sample sample;
  if (std::fscanf(answers_, "%lf %lf %lf", &sample.cpu_us, &sample.wall_us,
                  &sample.instructions) != 3)
    throw kiln::RuntimeError("the older build has no answer for " + one.name);
  return sample;
}

void serve(Runner &runner, std::vector<Case> &cases) {
  char name[64];
  int has_checks = 0, threads = 0;
  while (std::scanf("%63s %d %d", name, &has_checks, &threads) == 3)
    for (Case &one : cases) {
      if (one.name != name)
        continue;
      Sample sample = runner.simulate(one, {has_checks != 0, threads});
      std::printf("%.3f %.3f %.0f\n", sample.cpu_us, sample.wall_us,
                  sample.instructions);
      std::fflush(stdout);
    }
}

} // namespace scalar
