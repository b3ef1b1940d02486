// show_findings: how what a check found is shown to people.
#pragma once

#include <kiln/check/finding.h>
#include <kiln/check/report.h>
#include <kiln/check/timeline.h>
#include <kiln/run/launch.h>

#include <string>

namespace kiln::cli {

/// Print a finding: "error      mbarrier-over-arrival at gemm.cpp:12: ...".
void show_finding(const Finding &finding);
/// Print where the time of a launch went, and the registers it started with.
void show_stats(const LaunchResult &result);
/// Write a trace to the file, or print a table where it is "-". Throws
/// RuntimeError where it cannot be written.
void show_timeline(const Timeline &timeline, const std::string &path);
/// How many findings are not shown, if any.
void show_left_out(const Report &all);
/// "FAIL ..." for launches that a finding has ended, or a signal: 0 is none.
void show_failure(int signal);

} // namespace kiln::cli
