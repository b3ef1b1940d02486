// Report: timelines, statistics, residency, and the options of a run.
#include "kiln/check/sim.h"
#include "kiln/run/assemble.h"
#include "sim/launch/Residency.h"
#include "unit/sim/RunKernel.h"

#include <algorithm>
#include <map>

namespace kiln::sim {

/// Thread 0 copies 1024 bytes, everyone waits for them.
static const char *const kCopy = R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra ready;
    mbarrier.init.shared::cta.b64 [barrier], 1;
  ready:
    bar.sync 0;
    @%p0 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 %x0, [barrier], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [tile], [%in], 1024, [barrier];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra wait;
    st.global.u32 [%out], %t;
)";

static constexpr Timeline::Row kFirstWarp{Timeline::Agent::warp, 0};

TEST(Report, AWaitEndsWhenTheCopyDoes) {
  std::vector<std::uint64_t> ends;
  for (Interleaving order : kOrders) {
    RunKernel run(kCopy);
    run.input(counting<std::uint32_t>(256));
    run.config.interleaving = order;
    run.config.timeline = true;
    LaunchResult result = run.run();
    const Timeline::Event *copy = nullptr, *wait = nullptr, *store = nullptr;
    for (const Timeline::Event &event : result.timeline.events) {
      if (event.row.agent == Timeline::Agent::tma)
        copy = &event;
      if (event.row == kFirstWarp && event.kind == Timeline::Kind::wait)
        wait = &event;
      if (event.row == kFirstWarp && event.kind == Timeline::Kind::store)
        store = &event;
    }
    ASSERT_TRUE(copy && wait && store);
    EXPECT_EQ(copy->end - copy->start, 32u); // 32 bytes in a unit
    EXPECT_EQ(copy->slot, 0);
    EXPECT_EQ(wait->name(), "wait full");
    EXPECT_EQ(wait->slot, 0);
    EXPECT_EQ(wait->end, copy->end);
    EXPECT_GE(store->start, wait->end);
    ends.push_back(copy->end);
  }
}

TEST(Report, CopiesOfThreadsAreDrawn) {
  RunKernel run(R"(
    shl.b32 %r0, %t, 4;
    cvt.u64.u32 %x0, %r0;
    add.u64 %x1, %in, %x0;
    add.u32 %r1, %s, %r0;
    cp.async.cg.shared.global [%r1], [%x1], 16;
    cp.async.commit_group;
    cp.async.cg.shared.global [%r1+1024], [%x1], 16;
    cp.async.wait_group 0;
    cp.async.wait_all;
)");
  run.input(counting<std::uint32_t>(256));
  run.config.timeline = true;
  LaunchResult result = run.run();
  std::vector<Timeline::Event> copies, waits;
  for (const Timeline::Event &event : result.timeline.events)
    (event.row.agent == Timeline::Agent::cp_async ? copies : waits)
        .push_back(event);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].end - copies[0].start, 16u) << "32 times 16 bytes";
  EXPECT_EQ(copies[1].start, copies[0].end) << "one after another";
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].name(), "wait copies");
  EXPECT_EQ(waits[0].end, copies[0].end) << "of the committed group alone";
  EXPECT_EQ(waits[1].end, copies[1].end) << "of all";
  expectContains(result.timeline.to_table(), "| cp.async |");
}

/// The table of kernels that neither copy nor multiply has their warps.
TEST(Report, PlainKernelsAreDrawn) {
  auto device = open_sim({.timeline = true});
  Buffer memory = device->allocate(256);
  device->fill(memory, 0);
  LaunchResult result = device->launch({.ptx = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry plain(.param .u64 p)
{
.reg .pred %q;
.reg .b32 %r<4>;
.reg .b64 %p, %x;
.loc 1 6 0
ld.param.u64 %p, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %x, %r1, 4;
add.u64 %p, %p, %x;
.loc 1 7 0
ld.u32 %r2, [%p];
setp.ge.u32 %q, %r1, 32;
@%q bra done;
add.u32 %r2, %r2, 1;
add.u32 %r2, %r2, 1;
.loc 1 12 0
st.global.u32 [%p], %r2;
done:
.loc 1 14 0
bar.sync 0;
ret;
}
.file 1 "plain.cu"
)",
                                        .block = {64, 1, 1},
                                        .parameters = {{memory}}});
  std::string table = result.timeline.to_table();
  expectContains(table, "| warp 0     | warp 1     |\n");
  expectContains(table, "| load :7    | load :7    |\n");
  expectContains(table, "| store :12  | wait :14   |\n");
  expectContains(table,
                 "load: plain.cu:7\nstore: plain.cu:12\nwait: plain.cu:14\n");
  expectContains(result.timeline.to_trace(), R"("source":"plain.cu:7")");
}

