// DeviceDescription: the numbers others rely on, and how one is found.
#include "kiln/run/device_description.h"

#include "unit/support/ErrorText.h"

using namespace kiln;

TEST(DeviceDescription, KnownNumbers) {
  const DeviceDescription &h200 = DeviceDescription::h200();
  EXPECT_EQ(h200.sms, 132);
  EXPECT_EQ(h200.l2_bytes, 62914560);
  EXPECT_EQ(h200.memory_gb_per_s, 4800);
  EXPECT_EQ(h200.max_smem_per_cta_bytes, 227 * 1024);
  EXPECT_EQ(DeviceDescription::h100().l2_bytes, 50 * 1024 * 1024);
  EXPECT_EQ(DeviceDescription::h100().memory_gb_per_s, 3350);
  EXPECT_EQ(DeviceDescription::b200().sms, 148);
}

TEST(DeviceDescription, Target) {
  EXPECT_EQ(DeviceDescription::h100().target(), "sm_90a");
  EXPECT_EQ(DeviceDescription::b200().target(), "sm_100a");
  DeviceDescription ampere;
  ampere.compute_major = 8;
  EXPECT_EQ(ampere.target(), "sm_80");
}

TEST(DeviceDescription, EveryKnownNameIsFound) {
  for (std::string_view name : DeviceDescription::known_names())
    EXPECT_GT(DeviceDescription::by_name(name).memory_bytes, 0) << name;
  EXPECT_EQ(&DeviceDescription::by_name("h200"), &DeviceDescription::h200());
}

TEST(DeviceDescription, UnknownNameListsTheKnown) {
  EXPECT_EQ(errorText([] { DeviceDescription::by_name("v100"); }),
            "there is no device description \"v100\"; there are a100, a10, l4, "
            "l40s, rtx4090, h100, h100-pcie, h100-nvl, h20, h200, gh200, b100, "
            "b200, gb200, b300, gb300, thor, rtx5090, rtxpro6000, gb10");
}

TEST(DeviceDescription, ForTarget) {
  EXPECT_EQ(DeviceDescription::for_target("sm_90a").name, "NVIDIA H200");
  EXPECT_EQ(DeviceDescription::for_target("sm_100a").name, "NVIDIA B200");
  EXPECT_EQ(DeviceDescription::for_target("sm_80").name,
            "NVIDIA A100 SXM4 80GB");
  EXPECT_EQ(DeviceDescription::for_target("sm_89").name, "NVIDIA L40S");
  EXPECT_EQ(DeviceDescription::for_target("sm_120a").name,
            "NVIDIA GeForce RTX 5090");
  EXPECT_EQ(errorText([] { DeviceDescription::for_target("sm_90"); }),
            "there is no target \"sm_90\"; kernels are compiled for sm_80, "
            "sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, "
            "sm_121a");
}

TEST(DeviceDescription, RunsTargets) {
  const DeviceDescription &h200 = DeviceDescription::h200();
  const DeviceDescription &b200 = DeviceDescription::b200();
  for (const char *target : {"sm_20", "sm_80", "sm_89", "sm_90"}) {
    EXPECT_TRUE(h200.runs(target)) << target;
    EXPECT_TRUE(b200.runs(target)) << target;
  }
  EXPECT_TRUE(h200.runs("sm_90a") && !b200.runs("sm_90a"));
  EXPECT_TRUE(b200.runs("sm_100a") && !h200.runs("sm_100a"));
  EXPECT_TRUE(b200.runs("sm_100f") && !b200.runs("sm_103f"));
  for (const char *target : {"sm_103a", "sm_120", "sm_", "90a", "sm_90b", ""})
    EXPECT_FALSE(b200.runs(target)) << target;
}

TEST(DeviceDescription, ToSimulate) {
  EXPECT_EQ(DeviceDescription::to_simulate("sm_75").name, "NVIDIA H200");
  EXPECT_EQ(DeviceDescription::to_simulate("sm_90a").name, "NVIDIA H200");
  EXPECT_EQ(DeviceDescription::to_simulate("sm_100").name, "NVIDIA B200");
  EXPECT_EQ(DeviceDescription::to_simulate("sm_120f").name,
            "NVIDIA GeForce RTX 5090");
  EXPECT_EQ(DeviceDescription::to_simulate("sm_110a").name,
            "NVIDIA Jetson AGX Thor");
  EXPECT_EQ(errorText([] { DeviceDescription::to_simulate("sm_101a"); }),
            "no device that Kiln knows runs PTX of the target sm_101a; they "
            "run sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, "
            "sm_120a, sm_121a and older targets without a letter");
}
