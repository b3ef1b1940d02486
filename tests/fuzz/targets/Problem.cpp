// problem: a GEMM in words, as files and command lines have it, and a schedule.
#include "fuzz/Target.h"
#include "gemm/device/main_loop.h"
#include "kiln/base/error.h"
#include "kiln/kernels/gemm.h"

// Nobody builds a kernel here: the compiler is not in this program.
namespace kiln::gemm_kernel {

std::unique_ptr<MainLoop> make_wgmma_kernel(const GemmProblem &,
                                            const GemmSchedule &,
                                            const GemmDebug &,
                                            const DeviceDescription &) {
  throw InternalError("a kernel is built");
}
std::unique_ptr<MainLoop> make_tcgen05_kernel(const GemmProblem &,
                                              const GemmSchedule &,
                                              const GemmDebug &,
                                              const DeviceDescription &) {
  throw InternalError("a kernel is built");
}
std::unique_ptr<MainLoop> make_mma_kernel(const GemmProblem &,
                                              const GemmSchedule &,
                                              const GemmDebug &,
                                              const DeviceDescription &) {
  throw InternalError("a kernel is built");
}

} // namespace kiln::gemm_kernel

namespace kiln::fuzz {

/// What was read says itself in words that are read as the same.
template <typename T> static void readAgain(const std::string &text) {
  T value = T::parse(text);
  std::string words = value.to_string();
  if (T::parse(words).to_string() != words)
    throw Misbehaviour{"'" + words + "' is read as something else"};
}

void runProblem(std::string_view input) {
  std::string text(input);
  try {
    readAgain<GemmSchedule>(text);
  } catch (const UserError &error) {
    checkMessage(error.what());
  }
  readAgain<GemmProblem>(text);
}

} // namespace kiln::fuzz
