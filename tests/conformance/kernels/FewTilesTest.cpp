// FewTiles: products that do not fill the device with tiles: K divided by the
// grid, and products of vectors, against float64.
#include "conformance/Conformance.h"
#include "GemmRun.h"

using namespace conformance;

class FewTiles : public OnDevice {};
INSTANTIATE_ON_DEVICES(FewTiles);

// More CTAs than a cluster holds, with sums as they are and transposed, of one
// consumer and of two, copied rows and integers.
TEST_P(FewTiles, PartsOfTheGrid) {
  expect_gemms(GetParam(),
               {{"150x70x700 f16 -> f32 tn alpha beta",
                 "64x64x64 stages=3 split-k=9 split-by=grid"},
                {"150x70x704 bf16 -> bf16 tt bias=row act=gelu",
                 "128x64x64 stages=3 consumers=2 split-k=11 split-by=grid"},
                {"9x200x704 bf16 -> bf16 tn",
                 "64x16x64 stages=3 split-k=6 split-by=grid swap=on"},
                {"300x200x1000 bf16 -> bf16 tn",
                 "64x64x64 stages=3 split-k=3 split-by=grid cluster=2x2"},
                {"9x200x704 bf16 -> bf16 tn",
                 "64x16x64 stages=3 split-k=4 split-by=grid swap=on "
                 "cluster=2x1"},
                {"65x30x333 f16 -> f16 nn batch=2",
                 "64x32x64 stages=2 split-k=5 split-by=grid repack=on"},
                {"65x30x333 i8 -> i32 tn d=column",
                 "64x32x64 stages=2 split-k=5 split-by=grid"},
                {"65x136x640 e4m3 -> bf16 tn scales=blocks",
                 "64x128x128 stages=2 split-k=5 split-by=grid"}});
  SKIP_WITHOUT_DEVICE();
}

// Rows of any alignment, either operand the matrix.
TEST_P(FewTiles, Vectors) {
  expect_gemms(
      GetParam(),
      {{"1x301x1000 bf16 -> bf16 tn", "vector"},
       {"1x13x701 f16 -> f32 nn alpha beta bias=column act=gelu", "vector"},
       {"203x1x1002 f16 -> f16 tt batch=3", "vector"},
       {"50x1x4096 e4m3 -> bf16 tn bias=row scales=tensor", "vector"},
       {"1x77x520 e5m2 -> f16 tn d=column", "vector"},
       {"1xnxk bf16 -> f32 tn lda=400 ldb=400", "vector"},
       {"1x1x5 bf16 -> bf16 tn", "vector"}});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(FewTiles, AreWhatAutoTakes) {
  auto model = [](const char *words) {
    return rank_schedules(GemmProblem::parse(words), 1).front().schedule;
  };
  EXPECT_EQ(model("1x6144x4096 bf16 -> bf16 tn").kind, GemmKind::vector);
  EXPECT_EQ(model("6144x1x4096 bf16 -> bf16 tn").kind, GemmKind::vector);
  EXPECT_TRUE(model("256x256x65536 bf16 -> bf16 tn").is_split_by_grid);
  EXPECT_FALSE(model("4096x4096x4096 bf16 -> bf16 tn").is_split_by_grid);
}