TEST(Report, ASlotIsNotFullWhoseBarrierNeverCompleted) {
  RunKernel run(kCopy);
  run.input(counting<std::uint32_t>(256));
  run.config.timeline = true;
  auto isFull = [](const LaunchResult &result) {
    return result.timeline.to_table().find("full") != std::string::npos;
  };
  EXPECT_TRUE(isFull(run.run()));
  // One byte more is expected than comes.
  std::string text = kCopy;
  text.replace(text.find("1024;"), 5, "1040;");
  RunKernel never(text);
  never.input(counting<std::uint32_t>(256));
  never.config.timeline = true;
  LaunchResult result = never.run();
  ASSERT_EQ(result.findings.back().id, "deadlock");
  EXPECT_FALSE(isFull(result)) << result.timeline.to_table();
  expectContains(result.timeline.to_table(), "| loading |");
  expectContains(result.timeline.to_trace(), R"("complete":false)");
}

TEST(Report, WaitsAndCopiesSayTheirBarrier) {
  RunKernel run(kCopy);
  run.input(counting<std::uint32_t>(256));
  run.config.timeline = true;
  LaunchResult result = run.run();
  expectContains(result.timeline.to_table(), "mbarriers of tma: barrier\n"
                                             "mbarriers of wait: barrier\n");
  expectContains(result.timeline.to_trace(), R"("mbarrier":"barrier")");
}

/// A pipeline of two slots: two loads, two products.
static Timeline smallTimeline() {
  using Kind = Timeline::Kind;
  using Agent = Timeline::Agent;
  using Awaited = Timeline::Awaited;
  Timeline timeline;
  auto add = [&](Timeline::Row row, Kind kind, int slot, std::uint64_t start,
                 std::uint64_t end, Awaited awaited = Awaited::mbarrier) {
    timeline.events.push_back(
        {{0, 0, 0}, row, kind, awaited, slot, start, end});
  };
  add({Agent::tma}, Kind::load, 0, 0, 10);
  add({Agent::warp, 0}, Kind::wait, 0, 2, 10, Awaited::full);
  add({Agent::tma}, Kind::load, 1, 10, 20);
  add({Agent::wgmma, 0}, Kind::mma, 0, 10, 25);
  add({Agent::warp, 4}, Kind::wait, 0, 12, 25, Awaited::empty);
  add({Agent::tma}, Kind::load, 0, 25, 35);
  add({Agent::wgmma, 0}, Kind::mma, 1, 25, 40);
  return timeline;
}

TEST(Report, ATableShowsProducerSlotsAndConsumers) {
  EXPECT_EQ(smallTimeline().to_table(),
            R"(CTA (0, 0, 0); a unit of time is one warp instruction
+--------+----------+---------+---------+----------+
|   time | producer | slot 0  | slot 1  | wgroup 0 |
+--------+----------+---------+---------+----------+
|      0 | tma-0    | loading |         |          |
|      2 | tma-0    | loading |         | wait-0   |
|     10 | tma-1    | in use  | loading | mma-0    |
|     20 | wait-0   | in use  | full    | mma-0    |
|     25 | tma-0    | loading | in use  | mma-1    |
|     35 |          | full    | in use  | mma-1    |
|     40 |          | full    |         |          |
+--------+----------+---------+---------+----------+
)");
  expectContains(smallTimeline().to_table(2), "|    ... |\n");
  EXPECT_EQ(Timeline().to_table(),
            "no copies, products or waits in the first CTA\n");
}

TEST(Report, ATraceNamesRowsAndSlots) {
  std::string trace = smallTimeline().to_trace();
  expectContains(
      trace, R"("name":"thread_name","pid":0,"tid":0,"args":{"name":"tma"})");
  expectContains(
      trace,
      R"("name":"tma load 1","cat":"load","pid":0,"tid":0,"ts":10,"dur":10,"args":{"ptx_line":0,"slot":1})");
}

