// DependentLaunch: launches that may begin before the one ahead has ended, what
// orders them, and what is said where nothing does.
#include "kiln/base/error.h"
#include "kiln/check/explore.h"
#include "kiln/check/sim.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace kiln {

using ::testing::HasSubstr;

static constexpr std::size_t kCount = 256; ///< elements of each buffer
static constexpr std::uint32_t kThreads = 32;
static constexpr const char *kWait = "griddepcontrol.wait;";
static constexpr const char *kTrigger = "griddepcontrol.launch_dependents;";

/// A kernel of one load, one addition and one store per thread; the pieces
/// stand around them. `%a1` is its element of `from`, `%a2` that of `to`.
struct Step {
  std::string name;
  std::string before = ""; ///< the load
  std::string between = "";
  std::string after = ""; ///< the store
  int line = 1;           ///< of the load; the store is in the next one
};

static std::string kernelText(const Step &step) {
  return fmt::format(R"(.visible .entry {0}(.param .u64 from, .param .u64 to)
{{
.reg .u32 %r<8>;
.reg .u64 %a<8>;
.reg .pred %p<4>;
ld.param.u64 %a1, [from];
ld.param.u64 %a2, [to];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %a3, %r4, 4;
add.u64 %a1, %a1, %a3;
add.u64 %a2, %a2, %a3;
{1}
.loc 1 {4} 0
ld.global.u32 %r5, [%a1];
{2}
add.u32 %r5, %r5, 1;
.loc 1 {5} 0
st.global.u32 [%a2], %r5;
{3}
ret;
}}
)",
                     step.name, step.before, step.between, step.after,
                     step.line, step.line + 1);
}

/// Launches in a row, each of which adds one to what the one ahead has written;
/// all but the first are dependent.
class Chain {
public:
  explicit Chain(const std::vector<Step> &steps, std::uint32_t ctas = 2,
                 const SimOptions &options = {})
      : sim(options), device_(open_sim(options)),
        text_(".version 8.0\n.target sm_90\n.address_size 64\n"
              ".file 1 \"chain.cu\"\n") {
    for (const Step &step : steps)
      text_ += kernelText(step);
    std::string_view view = text_;
    module_ = device_->load(std::span(&view, 1));
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      buffers_.push_back(device_->allocate(4 * kCount));
      device_->set_name(buffers_.back(), fmt::format("b{}", i));
    }
    reset(0);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      LaunchDescription launch;
      launch.name = steps[i].name;
      launch.module = module_;
      launch.grid = {ctas, 1, 1};
      launch.block = {kThreads, 1, 1};
      launch.parameters = {{buffers_[i]}, {buffers_[i + 1]}};
      launch.dependent = i > 0;
      launches.push_back(launch);
    }
  }

  /// What lies in buffer `number` from now on: 7 everywhere.
  void reset(std::size_t number) {
    std::vector<std::uint32_t> data(kCount, 7);
    device_->copy_in(buffers_[number], data.data(), 4 * kCount);
  }
  std::vector<std::uint32_t> read(std::size_t number) {
    std::vector<std::uint32_t> data(kCount);
    device_->copy_out(data.data(), buffers_[number], 4 * kCount);
    data.resize(launches[0].grid[0] * kThreads);
    return data;
  }
  std::vector<std::uint32_t> wanted(std::size_t number) const {
    return std::vector<std::uint32_t>(launches[0].grid[0] * kThreads,
                                      7 + static_cast<std::uint32_t>(number));
  }
  /// In eager, lazy and so many random interleavings.
  Exploration run(std::uint64_t count = 3, const AfterRun &after = nullptr) {
    return explore(*device_, launches,
                   {.interleavings = {.count = count}, .sim = sim}, after);
  }
  /// Every interleaving gives the right result without a finding.
  void expectClean(std::uint64_t count = 40) {
    Exploration seen = run(count, [&](const ExploredRun &run) {
      EXPECT_EQ(read(launches.size()), wanted(launches.size()))
          << run.interleaving.to_string();
      return true;
    });
    EXPECT_EQ(seen.runs.size(), count);
    for (const ExploredRun &run : seen.runs)
      for (const LaunchResult &result : run.launches)
        EXPECT_TRUE(result.findings.empty())
            << run.interleaving.to_string() << ": " << result.to_string();
  }
  /// Every interleaving has that finding in launch `number`, and no other.
  Finding expectOnly(const std::string &id, std::size_t number,
                     std::uint64_t count = 20) {
    Finding found;
    for (const ExploredRun &run : run(count).runs)
      for (std::size_t i = 0; i < run.launches.size(); ++i) {
        const auto &findings = run.launches[i].findings;
        EXPECT_EQ(findings.size(), i == number ? 1u : 0u)
            << run.interleaving.to_string() << ": "
            << run.launches[i].to_string();
        if (i != number || findings.empty())
          continue;
        EXPECT_EQ(findings[0].id, id);
        EXPECT_TRUE(found.message.empty() ||
                    found.message == findings[0].message)
            << "another text in another interleaving";
        found = findings[0];
      }
    return found;
  }

  SimOptions sim;
  std::vector<LaunchDescription> launches;
  Device &device() { return *device_; }

