// Launch: how an input of the fuzzer is run, and what may come of it.
//
// A line of the input says it ("// launch block=64 order=lazy seed=7"), so that
// a kept input runs as it did when it was found. Arguments are made from the
// entry's parameters: memory with random bytes for 8 bytes, a small number for
// 4, a tensor map for 128.
#pragma once

#include "kiln/check/sim.h"

#include <string>
#include <vector>

namespace kiln::fuzz {

struct Launch {
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {32, 1, 1},
                               cluster = {1, 1, 1};
  std::uint32_t smemBytes = 0;
  Interleaving interleaving = Interleaving::eager;
  std::uint64_t seed = 1; ///< of the arguments, and of the order
  bool hasChecks = true, hasStats = false, hasTimeline = false;
  int threads = 1; ///< of the host
  int registers = 0;
  std::vector<std::string> allow; ///< findings
  /// Of every parameter of 128 bytes; its address is filled in.
  TensorMap map = {.type = Type::f16, .dims = {64, 64}, .box = {64, 16}};

  /// "// launch grid=2,1,1 block=64,1,1 ..."
  std::string toLine() const;
  /// From the first such line of a text; what it does not say is as above, and
  /// where it is no such line, everything.
  static Launch ofText(const std::string &text);
};

/// Strides of a dense tensor, rounded up as the hardware wants them.
void setStrides(TensorMap &map);

/// Run a text. Throws Misbehaviour where what happens is not what a user may
/// see: a message without a line, a control character in it.
void runInput(const std::string &text, const Launch &launch);

} // namespace kiln::fuzz
