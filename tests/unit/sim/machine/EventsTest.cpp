// Events: what a watcher is told of a kernel, and that nobody is told of what
// he has not asked for.
#include "sim/launch/Launch.h"
#include "sim/machine/Machine.h"

#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln::sim {

namespace {
/// Writes down what it is told.
class Notes : public Watcher {
public:
  explicit Notes(EventMask mask) : mask_(mask) {}

  EventMask interests() const override { return mask_; }
  using Watcher::on;
  void on(const WarpBegin &) override { add("warp begins"); }
  void on(const CtaBegin &) override { add("CTA begins"); }
  void on(const LanesEnd &event) override {
    add(fmt::format("{} lanes end", countLanes(event.lanes)));
  }
  void on(const CtaEnd &) override { add("CTA ends"); }
  void on(const InstructionBegin &event) override {
    add("begin " + event.op.origin->opcode);
  }
  void on(const InstructionEnd &event) override {
    add("end " + event.op.origin->opcode);
  }
  void on(const ThreadAccess &event) override {
    LaneAccess last{};
    for (const LaneAccess one : event.accesses)
      last = one;
    std::string text = fmt::format(
        "{} lanes {} {} bytes of {}, the last at {}", event.accesses.size(),
        last.isWrite ? "write" : "read", last.bytes,
        last.owner ? "shared" : "global", last.owner ? last.address : 0);
    if (last.isSame)
      text += ", as before";
    if (event.values) {
      std::uint32_t value;
      std::memcpy(&value, event.values + last.lane * ThreadAccess::kValueBytes,
                  4);
      text += fmt::format(", the value {}", value);
    }
    add(text);
  }
  void on(const AsyncBegin &) override { add("asynchronous"); }
  void on(const AsyncAccess &event) override {
    add(fmt::format(
        "lane {} copies: {} {} bytes of {}", firstLane(event.issuers),
        event.isWrite ? "writes" : "reads", event.runs.front().bytes,
        event.owner ? "shared" : "global"));
  }
  void on(const CopyGroup &event) override {
    add(fmt::format("{} of lane {}",
                    event.what == CopyGroup::What::commit ? "commit" : "wait",
                    event.lane));
  }
  void on(const MbarrierEvent &event) override {
    static constexpr const char *kWords[] = {"init", "inval",  "use",
                                             "copy", "arrive", "wait"};
    add(fmt::format("mbarrier {} by {} lanes",
                    kWords[static_cast<int>(event.what)],
                    countLanes(event.lanes)));
  }
  void on(const MbarrierPhase &) override { add("phase"); }
  void on(const CtaBarrierArrive &event) override {
    add(fmt::format("{} lanes arrive", countLanes(event.lanes)));
  }
  void on(const CtaBarrierWait &) override { add("they have met"); }
  void on(const WarpBarrier &event) override {
    add(fmt::format("{} lanes meet", countLanes(event.lanes)));
  }
  void on(const Fence &) override { add("fence"); }

  std::string text;

private:
  void add(const std::string &line) { text += line + '\n'; }

  EventMask mask_;
};

/// A warp that runs some instructions under the eyes of watchers.
class Watched {
public:
  explicit Watched(const std::string &instructions)
      : module_(ptx::parse(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out)
{{
.shared .align 16 .b8 tile[256];
.shared .align 8 .b64 barrier;
.reg .b32 %t, %s, %bar, %r<8>;
.reg .b64 %out, %x<8>;
.reg .pred %p<4>;
mov.u32 %t, %tid.x;
shl.b32 %r0, %t, 2;
mov.u32 %s, tile;
add.u32 %s, %s, %r0;
mov.u32 %bar, barrier;
setp.eq.u32 %p0, %t, 0;
ld.param.u64 %out, [out];
{}
ret;
}}
)",
                                       instructions))),
        out_(memory_.allocate(4096, "out")),
        launch_(memory_, module_, module_.functions.at(0), config()) {}

  void run(Watcher &watcher) {
    Cluster cluster(launch_.machine(), {0, 0, 0}, 0, &watcher);
    EXPECT_TRUE(cluster.step(/*isAlone=*/true));
  }
  std::string told(EventMask mask) {
    Notes notes(mask);
    run(notes);
    return notes.text;
  }
  Machine &machine() { return launch_.machine(); }

private:
  LaunchConfig config() {
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.checks = false;
    config.params.resize(8);
    std::memcpy(config.params.data(), &out_.base, 8);
    return config;
  }

  ptx::Module module_;
  GlobalMemory memory_;
  Region &out_;
  Launch launch_;
};
} // namespace

TEST(Events, AccessesNameTheirBytesAndLanes) {
  Watched kernel(R"(
    st.shared.u32 [%s], %t;
    st.shared.u32 [%s], %t;
    ld.shared.v2.u32 {%r1, %r2}, [tile+8];
    @%p0 st.global.u32 [%out], 7;
)");
  EXPECT_EQ(kernel.told(maskOf(EventKind::access)),
            "32 lanes write 4 bytes of shared, the last at 124\n"
            "32 lanes write 4 bytes of shared, the last at 124, as before\n"
            "32 lanes read 8 bytes of shared, the last at 8\n"
            "1 lanes write 4 bytes of global, the last at 0\n");
  // Of values only weak stores to global memory tell.
  std::string all =
      kernel.told(maskOf(EventKind::access, EventKind::storedValue));
  EXPECT_NE(all.find("global, the last at 0, as before, the value 7\n"),
            std::string::npos)
      << all;
}