private:
  std::shared_ptr<Device> device_;
  std::string text_;
  std::shared_ptr<LoadedModule> module_;
  std::vector<Buffer> buffers_;
};

/// It lets its dependent begin before it has written anything.
static Step producer() {
  return {.name = "producer", .before = kTrigger, .line = 10};
}

TEST(DependentLaunch, AWaitOrdersTheTwo) {
  Chain({producer(), {.name = "consumer", .before = kWait, .line = 20}})
      .expectClean(200);
}

TEST(DependentLaunch, AMissingWaitIsFoundInEveryInterleaving) {
  // What flash-attention 2481 was: a backward pass reads what the kernel ahead
  // writes, and never waits.
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  Finding found = chain.expectOnly("pdl-wait", 1);
  EXPECT_EQ(found.grade, Finding::Grade::error);
  EXPECT_EQ(found.where.file, "chain.cu");
  EXPECT_EQ(found.where.line, 20);
  EXPECT_EQ(found.buffer, "b1");
  ASSERT_TRUE(found.other);
  EXPECT_EQ(found.other->where.line, 11);
  EXPECT_TRUE(found.other->is_write);
  EXPECT_THAT(found.message, HasSubstr("this reads global address"));
  EXPECT_THAT(found.message, HasSubstr("of producer at chain.cu:11 writes; the "
                                       "launch of consumer may begin before "
                                       "that of producer has ended; missing: "
                                       "griddepcontrol.wait"));
}

TEST(DependentLaunch, EagerAndRandomInterleavingsReadTooEarly) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  chain.reset(1);
  std::set<std::vector<std::uint32_t>> seen;
  std::vector<bool> isRight;
  chain.run(12, [&](const ExploredRun &) {
    auto result = chain.read(2);
    seen.insert(result);
    isRight.push_back(result == chain.wanted(2));
    return true;
  });
  EXPECT_FALSE(isRight[0]) << "eager";
  EXPECT_TRUE(isRight[1]) << "lazy";
  EXPECT_GE(seen.size(), 3u) << "random";
}

TEST(DependentLaunch, AWaitBehindTheReadIsTooLate) {
  Chain chain({producer(), {.name = "consumer", .between = kWait, .line = 20}});
  EXPECT_EQ(chain.expectOnly("pdl-wait", 1).where.line, 20);
}

TEST(DependentLaunch, AWriteNeedsTheWaitToo) {
  // The second reads another buffer, and overwrites what the first reads.
  Chain chain({{.name = "reader", .before = kTrigger, .line = 10},
               {.name = "writer", .line = 20}});
  auto &launches = chain.launches;
  std::swap(launches[1].parameters[0], launches[1].parameters[1]);
  launches[1].parameters[1] = launches[0].parameters[0];
  chain.reset(2);
  Finding found = chain.expectOnly("pdl-wait", 1);
  EXPECT_EQ(found.where.line, 21);
  ASSERT_TRUE(found.other);
  EXPECT_EQ(found.other->where.line, 10);
  EXPECT_FALSE(found.other->is_write);
  EXPECT_THAT(found.message, HasSubstr("this writes global address"));
}

