// Explore: one loop over interleavings, for everybody.
#include "kiln/check/explore.h"
#include "kiln/base/file.h"
#include "kiln/check/report.h"
#include "kiln/check/sim.h"
#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>

#include <set>

namespace kiln {

using testing::ElementsAre;
using testing::HasSubstr;

/// counter = counter * 2 + 1, by an atomic or by an ordinary store.
static const std::string &counts(bool isAtomic) {
  static auto withStore = [](const std::string &store) {
    return R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry count(.param .u64 counter)
{
.reg .b32 %r<4>;
.reg .b64 %a<2>;
ld.param.u64 %a1, [counter];
ld.global.u32 %r1, [%a1];
mad.lo.u32 %r2, %r1, 2, 1;
)" + store + "\nret;\n}\n";
  };
  static const std::string atomic =
      withStore("atom.global.exch.b32 %r3, [%a1], %r2;");
  static const std::string plain = withStore("st.global.u32 [%a1], %r2;");
  return isAtomic ? atomic : plain;
}

namespace {
class Explore : public testing::Test {
protected:
  LaunchDescription launch(const std::string &ptx, std::uint64_t offset = 0) {
    LaunchDescription launch;
    launch.ptx = ptx;
    std::uint64_t address = counter.address() + offset;
    launch.parameters.push_back({std::vector<std::byte>(
        reinterpret_cast<std::byte *>(&address),
        reinterpret_cast<std::byte *>(&address) + sizeof address)});
    return launch;
  }
  Exploration run(const LaunchDescription &launch,
                  const Interleavings &interleavings = {}) {
    return explore(*device, {&launch, 1}, {interleavings, {}});
  }
  std::uint32_t value() {
    std::uint32_t value = 0;
    device->copy_out(&value, counter, sizeof value);
    return value;
  }
  static std::vector<std::string> namesOf(const Exploration &exploration) {
    std::vector<std::string> names;
    for (const ExploredRun &run : exploration.runs)
      names.push_back(run.interleaving.to_string());
    return names;
  }

  std::shared_ptr<Device> device = open_sim();
  Buffer counter = [this] {
    Buffer buffer = device->allocate(4);
    std::uint32_t five = 5;
    device->copy_in(buffer, &five, sizeof five);
    return buffer;
  }();
};
} // namespace

TEST_F(Explore, EachInterleavingBeginsWithTheSameMemory) {
  Exploration seen = run(launch(counts(true)));
  EXPECT_THAT(namesOf(seen), ElementsAre("eager", "lazy", "random, seed 0"));
  EXPECT_EQ(seen.single_because, "");
  EXPECT_EQ(value(), 11u) << "of one launch, not of three";
  for (const ExploredRun &run : seen.runs)
    EXPECT_TRUE(run.is_finished && run.launches.at(0).ok());
}

TEST_F(Explore, OneIsEnoughWhereNothingCanBeReordered) {
  Exploration seen = run(launch(counts(false)));
  EXPECT_THAT(namesOf(seen), ElementsAre("eager"));
  EXPECT_THAT(seen.single_because, HasSubstr("nothing in it can be reordered"));
  EXPECT_EQ(value(), 11u);
}

TEST_F(Explore, RunsWhatIsAskedFor) {
  LaunchDescription atomic = launch(counts(true));
  EXPECT_THAT(namesOf(run(atomic, {.only = Interleaving::lazy})),
              ElementsAre("lazy"));
  EXPECT_THAT(namesOf(run(atomic, {.only = Interleaving::random, .count = 2,
                                   .seed = 7})),
              ElementsAre("random, seed 7", "random, seed 8"));
  EXPECT_THAT(namesOf(run(atomic, {.count = 4, .seed = 3})),
              ElementsAre("eager", "lazy", "random, seed 3", "random, seed 4"));
  EXPECT_EQ(errorText([&] {
              run(atomic, {.only = Interleaving::eager, .count = 2});
            }),
            "there is one eager interleaving, not 2; use random or all for "
            "more");
  EXPECT_THAT(errorText([&] { run(atomic, {.count = kMaxInterleavings + 1}); }),
              HasSubstr("1000001 interleavings are too many"));
}

TEST_F(Explore, ALaunchListIsRunWholeInEachInterleaving) {
  std::vector<LaunchDescription> twice(2, launch(counts(true)));
  std::vector<std::uint32_t> after;
  Exploration seen =
      explore(*device, twice, {}, [&](const ExploredRun &) {
        after.push_back(value());
      });
  EXPECT_THAT(after, ElementsAre(23u, 23u, 23u));
  EXPECT_EQ(seen.runs.at(2).launches.size(), 2u);
  EXPECT_EQ(value(), 23u);
}

TEST_F(Explore, StopsWhereAFindingEndsALaunch) {
  Exploration seen = run(launch(counts(true), 1 << 20));
  EXPECT_THAT(namesOf(seen), ElementsAre("eager"));
  EXPECT_FALSE(seen.runs[0].is_finished);
}

TEST_F(Explore, WhatIsRefusedRunsInNone) {
  LaunchDescription wide = launch(counts(true));
  wide.block = {2048, 1, 1};
  EXPECT_THAT(errorText([&] { run(wide); }), HasSubstr("2048"));
  EXPECT_EQ(value(), 5u);
}

TEST_F(Explore, InAStreamAProgramGoesOnWithTheFirst) {
  Stream stream = device->create_stream();
  std::optional<Exploration> seen;
  explore_in_stream(*device, launch(counts(true)), stream, {},
                    [&](Exploration exploration) { seen = exploration; });
  device->synchronize();
  ASSERT_TRUE(seen);
  EXPECT_THAT(namesOf(*seen), ElementsAre("eager", "lazy", "random, seed 0"));
  EXPECT_EQ(value(), 11u);
}

TEST_F(Explore, AReportHasEachFindingOnce) {
  LaunchDescription race = launch(counts(true));
  race.block = {64, 1, 1};
  Report report;
  report.add({.kernel = "count"}, run(race));
  report.add({.kernel = "count"}, run(race));
  std::vector<std::string> ids;
  for (const Finding &finding : report.findings) {
    ids.push_back(finding.identity());
    EXPECT_THAT(finding.interleavings,
                ElementsAre("eager", "lazy", "random, seed 0"));
    EXPECT_THAT(finding.launches, ElementsAre(1u, 2u));
  }
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size())
      << report.to_text();
  EXPECT_EQ(report.launch_count, 2u);
  EXPECT_EQ(report.exit_status(), ExitStatus::finding);
  EXPECT_THAT(report.to_text(), HasSubstr("verdict: error\n"));
  EXPECT_THAT(report.to_sarif(), HasSubstr("partialFingerprints"));
  EXPECT_THAT(report.to_sarif(), HasSubstr("codeFlows"));
}

} // namespace kiln
