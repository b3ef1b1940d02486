// Strategy: who goes next is chosen from outside, turn by turn.
#include "sim/machine/Strategy.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "unit/sim/RunKernel.h"

#include <random>

namespace kiln::sim {
namespace {

/// Chooses by a function, and stops before atomics.
class ByFunction final : public Strategy {
public:
  using Choose = std::function<std::size_t(std::span<const Ready>)>;
  explicit ByFunction(Choose choose) : choose_(std::move(choose)) {}

  void begin(Machine &machine) override {
    for (const Op &op : machine.code().ops)
      stops_.push_back(op.effect->kind == EffectKind::atomic);
  }
  void begin(Cluster &cluster) override { begun.push_back(cluster.number()); }
  Turn choose(std::span<const Ready> ready) override {
    ++turns;
    return {choose_(ready), 512, stops_.data()};
  }
  void giveUp() override { ++givenUp; }

  std::vector<std::uint64_t> begun;
  int turns = 0, givenUp = 0;

private:
  Choose choose_;
  std::vector<std::uint8_t> stops_;
};

/// The first of a kind; else the first.
std::size_t firstOf(std::span<const Ready> ready, Ready::Kind kind) {
  for (std::size_t i = 0; i < ready.size(); ++i)
    if (ready[i].kind == kind)
      return i;
  return ready.empty() ? Turn::kNone : 0;
}

/// Each warp takes a ticket, and leaves it at its number.
const char *const kTickets = R"(
  and.b32 %r1, %t, 31;
  setp.ne.u32 %p0, %r1, 0;
  @%p0 bra done;
  atom.global.add.u32 %r0, [%out], 1;
  shr.u32 %r1, %t, 5;
  mad.wide.u32 %x0, %r1, 4, %out;
  st.global.u32 [%x0+4], %r0;
done:
)";

/// A copy of 1024 bytes that thread 0 issues and everybody waits for.
const char *const kCopy = R"(
  setp.ne.u32 %p0, %t, 0;
  @%p0 bra wait;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 1024;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 1024, [%bar];
wait:
  bar.sync 0;
again:
  mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;
  @!%p1 bra again;
  shl.b32 %r0, %t, 2;
  add.u32 %r1, %s, %r0;
  ld.shared.u32 %r2, [%r1];
  mad.wide.u32 %x0, %t, 4, %out;
  st.global.u32 [%x0], %r2;
)";

} // namespace

TEST(Strategy, HoldsAWarp) {
  for (int held = 0; held < 3; ++held) {
    RunKernel run(kTickets);
    run.config.block = {96, 1, 1};
    run.output(std::vector<std::uint32_t>(8, 0));
    auto strategy =
        std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
          for (std::size_t i = 0; i < ready.size(); ++i)
            if (!ready[i].warp || ready[i].warp->index() != held)
              return i;
          return std::size_t(0);
        });
    run.config.strategy = strategy;
    run.runCleanly(Interleaving::eager);
    EXPECT_EQ(run.result<std::uint32_t>(0), 3u);
    EXPECT_EQ(run.result<std::uint32_t>(1 + held), 2u) << held;
    EXPECT_EQ(strategy->givenUp, 0);
  }
}

TEST(Strategy, WorkIsDoneWhenItIsChosen) {
  for (Ready::Kind first : {Ready::Kind::lanes, Ready::Kind::work}) {
    RunKernel run(kCopy);
    run.config.block = {64, 1, 1};
    run.input(counting<std::uint32_t>(256));
    run.output(std::vector<std::uint32_t>(64, 0));
    int works = 0;
    run.config.strategy =
        std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
          std::size_t chosen = firstOf(ready, first);
          works +=
              chosen < ready.size() && ready[chosen].kind == Ready::Kind::work;
          return chosen;
        });
    run.runCleanly(Interleaving::eager);
    EXPECT_EQ(works, 1);
    for (std::uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), i);
  }
}

TEST(Strategy, ClustersBecomeResidentWhenTheyAreChosen) {
  RunKernel run(kTickets);
  run.config.grid = {4, 1, 1};
  run.output(std::vector<std::uint32_t>(8, 0));
  std::size_t most = 0;
  auto strategy =
      std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
        std::size_t lanes = 0;
        for (const Ready &one : ready)
          lanes += one.kind == Ready::Kind::lanes;
        most = std::max(most, lanes);
        return firstOf(ready, Ready::Kind::cluster);
      });
  run.config.strategy = strategy;
  run.config.allow = {"race"}; // all leave their ticket at one place
  run.runCleanly(Interleaving::eager);
  EXPECT_EQ(strategy->begun, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_GE(most, 4u); // some of their lanes have parted
  EXPECT_EQ(run.result<std::uint32_t>(0), 4u);
}

TEST(Strategy, LanesStopWhereTheyAreTold) {
  RunKernel run(kTickets);
  run.config.block = {64, 1, 1};
  run.output(std::vector<std::uint32_t>(8, 0));
  int stops = 0;
  run.config.strategy =
      std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
        for (const Ready &one : ready)
          if (one.warp) {
            const Op &op =
                one.warp->code().ops[one.warp->groups()[one.group].pc];
            stops += op.effect->kind == EffectKind::atomic;
          }
        return firstOf(ready, Ready::Kind::lanes);
      });
  run.runCleanly(Interleaving::eager);
  EXPECT_GE(stops, 2);
  EXPECT_EQ(run.result<std::uint32_t>(0), 2u);
}

TEST(Strategy, AnyOrderIsFine) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RunKernel run(kCopy);
    run.config.block = {128, 1, 1};
    run.input(counting<std::uint32_t>(256));
    run.output(std::vector<std::uint32_t>(128, 0));
    std::mt19937_64 random(seed);
    run.config.strategy =
        std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
          return ready.empty() ? Turn::kNone : random() % ready.size();
        });
    run.runCleanly(Interleaving::eager);
    for (std::uint32_t i = 0; i < 128; ++i)
      ASSERT_EQ(run.result<std::uint32_t>(i), i) << seed;
  }
}

TEST(Strategy, ADeadlockIsToldAsWithoutOne) {
  RunKernel run(R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra done;
    mbarrier.init.shared.b64 [%bar], 1;
  again:
    mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;
    @!%p1 bra again;
  done:
  )");
  std::string without = run.finding();
  auto strategy =
      std::make_shared<ByFunction>([&](std::span<const Ready> ready) {
        return firstOf(ready, Ready::Kind::lanes);
      });
  run.config.strategy = strategy;
  EXPECT_EQ(run.finding(), without);
  expectContains(without, "deadlock: ");
  EXPECT_EQ(strategy->givenUp, 1);
}

} // namespace kiln::sim