TEST(DependentLaunch, WhatTheOtherDoesNotTouchNeedsNoWait) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  auto &launches = chain.launches;
  launches[1].parameters[0] = launches[0].parameters[0]; // both read it
  for (const ExploredRun &run : chain.run(10).runs)
    EXPECT_TRUE(run.launches[1].findings.empty())
        << run.launches[1].to_string();
}

TEST(DependentLaunch, AThreadMayWaitForItsCta) {
  // Thread 0 waits, and the barrier hands it on.
  const char *one = R"(
setp.eq.u32 %p1, %r3, 0;
@%p1 griddepcontrol.wait;
bar.sync 0;
)";
  Chain chain({producer(), {.name = "consumer", .before = one, .line = 20}});
  for (LaunchDescription &launch : chain.launches) {
    launch.block = {64, 1, 1};
    launch.grid = {1, 1, 1};
  }
  chain.launches[0].grid = chain.launches[1].grid = {1, 1, 1};
  for (const ExploredRun &run : chain.run(20).runs)
    EXPECT_TRUE(run.launches[1].findings.empty())
        << run.launches[1].to_string();
}

TEST(DependentLaunch, OneWarpDoesNotWaitForAnother) {
  const char *first = R"(
setp.lt.u32 %p1, %r3, 32;
@!%p1 bra read;
griddepcontrol.wait;
read:
)";
  Chain chain({producer(), {.name = "consumer", .before = first, .line = 20}});
  for (LaunchDescription &launch : chain.launches) {
    launch.block = {64, 1, 1};
    launch.grid = {1, 1, 1};
  }
  Finding found = chain.expectOnly("pdl-wait", 1);
  EXPECT_GE(found.thread, 32);
}

TEST(DependentLaunch, AWaitNeedsNoTrigger) {
  Chain({{.name = "producer", .line = 10},
         {.name = "consumer", .before = kWait, .line = 20}})
      .expectClean();
}

TEST(DependentLaunch, WithoutATriggerAMissingWaitIsAWarning) {
  Chain chain(
      {{.name = "producer", .line = 10}, {.name = "consumer", .line = 20}});
  Finding found = chain.expectOnly("pdl-wait-implicit", 1);
  EXPECT_EQ(found.grade, Finding::Grade::warning);
  EXPECT_EQ(found.where.line, 20);
  EXPECT_THAT(found.message,
              HasSubstr("producer never lets its dependents begin"));
}

TEST(DependentLaunch, WithoutTheAttributeNothingOverlaps) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  chain.launches[1].dependent = false;
  chain.sim = {};
  for (const ExploredRun &run : chain.run(6).runs)
    for (const LaunchResult &result : run.launches)
      EXPECT_TRUE(result.findings.empty()) << result.to_string();
  EXPECT_EQ(chain.read(2), chain.wanted(2));
}

TEST(DependentLaunch, InAChainEachWaitsForTheOneAhead) {
  std::string both = std::string(kTrigger) + kWait;
  Chain({producer(),
         {.name = "second", .before = both, .line = 20},
         {.name = "third", .before = both, .line = 30},
         {.name = "fourth", .before = kWait, .line = 40}})
      .expectClean(100);
}

/// The third launch reads what the first has written; the second touches other
/// memory than the first.
static Chain pastTheSecond(const std::string &second,
                           const std::string &third) {
  Chain chain({producer(),
               {.name = "second", .before = second, .line = 20},
               {.name = "third", .before = third, .line = 30}});
  auto &launches = chain.launches;
  launches[1].parameters = {launches[0].parameters[0],
                            launches[2].parameters[0]};
  launches[2].parameters[0] = launches[0].parameters[1];
  return chain;
}

