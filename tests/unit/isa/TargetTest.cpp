// Target: names, variants and families, and what a capability has.
#include "isa/Target.h"

#include <gtest/gtest.h>

namespace kiln::isa {

static bool includes(const char *target, const char *needed) {
  return includes(*findTarget(target), *findTarget(needed));
}

TEST(Target, Names) {
  for (const char *name : {"sm_10", "sm_75", "sm_89", "sm_90", "sm_90a",
                           "sm_100f", "sm_101a", "sm_110f", "sm_121a"}) {
    ASSERT_TRUE(findTarget(name)) << name;
    EXPECT_EQ(findTarget(name)->name(), name);
  }
  for (const char *name : {"", "sm_", "90a", "sm_90b", "sm_90f", "sm_89a",
                           "sm_95", "sm_90aa", "compute_90", "sm_-90"})
    EXPECT_FALSE(findTarget(name)) << name;
}

TEST(Target, Since) {
  EXPECT_EQ(findTarget("sm_90")->since(), 78);
  EXPECT_EQ(findTarget("sm_90a")->since(), 80);
  EXPECT_EQ(findTarget("sm_100a")->since(), 86);
  EXPECT_EQ(findTarget("sm_100f")->since(), 88);
  EXPECT_EQ(findTarget("sm_120")->since(), 87);
  EXPECT_EQ(findTarget("sm_110a")->since(), 90);
}

TEST(Target, APlainTargetIsInAllThatAreNewer) {
  EXPECT_TRUE(includes("sm_90", "sm_90"));
  EXPECT_TRUE(includes("sm_90a", "sm_80"));
  EXPECT_TRUE(includes("sm_120f", "sm_103"));
  EXPECT_FALSE(includes("sm_89", "sm_90"));
  EXPECT_FALSE(includes("sm_100a", "sm_103"));
}

TEST(Target, ASpecificOneIsInItselfAlone) {
  EXPECT_TRUE(includes("sm_90a", "sm_90a"));
  EXPECT_FALSE(includes("sm_90", "sm_90a"));
  EXPECT_FALSE(includes("sm_100a", "sm_90a"));
  EXPECT_FALSE(includes("sm_103a", "sm_100a"));
  EXPECT_FALSE(includes("sm_100f", "sm_100a"));
}

TEST(Target, AFamilyHasItsOwnLaterOnes) {
  for (const char *target : {"sm_100f", "sm_100a", "sm_103f", "sm_103a"})
    EXPECT_TRUE(includes(target, "sm_100f")) << target;
  for (const char *target : {"sm_100", "sm_103", "sm_110a", "sm_120f"})
    EXPECT_FALSE(includes(target, "sm_100f")) << target;
  EXPECT_FALSE(includes("sm_100f", "sm_103f"));
  EXPECT_TRUE(includes("sm_121a", "sm_120f"));
}

TEST(Target, TensorCoresFollowFromTheCapability) {
  struct Row {
    int major, minor;
    TensorCore core;
    int columns;
    const char *target;
  };
  for (const Row &row : {Row{8, 0, TensorCore::mma, 0, "sm_80"},
                         {8, 9, TensorCore::mma, 0, "sm_89"},
                         {9, 0, TensorCore::wgmma, 0, "sm_90a"},
                         {10, 0, TensorCore::tcgen05, 512, "sm_100a"},
                         {10, 3, TensorCore::tcgen05, 512, "sm_103a"},
                         {11, 0, TensorCore::tcgen05, 512, "sm_110a"},
                         {12, 0, TensorCore::mma, 0, "sm_120a"},
                         {12, 1, TensorCore::mma, 0, "sm_121a"},
                         // Not known: what is common to all.
                         {10, 7, TensorCore::mma, 0, "sm_107"},
                         {13, 0, TensorCore::mma, 0, "sm_130"}}) {
    DeviceDescription device = describeArchitecture(row.major, row.minor);
    EXPECT_EQ(device.target(), row.target);
    EXPECT_EQ(device.tensor_core, row.core) << row.target;
    EXPECT_EQ(device.tensor_memory_columns, row.columns) << row.target;
  }
  DeviceDescription later = describeArchitecture(13, 0);
  EXPECT_TRUE(later.runs("sm_90") && later.runs("sm_121"));
  EXPECT_FALSE(later.runs("sm_121a"));
}

TEST(Target, LimitsFollowFromTheCapability) {
  EXPECT_EQ(describeArchitecture(8, 0).max_smem_per_cta_bytes, 163 * 1024);
  EXPECT_EQ(describeArchitecture(8, 0).max_cluster_ctas, 1);
  EXPECT_EQ(describeArchitecture(9, 0).max_nonportable_cluster_ctas, 16);
  EXPECT_EQ(describeArchitecture(12, 0).max_smem_per_cta_bytes, 99 * 1024);
  EXPECT_EQ(describeArchitecture(12, 0).max_threads_per_sm, 1536);
  EXPECT_EQ(describeArchitecture(12, 0).max_ctas_per_sm, 24);
}

} // namespace kiln::isa
