// RaceVerdicts: how two accesses that meet are graded, and what is silent.
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

namespace {
/// What a kernel gives under one order, one "id at the PTX's words" each.
std::vector<std::string> idsOf(RunKernel &run) {
  std::vector<std::string> ids;
  for (const Finding &finding : run.run().findings)
    ids.push_back(finding.id);
  return ids;
}

using Ids = std::vector<std::string>;

/// The same under all orders, and some seeds of the random one.
void expectIds(const std::string &instructions, const Ids &expected,
               Dim3 grid = {1, 1, 1}, int threads = 32,
               Dim3 cluster = {1, 1, 1}, const std::string &target = "sm_90a") {
  for (SimOrder order : kOrders)
    for (std::uint64_t seed = 0; seed < (order == SimOrder::random ? 4 : 1);
         ++seed) {
      RunKernel run(instructions, target);
      run.output(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
      run.input(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
      run.config.grid = grid;
      run.config.block = {static_cast<std::uint32_t>(threads), 1, 1};
      run.config.cluster = cluster;
      run.config.order = order;
      run.config.seed = seed;
      EXPECT_EQ(idsOf(run), expected)
          << "order " << int(order) << ", seed " << seed;
    }
}

const std::string kFirst = "setp.ne.u32 %p0, %t, 0;"
                           "mov.u32 %r0, %ctaid.x;";
const std::string kCounts = "red.global.add.u32 [%in], 1;";
} // namespace

TEST(SameValue, OfTwoCtasIsAWarning) {
  std::string store = kFirst + "@!%p0 st.global.u32 [%out], 7;";
  expectIds(store, {"same-value"}, {4, 1, 1});
  // Whether they could talk to each other makes no difference.
  expectIds(store + kCounts, {"same-value"}, {4, 1, 1});
}

TEST(SameValue, OfManyPlacesIsAWarning) {
  std::string store = "mul.wide.u32 %x0, %t, 8;"
                      "add.u64 %x0, %x0, %out;"
                      "mul.lo.u32 %r1, %t, 3;"
                      "st.global.v2.u32 [%x0], {%r1, %t};";
  expectIds(store, {"same-value"}, {3, 1, 1});
  expectIds(store + kCounts, {"same-value"}, {3, 1, 1});
}

TEST(SameValue, IsNoneWhereOneByteDiffers) {
  std::string store = kFirst + "@!%p0 st.global.u32 [%out], %r0;";
  expectIds(store, {"race"}, {2, 1, 1});
  expectIds(store + kCounts, {"race"}, {2, 1, 1});
  // What stands there already is as much a value as any.
  store = kFirst + "setp.eq.u32 %p1, %r0, 2;"
                   "@%p1 mov.u32 %r0, 5;"
                   "@!%p1 mov.u32 %r0, 0;"
                   "@!%p0 st.global.u32 [%out], %r0;";
  expectIds(store, {"same-value", "race"}, {3, 1, 1});
}

TEST(SameValue, IsNoneWhereAnotherCtaReads) {
  std::string both = kFirst + "@!%p0 st.global.u32 [%out], 7;"
                              "ld.global.u32 %r1, [%out];";
  expectIds(both, {"same-value", "race"}, {2, 1, 1}, 1);
}

TEST(SameValue, DoesNotDependOnTheHostsThreads) {
  for (std::size_t threads : {1, 4}) {
    RunKernel run(kFirst + "@!%p0 st.global.u32 [%out], 7;"
                           "add.u64 %x0, %out, 64;"
                           "@!%p0 st.global.u32 [%x0], %r0;");
    run.config.grid = {64, 1, 1};
    run.config.threads = static_cast<int>(threads);
    EXPECT_EQ(idsOf(run), (Ids{"same-value", "race"}));
  }
}

} // namespace kiln::sim