TEST(DependentLaunch, TheThirdWaitsForTheFirstThroughTheSecond) {
  // So an H200 does, whether the second waits or not.
  for (const char *wait : {kWait, ""}) {
    Chain chain = pastTheSecond(std::string(kTrigger) + wait, kWait);
    chain.reset(1);
    Exploration seen = chain.run(30, [&](const ExploredRun &run) {
      EXPECT_EQ(chain.read(3), chain.wanted(2)) << run.interleaving.to_string();
      return true;
    });
    for (const ExploredRun &run : seen.runs)
      for (const LaunchResult &result : run.launches)
        EXPECT_TRUE(result.findings.empty()) << result.to_string();
  }
}

TEST(DependentLaunch, ThePrimaryOfThePrimaryMayStillGoOn) {
  // The second triggers before it waits, or never waits: then the third may
  // begin while the first runs. So an H200 has it.
  for (const char *second :
       {"griddepcontrol.launch_dependents; griddepcontrol.wait;",
        "griddepcontrol.launch_dependents;", ""}) {
    Chain chain = pastTheSecond(second, "");
    Finding found = chain.expectOnly("pdl-wait", 2);
    EXPECT_EQ(found.where.line, 30);
    ASSERT_TRUE(found.other);
    EXPECT_EQ(found.other->where.line, 11);
    EXPECT_THAT(found.message, HasSubstr("the launch of third may begin before "
                                         "that of producer has ended"));
  }
}

TEST(DependentLaunch, WhoeverBeginsBehindAWaitBeginsBehindTheFirst) {
  // The second triggers behind its wait, or ends without a trigger.
  for (const char *second :
       {"griddepcontrol.wait; griddepcontrol.launch_dependents;",
        "griddepcontrol.wait;"}) {
    Chain chain = pastTheSecond(second, "");
    for (const ExploredRun &run : chain.run(30).runs)
      EXPECT_TRUE(run.launches[2].findings.empty())
          << run.launches[2].to_string();
  }
}

TEST(DependentLaunch, GridsLargerThanTheMachineEnd) {
  // One CTA has the shared memory of a multiprocessor, of which there are two.
  for (const char *wait : {kWait, ""}) {
    SimOptions options;
    options.device.sms = 2;
    options.threads = 3;
    Chain chain(
        {producer(),
         {.name = "second", .before = std::string(wait) + kTrigger, .line = 20},
         {.name = "third", .before = kWait, .line = 30}},
        8, options);
    for (LaunchDescription &launch : chain.launches)
      launch.dynamic_smem_bytes = 200 << 10;
    Exploration seen = chain.run(12);
    for (const ExploredRun &run : seen.runs) {
      EXPECT_EQ(run.launches.size(), 3u);
      for (const LaunchResult &result : run.launches)
        EXPECT_TRUE(result.is_finished) << result.to_string();
    }
  }
}

TEST(DependentLaunch, CtasThatWaitForOnesAtTheirTriggersGoOn) {
  // CTA 0 triggers, and then all meet.
  const char *meet = R"(
setp.eq.u32 %p1, %r1, 0;
@%p1 griddepcontrol.launch_dependents;
ld.param.u64 %a5, [to];
setp.eq.u32 %p3, %r3, 0;
@%p3 red.release.gpu.global.add.u32 [%a5+1020], 1;
again:
ld.acquire.gpu.global.u32 %r6, [%a5+1020];
setp.lt.u32 %p2, %r6, 9;
@%p2 bra again;
griddepcontrol.launch_dependents;
)";
  for (const char *wait : {kWait, ""}) {
    Chain chain({{.name = "producer", .before = meet, .line = 10},
                 {.name = "consumer", .before = wait, .line = 20}});
    chain.reset(1);
    if (*wait)
      chain.expectClean();
    else
      chain.expectOnly("pdl-wait", 1);
  }
}

