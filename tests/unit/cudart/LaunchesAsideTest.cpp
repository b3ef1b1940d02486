// LaunchesAside: which launches run together, and when.
#include "cudart/launch/LaunchesAside.h"
#include "kiln/check/sim.h"
#include "kiln/check/simulation.h"
#include "unit/support/ErrorText.h"

#include <atomic>
#include <gtest/gtest.h>

namespace kiln::cudart {

static constexpr const char *kPtx = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry triggers() { griddepcontrol.launch_dependents; ret; }
.visible .entry plain() { ret; }
)";

namespace {
/// A simulator, and what was asked of it: the names of each call.
class Aside : public testing::Test {
protected:
  void add(const std::string &name, bool isDependent, const Stream &stream = {},
           bool isChecked = true, bool isEnded = false) {
    LaunchDescription launch;
    launch.name = name;
    launch.ptx = kPtx;
    launch.dependent = isDependent;
    launch.cluster = {isEnded ? 2u : 1u, 1, 1};
    launch.grid = {2, 1, 1};
    aside.add(*device->simulation(), launch, stream, isChecked,
              [this](const Exploration &all) {
                told.push_back(all.runs.empty() ? 0
                                                : all.runs[0].launches.size());
              });
  }

  std::shared_ptr<Device> device = open_sim({});
  std::vector<std::string> calls;
  std::atomic<bool> isRun = false;
  std::vector<std::size_t> told;
  // The last one: its thread uses the others.
  LaunchesAside aside{[this](std::span<const LaunchDescription> launches,
                             const Stream &, bool isChecked,
                             LaunchesAside::Finished finished) {
    std::string names = isChecked ? "" : "unchecked ";
    ExploredRun run;
    for (const LaunchDescription &launch : launches) {
      names += launch.name + (launch.dependent ? "+ " : " ");
      if (run.is_finished)
        run.launches.push_back({.is_finished = launch.cluster[0] == 1});
      run.is_finished = run.launches.back().is_finished;
    }
    calls.push_back(names);
    isRun = true;
    finished({.runs = {run}});
  }};
};

using Calls = std::vector<std::string>;
} // namespace

TEST_F(Aside, DependentLaunchesRunWithTheOneAhead) {
  add("triggers", false);
  EXPECT_EQ(calls, Calls{});
  add("triggers", true);
  EXPECT_EQ(calls, Calls{});
  add("plain", true); // which nobody overlaps
  EXPECT_EQ(calls, Calls{"triggers triggers+ plain+ "});
  EXPECT_EQ(told, (std::vector<std::size_t>{1, 1, 1}));
}

TEST_F(Aside, OthersAreNotKeptWaiting) {
  add("plain", false);
  add("plain", true);
  EXPECT_EQ(calls, (Calls{"plain ", "plain+ "}));
  add("triggers", false);
  add("plain", false);
  EXPECT_EQ(calls, (Calls{"plain ", "plain+ ", "triggers ", "plain "}));
  calls.clear();
  add("triggers", false);
  Stream other = device->create_stream(false);
  add("plain", true, other);
  EXPECT_EQ(calls, (Calls{"triggers ", "plain+ "}));
  calls.clear();
  add("triggers", false);
  add("plain", true, {}, false);
  EXPECT_EQ(calls, (Calls{"triggers ", "unchecked plain+ "}));
}

TEST_F(Aside, SomebodyOrTimeRunsThem) {
  aside.finish();
  add("triggers", false);
  aside.finish();
  EXPECT_EQ(calls, Calls{"triggers "});
  aside.finish();
  EXPECT_EQ(calls.size(), 1u);
  isRun = false;
  add("triggers", false);
  auto begin = std::chrono::steady_clock::now();
  for (bool isDone = false; !isDone;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(20));
    isDone = isRun;
  }
  aside.finish(); // behind the timer
  EXPECT_EQ(calls.size(), 2u);
}

TEST_F(Aside, ALongChainIsDivided) {
  add("triggers", false);
  for (int i = 0; i < 9; ++i)
    add("triggers", true);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(told.size(), 8u);
}

TEST_F(Aside, WhatIsBehindAnEndedLaunchIsTold) {
  add("triggers", false, {}, true, /*isEnded=*/true);
  add("plain", true);
  EXPECT_EQ(told, (std::vector<std::size_t>{1, 0}));
}

TEST_F(Aside, ARefusedLaunchIsRefusedAtOnce) {
  EXPECT_NE(errorText([&] { add("missing", false); }).find("missing"),
            std::string::npos);
  EXPECT_EQ(calls, Calls{});
}

} // namespace kiln::cudart
