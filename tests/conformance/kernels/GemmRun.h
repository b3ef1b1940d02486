// GemmRun: one GEMM on a device with fresh numbers, against float64.
#pragma once

#include "conformance/Conformance.h"

#include <kiln/kernels/gemm_reference.h>

namespace conformance {

/// Sizes of a launch; a problem's constants have the same.
struct GemmSize {
  int m = 1, n = 1, k = 1, batch = 1;
};

/// Launch `kernel` with random data and a poisoned output; every element is
/// within the tolerance, gaps are untouched, and nothing was found, not even a
/// warning.
void expect_gemm(Device &device, const Kernel &kernel,
                 const GemmProblem &problem, const GemmSize &size,
                 unsigned seed);

/// A problem and a schedule, in words; sizes known at launch become 37.
struct GemmCase {
  std::string problem, schedule;
};
/// Compile each on any machine, and run it where there is such a device.
void expect_gemms(const std::string &device,
                  const std::vector<GemmCase> &cases);

} // namespace conformance
