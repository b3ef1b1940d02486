// Softmax: problems it does not solve.
#include "Refused.h"

#include <kiln/kernels/softmax.h>

using namespace errors;

TEST(SoftmaxErrors, Problems) {
  refused(
      0, [] { build_softmax({.type = i8}); },
      "softmax of bf16, f16 or f32, not of i8");
  refused(
      0, [] { build_softmax({.rows = 0}); },
      "a softmax of 0 rows; at least 1 is needed");
  for (int columns : {0, 12, 6152})
    refused(
        0, [&] { build_softmax({.columns = columns}); },
        fmt::format("rows of {} elements of bf16; use a multiple of 8 up to "
                    "6144",
                    columns));
}