TEST(DependentLaunch, ACounterOfBothIsNoFinding) {
  const char *count = R"(
ld.param.u64 %a5, [from];
red.relaxed.gpu.global.add.u32 [%a5+1020], 1;
)";
  Chain chain(
      {{.name = "producer",
        .before = std::string(kTrigger) + count,
        .line = 10},
       {.name = "consumer", .before = std::string(count) + kWait, .line = 20}});
  // One buffer has the counter, the others are their own.
  auto &launches = chain.launches;
  launches[1].parameters[0] = launches[0].parameters[0];
  chain.reset(0);
  for (const ExploredRun &run : chain.run(20).runs)
    for (const LaunchResult &result : run.launches)
      EXPECT_TRUE(result.findings.empty()) << result.to_string();
}

TEST(DependentLaunch, ACounterHidesNoMissingWait) {
  // Its CTAs may talk to each other, and are run in turns.
  const char *count = R"(
ld.param.u64 %a5, [from];
red.relaxed.gpu.global.add.u32 [%a5+1020], 1;
)";
  Chain chain({producer(), {.name = "consumer", .before = count, .line = 20}});
  chain.reset(1);
  EXPECT_EQ(chain.expectOnly("pdl-wait", 1).where.line, 20);
}

TEST(DependentLaunch, CopiesAreComparedToo) {
  // A bulk copy reads what the producer writes, before the wait or behind it.
  for (bool isEarly : {false, true}) {
    std::string copy = R"(
.shared .align 16 .b8 tile[128];
.shared .align 8 .b64 bar;
setp.eq.u32 %p1, %r3, 0;
mov.u32 %r5, bar;
mov.u32 %r6, tile;
@!%p1 bra skip;
mbarrier.init.shared.b64 [%r5], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
mbarrier.arrive.expect_tx.shared.b64 %a7, [%r5], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%a1], 128, [%r5];
again:
mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0;
@!%p2 bra again;
skip:
)";
    Chain chain({producer(),
                 {.name = "consumer",
                  .before = isEarly ? copy + kWait : kWait + copy,
                  .line = 20}});
    if (isEarly) {
      EXPECT_THAT(chain.expectOnly("pdl-wait", 1).instruction,
                  HasSubstr("cp.async.bulk"));
    } else {
      chain.expectClean(20);
    }
  }
}

TEST(DependentLaunch, AFlagBetweenTheTwoIsNoFinding) {
  // Nobody knows what it orders.
  const char *set = R"(
fence.acq_rel.gpu;
mov.u32 %r6, 9;
st.relaxed.gpu.global.u32 [%a2+512], %r6;
)";
  const char *poll = R"(
again:
ld.relaxed.gpu.global.u32 %r6, [%a1+512];
setp.ne.u32 %p1, %r6, 9;
@%p1 bra again;
fence.acq_rel.gpu;
)";
  Chain chain(
      {{.name = "producer", .before = kTrigger, .after = set, .line = 10},
       {.name = "consumer", .before = poll, .line = 20}});
  chain.reset(1);
  chain.expectClean(20);
}

TEST(DependentLaunch, AllowedAndTurnedDown) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  chain.sim.warn = {"pdl-wait"};
  EXPECT_EQ(chain.expectOnly("pdl-wait", 1, 3).grade, Finding::Grade::warning);
  chain.sim.warn = {};
  chain.sim.allow = {"pdl-wait"};
  for (const ExploredRun &run : chain.run().runs)
    EXPECT_TRUE(run.launches[1].findings.empty());
}

/// A trigger and a wait somewhere, or none.
static Step drawStep(std::mt19937 &random, int number) {
  Step step{.name = fmt::format("k{}", number), .line = 10 * (number + 1)};
  std::string *places[] = {&step.before, &step.between, &step.after};
  for (const char *word : {kTrigger, kWait})
    if (random() % 4)
      *places[random() % 3 % (word == kWait ? 2 : 3)] += word;
  return step;
}

