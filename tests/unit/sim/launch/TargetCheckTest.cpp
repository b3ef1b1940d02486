// TargetCheck: kernels that use what their .target or .version lacks.
#include "kiln/check/sim.h"

#include "kiln/base/error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace kiln::sim {

using testing::HasSubstr;

static std::string launch(const std::string &version, const std::string &target,
                          const std::string &body, bool isChecked = true) {
  SimOptions options;
  options.device = DeviceDescription::to_simulate(target);
  options.target_check = isChecked;
  LaunchDescription description;
  description.name = "k";
  description.block = {128, 1, 1};
  std::string ptx = fmt::format(
      ".version {}\n.target {}\n.address_size 64\n"
      ".func inner() {{ .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<3>; "
      ".reg .b16 %h<3>; {} ret; }}\n"
      ".visible .entry other() {{ wgmma.fence.sync.aligned; ret; }}\n"
      ".visible .entry k() {{ call inner; ret; }}\n",
      version, target, body);
  description.ptx = ptx;
  try {
    LaunchResult result = open_sim(options)->launch(description);
    return result.findings.empty() ? "" : result.findings[0].to_string();
  } catch (const UserError &error) {
    return error.what();
  }
}

// The first is said word for word; of the others, what needs what.
TEST(TargetCheck, SaysWhatIsNeeded) {
  EXPECT_EQ(launch("8.0", "sm_90", "wgmma.fence.sync.aligned;"),
            "PTX:6: k cannot be assembled, 1 instruction needs another .target "
            "or .version (--target-check off simulates it all the same):\n"
            "  line 4: wgmma.fence.sync.aligned;\n"
            "    wgmma.fence needs .target sm_90a; this module says sm_90");
  EXPECT_THAT(launch("8.0", "sm_90a",
                     "tcgen05.fence::before_thread_sync;\n"
                     "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;\n"
                     "add.rn.f32x2 %rd1, %rd2, %rd2;"),
              testing::AllOf(
                  HasSubstr("3 instructions need another"),
                  HasSubstr("tcgen05.fence::before_thread_sync needs .target "
                            "sm_100a, sm_100f, sm_101a, sm_101f, sm_103a, "
                            "sm_103f, sm_110a or sm_110f; this module says "
                            "sm_90a"),
                  HasSubstr("add.f32x2 needs .target sm_100 or newer; this "
                            "module says sm_90a")));
  EXPECT_THAT(launch("8.5", "sm_90a", "mov.u32 %r1, %aggr_smem_size;"), "");
  EXPECT_THAT(launch("8.0", "sm_90", "mov.u32 %r1, %aggr_smem_size;"),
              HasSubstr("%aggr_smem_size needs .version 8.1 or newer; this "
                        "module says 8.0"));
  EXPECT_THAT(launch("8.0", "sm_80", "mov.u32 %r1, %cluster_ctaid.x;"),
              HasSubstr("%cluster_ctaid needs .target sm_90 or newer; this "
                        "module says sm_80"));
  EXPECT_THAT(launch("7.8", "sm_80",
                     "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, "
                     "%f2;"),
              HasSubstr("cvt.e4m3x2 needs .target sm_89 or newer; this module "
                        "says sm_80"));
}

TEST(TargetCheck, AVersionKnowsItsTargets) {
  EXPECT_EQ(launch("7.8", "sm_90a", ""),
            "PTX:1: PTX 7.8 does not know the target sm_90a; it came with 8.0");
  EXPECT_EQ(launch("8.0", "sm_90a", ""), "");
}

TEST(TargetCheck, WhatNobodyReachesMayNeedAnything) {
  EXPECT_EQ(launch("8.0", "sm_90", "mov.u32 %r1, 1;"), "");
}

TEST(TargetCheck, CanBeOff) {
  EXPECT_EQ(launch("8.0", "sm_90", "wgmma.fence.sync.aligned;", false), "");
  EXPECT_EQ(launch("8.0", "sm_90",
                   "cvt.rn.satfinite.e2m1x2.f32 %h1, 0f3f800000, 0f3f800000;",
                   false),
            launch("8.6", "sm_100a",
                   "cvt.rn.satfinite.e2m1x2.f32 %h1, 0f3f800000, "
                   "0f3f800000;"));
}

TEST(TargetCheck, PtxThatSaysNothingLacksNothing) {
  LaunchDescription description;
  description.ptx = ".visible .entry k() { wgmma.fence.sync.aligned; ret; }";
  description.block = {128, 1, 1};
  EXPECT_TRUE(open_sim()->launch(description).findings.empty());
}

} // namespace kiln::sim
