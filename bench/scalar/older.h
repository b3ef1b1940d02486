// older.h: another build of bench_scalar, which runs the same cases in turns
// with this one, in a process of its own.
//
// It is started with --serve and reads a line for each run: the case, 1 or 0
// for the checks, the threads. It answers with a line: microseconds of the
// processor, of the clock, and warp instructions.
#pragma once

#include "runner.h"

#include <cstdio>
#include <string>
#include <sys/types.h>
#include <vector>

namespace scalar {

class Older {
public:
  /// Throws RuntimeError where it cannot be started.
  explicit Older(const std::string &path);
  ~Older();
  Older(const Older &) = delete;

  /// Throws RuntimeError where it gives no answer.
  Sample simulate(const Case &one, const Setting &setting);

private:
  pid_t process_ = 0;
  std::FILE *requests_ = nullptr, *answers_ = nullptr;
};

/// The other side: answer requests until there are no more.
void serve(Runner &runner, std::vector<Case> &cases);

} // namespace scalar