TEST(DependentLaunch, WhatHasNoFindingGivesOneResult) {
  // Chains drawn at random over few buffers: the findings are the same in every
  // interleaving, and where there are none, so is memory.
  std::mt19937 random(33);
  int clean = 0, found = 0;
  for (int draw = 0; draw < 150; ++draw) {
    std::vector<Step> steps;
    for (int i = 0; i < 2 + draw % 3; ++i)
      steps.push_back(drawStep(random, i));
    Chain chain(steps, 1 + random() % 3);
    for (LaunchDescription &launch : chain.launches)
      for (LaunchParameter &parameter : launch.parameters)
        parameter = chain.launches[random() % 2].parameters[random() % 2];
    for (std::size_t i = 0; i <= steps.size(); ++i)
      chain.reset(i);
    std::set<std::vector<std::vector<std::uint32_t>>> memories;
    Exploration seen = chain.run(8, [&](const ExploredRun &) {
      std::vector<std::vector<std::uint32_t>> memory;
      for (std::size_t i = 0; i <= steps.size(); ++i)
        memory.push_back(chain.read(i));
      memories.insert(memory);
      return true;
    });
    std::set<std::string> texts;
    for (const ExploredRun &run : seen.runs) {
      std::string text;
      for (const LaunchResult &result : run.launches)
        for (const Finding &finding : result.findings)
          text += finding.to_string() + "\n";
      texts.insert(text);
    }
    EXPECT_EQ(texts.size(), 1u) << "draw " << draw;
    bool isClean = texts.begin()->empty();
    ++(isClean ? clean : found);
    if (isClean) {
      EXPECT_EQ(memories.size(), 1u) << "draw " << draw;
    }
  }
  EXPECT_GE(clean, 20);
  EXPECT_GE(found, 20);
}

/// Findings of the launch at the end of a stream.
static std::vector<Finding> enqueueAll(Chain &chain,
                                       const std::function<void()> &between) {
  std::vector<Finding> found;
  Stream stream = chain.device().create_stream(false);
  for (std::size_t i = 0; i < chain.launches.size(); ++i) {
    if (i > 0 && between)
      between();
    chain.device().enqueue(
        chain.launches[i], stream,
        [&](const LaunchResult &result) { found = result.findings; });
  }
  chain.device().synchronize(stream);
  return found;
}

TEST(DependentLaunch, LaunchesOfAStreamAreCheckedOneByOne) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  auto found = enqueueAll(chain, nullptr);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "pdl-wait");
  // The host has waited for the first.
  EXPECT_TRUE(enqueueAll(chain, [&] { chain.device().synchronize(); }).empty());
}

TEST(DependentLaunch, ExploredInAStreamEachIsComparedWithTheOneAhead) {
  Chain chain({producer(), {.name = "consumer", .line = 20}});
  Stream stream = chain.device().create_stream(false);
  for (int round = 0; round < 2; ++round) {
    std::vector<Exploration> seen;
    for (const LaunchDescription &launch : chain.launches)
      explore_in_stream(chain.device(), launch, stream,
                        {.interleavings = {.count = 5}},
                        [&](Exploration one) { seen.push_back(one); });
    ASSERT_EQ(seen.size(), 2u);
    ASSERT_EQ(seen[1].runs.size(), 5u);
    for (const ExploredRun &run : seen[1].runs) {
      ASSERT_EQ(run.launches[0].findings.size(), 1u);
      EXPECT_EQ(run.launches[0].findings[0].id, "pdl-wait");
    }
  }
}

TEST(DependentLaunch, AnEndedFirstLaunchEndsTheRun) {
  Chain chain({{.name = "producer", .before = kTrigger, .after = "trap;"},
               {.name = "consumer", .before = kWait, .line = 20}});
  for (const ExploredRun &run : chain.run(6).runs) {
    EXPECT_FALSE(run.is_finished);
    ASSERT_EQ(run.launches.size(), 1u);
    EXPECT_EQ(run.launches[0].findings.back().id, "trap");
  }
}

} // namespace kiln
