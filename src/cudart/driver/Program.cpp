// Program: what those who load this library by hand ask of Kiln itself: the
// Python package, which runs other people's scripts.
#include "cudart/driver/Driver.h"

using namespace kiln::cudart;

/// What the program shall exit with where it says 0 itself: kiln::ExitStatus.
KILN_CUDA int kilnCudaExitStatus() {
  return static_cast<int>(Session::get().findings().exitStatus());
}
