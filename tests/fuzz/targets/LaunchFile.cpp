// launch_file: the JSON that `kiln sim --launch` takes, for a kernel that adds.
#include "fuzz/Target.h"
#include "kiln/base/error.h"
#include "kiln/check/launch_file.h"
#include "kiln/check/sim.h"

namespace kiln::fuzz {

static constexpr const char *kAdd = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
mad.lo.u32 %r2, %r2, %r3, %r4;
setp.ge.u32 %p, %r2, %r1;
@%p ret;
mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd5, %rd2, %rd4; add.u64 %rd6, %rd3, %rd4; add.u64 %rd7, %rd1, %rd4;
ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
add.f32 %f3, %f1, %f2;
st.global.f32 [%rd7], %f3;
ret;
}
)";

void runLaunchFile(std::string_view input) {
  LaunchFile file = LaunchFile::parse(input, "launch.json");
  LaunchFile again = LaunchFile::parse(file.to_json(), "again.json");
  if (again.to_json() != file.to_json())
    throw Misbehaviour{"what was written again is another launch file"};
  LaunchJob job = LaunchJob::of(std::move(file), {kAdd}, {"add.ptx"});
  SimOptions options = job.sim_options({.device = job.device(),
                                        .threads = 2,
                                        .max_instructions = 6000,
                                        .time_limit_s = 2,
                                        .print = [](const std::string &) {}});
  PreparedJob prepared(std::move(job), open_sim(options));
  ExploreOptions explore;
  explore.sim = options;
  explore.interleavings.count = 1;
  checkReport(check_job(prepared, explore).report.to_json());
}

} // namespace kiln::fuzz
