// bench_chart: how much faster Kiln is, problem by problem, as a picture.
#pragma once

#include "bench_report.h"

#include <string>

namespace kiln::cli {

/// A bar for each problem that was measured beside another contender, from the
/// line where both are equally fast; the suites one below the other.
std::string ratio_chart(const BenchReport &report);

} // namespace kiln::cli