TEST(Events, LifetimesFollowOneAnother) {
  EXPECT_EQ(Watched("").told(maskOf(EventKind::lifetime)),
            "warp begins\nCTA begins\n32 lanes end\nCTA ends\n");
}

TEST(Events, InstructionsBeginAndEnd) {
  std::string told =
      Watched("bar.sync 0;")
          .told(maskOf(EventKind::instruction, EventKind::barrier));
  EXPECT_NE(told.find("begin ld\nend ld\nbegin bar\n32 lanes arrive\n"
                      "they have met\nend bar\nbegin ret\nend ret\n"),
            std::string::npos)
      << told;
}

TEST(Events, BarriersTellOfArrivalsWaitsAndPhases) {
  Watched kernel(R"(
    @%p0 mbarrier.init.shared.b64 [%bar], 2;
    bar.warp.sync 0xffffffff;
    @%p0 mbarrier.arrive.shared.b64 %x1, [%bar], 2;
    mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 0;
    fence.acq_rel.gpu;
)");
  EXPECT_EQ(
      kernel.told(maskOf(EventKind::barrier)),
      "mbarrier init by 1 lanes\n32 lanes meet\n"
      "mbarrier use by 1 lanes\nmbarrier arrive by 1 lanes\nphase\n" +
          [] {
            std::string waits = "mbarrier use by 1 lanes\n"
                                "mbarrier wait by 32 lanes\n";
            for (int lane = 1; lane < 32; ++lane)
              waits += "mbarrier use by 1 lanes\n";
            return waits;
          }());
  EXPECT_EQ(kernel.told(maskOf(EventKind::fence)), "fence\n");
}

TEST(Events, AsynchronousCopiesTellOfTheirGroups) {
  Watched kernel(R"(
    @%p0 cp.async.ca.shared.global [%s], [%out], 4;
    @%p0 cp.async.commit_group;
    @%p0 cp.async.wait_group 0;
)");
  EXPECT_EQ(kernel.told(maskOf(EventKind::async, EventKind::access)),
            "asynchronous\n"
            "lane 0 copies: writes 4 bytes of shared\n"
            "lane 0 copies: reads 4 bytes of global\n"
            "commit of lane 0\nwait of lane 0\n");
}

TEST(Events, OnlyWhoAsksIsTold) {
  Watched kernel("st.shared.u32 [%s], %t;\nbar.sync 0;");
  Notes fences(maskOf(EventKind::fence));
  Cluster cluster(kernel.machine(), {0, 0, 0}, 0, &fences);
  EXPECT_TRUE(cluster.watchers().wants(EventKind::fence));
  EXPECT_FALSE(cluster.watchers().wants(EventKind::access));
  Notes barriers(maskOf(EventKind::barrier));
  cluster.watchers().add(barriers);
  EXPECT_TRUE(cluster.watchers().wants(EventKind::barrier));
  EXPECT_FALSE(cluster.watchers().wants(EventKind::access));
  EXPECT_TRUE(cluster.step(/*isAlone=*/true));
  EXPECT_EQ(fences.text, "");
  EXPECT_EQ(barriers.text, "32 lanes arrive\nthey have met\n");
}

namespace {
/// Counts the checks that are under way, and those that were.
struct CountingClock : CheckClock {
  void beginCheck() override { ++begun; }
  void endCheck() override { ++ended; }
  int begun = 0, ended = 0;
};

/// What the clock says while it is told of a fence.
struct Witness : Watcher {
  explicit Witness(const CountingClock &clock) : clock(clock) {}
  EventMask interests() const override { return maskOf(EventKind::fence); }
  using Watcher::on;
  void on(const Fence &) override {
    order = clock.begun;
    isInside = clock.begun > clock.ended;
  }
  const CountingClock &clock;
  int order = -1;
  bool isInside = false;
};
} // namespace

TEST(Events, TheTimeOfChecksIsCounted) {
  Watched kernel("fence.acq_rel.gpu;");
  CountingClock clock;
  Witness first(clock), check(clock), last(clock);
  Cluster cluster(kernel.machine(), {0, 0, 0}, 0, &check);
  cluster.watchers().addFirst(first);
  cluster.watchers().add(last);
  cluster.watchers().setClock(&clock);
  EXPECT_TRUE(cluster.step(/*isAlone=*/true));
  EXPECT_EQ(clock.begun, 1);
  EXPECT_EQ(clock.ended, 1);
  EXPECT_EQ(first.order, 0) << "before the check";
  EXPECT_TRUE(check.isInside);
  EXPECT_FALSE(first.isInside || last.isInside);
  EXPECT_EQ(last.order, 1) << "behind it";
}

} // namespace kiln::sim