TEST(Report, RowsAndEventsHaveNames) {
  using Kind = Timeline::Kind;
  using Agent = Timeline::Agent;
  using Awaited = Timeline::Awaited;
  auto name = [](Agent agent, Kind kind, Awaited awaited = {}) {
    return Timeline::Event{.row = {agent, 3}, .kind = kind, .awaited = awaited}
        .name();
  };
  EXPECT_EQ(Timeline::Row({Agent::warp, 12}).to_string(), "warp 12");
  EXPECT_EQ(Timeline::Row({Agent::wgmma, 1}).to_string(), "wgmma 1");
  EXPECT_EQ(Timeline::Row({Agent::tma, 1}).to_string(), "tma");
  EXPECT_EQ(Timeline::Row({Agent::cp_async}).to_string(), "cp.async");
  EXPECT_EQ(Timeline::Row({Agent::tcgen05}).to_string(), "tcgen05");
  EXPECT_EQ(name(Agent::tma, Kind::load), "tma load");
  EXPECT_EQ(name(Agent::tma, Kind::store), "tma store");
  EXPECT_EQ(name(Agent::cp_async, Kind::load), "cp.async");
  EXPECT_EQ(name(Agent::warp, Kind::load), "load");
  EXPECT_EQ(name(Agent::warp, Kind::store), "store");
  EXPECT_EQ(name(Agent::wgmma, Kind::mma), "wgmma");
  EXPECT_EQ(name(Agent::tcgen05, Kind::mma), "tcgen05.mma");
  EXPECT_EQ(name(Agent::warp, Kind::wait), "wait");
  EXPECT_EQ(name(Agent::warp, Kind::wait, Awaited::empty), "wait empty");
  EXPECT_EQ(name(Agent::warp, Kind::wait, Awaited::wgmma), "wait wgmma");
  EXPECT_EQ(name(Agent::warp, Kind::wait, Awaited::cta_barrier),
            "wait barrier");
  EXPECT_EQ(name(Agent::warp, Kind::wait, Awaited::cluster_barrier),
            "wait cluster");
}

TEST(Report, StatisticsCountByClass) {
  RunKernel run(kCopy);
  run.input(counting<std::uint32_t>(256));
  run.config.stats = true;
  LaunchResult result = run.run();
  std::map<std::string, std::uint64_t> counts;
  for (const LaunchStats::Cost &cost : result.stats.costs)
    counts[cost.name] = cost.instructions;
  EXPECT_EQ(counts.size(), 7u);
  EXPECT_EQ(counts["tma"], 1u);
  EXPECT_GE(counts["barrier"], 4u);
  EXPECT_GT(result.stats.shadow_bytes, 8192u / 8);
  expectContains(result.to_string(), "bytes of shadow memory");
  expectContains(jsonOf(result), "\"shadow_bytes\"");
}

/// How long the checks take beside the memory's instructions in a kernel that
/// counts by atomics in shared memory: the least and the most of some runs.
static std::pair<double, double> checksBesideMemory(bool hasChecks) {
  RunKernel run(R"(
    mov.u32 %r2, 0;
    shl.b32 %r1, %t, 2;
    and.b32 %r1, %r1, 1020;
    add.u32 %r1, %r1, %s;
    st.shared.u32 [%r1], %r2;
    bar.sync 0;
  again:
    mad.lo.u32 %r3, %t, 28, %r2;
    and.b32 %r3, %r3, 1020;
    add.u32 %r3, %r3, %s;
    atom.shared.add.u32 %r4, [%r3], 1;
    add.u32 %r2, %r2, 4;
    setp.lt.u32 %p0, %r2, 512;
    @%p0 bra again;
)");
  run.config.block = {256, 1, 1};
  run.config.stats = true;
  run.config.checks = hasChecks;
  std::vector<double> ratios(9);
  for (double &ratio : ratios) {
    std::map<std::string, double> times;
    for (const LaunchStats::Cost &cost : run.run().stats.costs)
      times[cost.name] = cost.time_us;
    ratio = times["checks"] / times["memory"];
  }
  auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return {*least, *most};
}

/// The order of accesses is a check, wherever it is kept. One run of several
/// that nothing disturbs is enough to tell.
TEST(Report, StatisticsTellChecksFromMemory) {
  EXPECT_LT(checksBesideMemory(false).first, 0.5);
  EXPECT_GT(checksBesideMemory(true).second, 0.5);
}

TEST(Report, ResidencyFollowsTheDevice) {
  LaunchConfig config;
  config.device = DeviceDescription::h200();
  config.device.sms = 4;
  config.block = {256, 1, 1};
  auto of = [&](std::uint32_t smem, int registers) {
    config.dynamicSmemBytes = smem;
    config.registers_at_entry = registers;
    return residencyOf(config, 0);
  };
  EXPECT_EQ(of(0, 0).perSm, 8);
  EXPECT_STREQ(of(0, 0).limit, "threads");
  EXPECT_EQ(of(0, 168).perSm, 1);
  EXPECT_STREQ(of(0, 168).limit, "registers");
  EXPECT_EQ(of(100 * 1024, 32).perSm, 2);
  EXPECT_STREQ(of(100 * 1024, 32).limit, "shared memory");
  EXPECT_EQ(of(100 * 1024, 32).ctas, 8u);
  config.cluster = {3, 1, 1};
  EXPECT_EQ(of(100 * 1024, 32).ctas, 6u);
}

TEST(Report, SetmaxnregNeedsAKnownNumber) {
  RunKernel run("setmaxnreg.dec.sync.aligned.u32 40;");
  run.config.block = {128, 1, 1};
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "setmaxnreg-ignored");
  EXPECT_EQ(result.findings[0].grade, Finding::Grade::warning);
  expectContains(result.findings[0].message,
                 "setmaxnreg has no effect: the entry says neither .maxnreg "
                 "nor .reqntid or .maxntid");
  run.config.registers_at_entry = 64;
  EXPECT_EQ(run.finding(), "");
}

TEST(Report, NoThreadStartsWithMoreRegistersThanSetmaxnregAsksFor) {
  // Without ptxas the number of threads gives a bound, here 256 and 168.
  setenv("KILN_PTXAS", "/no/ptxas", 1);
  auto registersOf = [](int threads) {
    auto device = open_sim({});
    return device
        ->launch({.ptx = fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry test()
.reqntid {}
{{
.reg .u32 %r<2>;
.reg .pred %p;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p, %r1, 128;
@%p bra more;
setmaxnreg.dec.sync.aligned.u32 40;
ret;
more:
setmaxnreg.inc.sync.aligned.u32 232;
ret;
}}
)",
                                     threads),
                  .grid = {1, 1, 1},
                  .block = {static_cast<std::uint32_t>(threads), 1, 1}})
        .registers;
  };
  EXPECT_EQ(registersOf(256), 232);
  EXPECT_EQ(registersOf(384), 168);
  unsetenv("KILN_PTXAS");
}

/// Registers are handed out in units of eight, and 255 are 256, whoever says
/// so: setmaxnreg to 256 has nothing to wait for.
TEST(Report, TwoHundredFiftyFiveRegistersAreOneMore) {
  auto run = [](const std::string &directives, const std::string &body,
                const SimOptions &options) {
    std::string text =
        ".version 8.6\n.target sm_90a\n.address_size 64\n"
        ".visible .entry test(.param .u64 p)\n" +
        directives +
        "\n{\n.reg .f32 %f<300>;\n.reg .b64 %p;\nld.param.u64 %p, [p];\n" +
        body + "setmaxnreg.inc.sync.aligned.u32 256;\nret;\n}\n";
    auto device = open_sim(options);
    Buffer memory = device->allocate(4096);
    device->fill(memory, 0);
    return device->launch(
        {.ptx = text, .block = {128, 1, 1}, .parameters = {{memory}}});
  };
  auto expectFree = [](const LaunchResult &result, const char *from) {
    EXPECT_EQ(result.registers, 256);
    EXPECT_EQ(result.registers_from, from);
    EXPECT_TRUE(result.findings.empty()) << result.to_string();
  };
  setenv("KILN_PTXAS", "/no/ptxas", 1);
  expectFree(run(".maxnreg 255", "", {}), ".maxnreg");
  expectFree(run(".reqntid 128", "", {}), ".reqntid and .minnctapersm");
  expectFree(run(".reqntid 128", "", {.registers_at_entry = 255}),
             "the launch");
  LaunchResult fewer = run(".reqntid 128", "", {.registers_at_entry = 248});
  ASSERT_EQ(fewer.findings.size(), 1u);
  EXPECT_EQ(fewer.findings[0].id, "deadlock");
  expectContains(fewer.findings[0].message, "setmaxnreg 256: 0 registers");
  unsetenv("KILN_PTXAS");
  if (!find_ptxas())
    GTEST_SKIP() << "there is no ptxas";
  // More values at once than a thread has registers.
  std::string body;
  for (int i = 0; i < 300; ++i)
    body += fmt::format("ld.volatile.global.f32 %f{}, [%p+{}];\n", i, 4 * i);
  for (int i = 0; i < 300; ++i)
    body += fmt::format("st.volatile.global.f32 [%p+{}], %f{};\n", 4 * i, i);
  expectFree(run(".maxntid 128\n.minnctapersm 1", body, {.checks = false}),
             "ptxas");
}

TEST(Report, UnknownIdsAreRefusedWithTheList) {
  auto text = [](const SimOptions &options) -> std::string {
    try {
      open_sim(options);
    } catch (const UserError &error) {
      return error.what();
    }
    return "";
  };
  expectContains(text({.allow = {"nonsense"}}),
                 "'nonsense' is not a finding of the simulator; there are "
                 "acquire-fence, assert, "
                 "async-copy-size");
  expectContains(text({.warn = {"nonsense"}}), "'nonsense' is not a finding");
  EXPECT_EQ(text({.allow = {"deadlock"}, .warn = {"out-of-bounds"}}), "");
}

TEST(Report, ProgressIsTold) {
  RunKernel run("st.global.u32 [%out], %t;");
  run.config.grid = {6, 1, 1};
  std::vector<std::uint64_t> done;
  run.config.progress = [&](std::uint64_t now, std::uint64_t total) {
    EXPECT_EQ(total, 6u);
    done.push_back(now);
  };
  run.run();
  EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
}

} // namespace kiln::sim
