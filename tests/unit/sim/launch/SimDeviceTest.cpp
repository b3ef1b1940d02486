// Device: what the simulator offers beyond launches of text: modules, memory
// that the host shares, streams in which something waits, snapshots.
#include "kiln/base/error.h"
#include "kiln/check/sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <malloc.h>
#include <mutex>

namespace kiln {

using ::testing::HasSubstr;

static constexpr std::string_view kAdd = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 base = 5;
.visible .entry add(.param .u64 out, .param .u32 by)
.maxntid 64
{
.reg .u32 %r<4>;
.reg .u64 %a<2>;
ld.param.u64 %a1, [out];
ld.param.u32 %r1, [by];
ld.global.u32 %r2, [base];
add.u32 %r3, %r1, %r2;
st.global.u32 [%a1], %r3;
ret;
}
)";

/// Waits for [wanted], then writes [set].
static constexpr std::string_view kWait = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry wait(.param .u64 wanted, .param .u64 set)
{
.reg .u32 %r<3>;
.reg .u64 %a<3>;
.reg .pred %p;
ld.param.u64 %a1, [wanted];
ld.param.u64 %a2, [set];
again:
ld.acquire.sys.global.u32 %r1, [%a1];
setp.eq.u32 %p, %r1, 0;
@%p bra again;
mov.u32 %r2, 1;
st.release.sys.global.u32 [%a2], %r2;
ret;
}
)";

template <typename T> static LaunchParameter raw(const T &value) {
  const auto *bytes = reinterpret_cast<const std::byte *>(&value);
  return {std::vector<std::byte>(bytes, bytes + sizeof(T))};
}

static std::shared_ptr<LoadedModule> load(Device &device,
                                          std::string_view text) {
  return device.load(std::span(&text, 1));
}

static std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const UserError &error) {
    return error.message();
  }
  return "";
}

TEST(SimDevice, ModulesAreLoadedOnce) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  EXPECT_THAT(module->entries(), testing::ElementsAre("add"));
  const EntryInfo &entry = module->entry("add");
  EXPECT_THAT(entry.parameter_bytes, testing::ElementsAre(8, 4));
  EXPECT_THAT(entry.parameter_offsets, testing::ElementsAre(0, 8, 12));
  EXPECT_EQ(entry.max_threads, 64);
  EXPECT_GT(module->registers("add"), 0);
  Buffer base = module->variable("base"), out = device->allocate(4);
  EXPECT_EQ(base.bytes(), 4u);
  std::uint32_t ten = 10, back = 0;
  device->copy_in(base, &ten, 4);
  LaunchDescription launch{.name = "add",
                           .parameters = {raw(out.address()), raw(32u)},
                           .module = module};
  EXPECT_TRUE(device->launch(launch).findings.empty());
  device->copy_out(&back, out, 4);
  EXPECT_EQ(back, 42u);
  EXPECT_EQ(refusal([&] { module->variable("none"); }),
            "the module has no global or constant variable 'none'");
  EXPECT_EQ(refusal([&] { module->entry("none"); }),
            "the PTX has no entry 'none'; it has add");
  EXPECT_EQ(device->occupancy({.name = "add",
                               .block = {64, 1, 1},
                               .dynamic_smem_bytes = 100 * 1024,
                               .module = module}),
            2);
}

TEST(SimDevice, MemoryOfTheHostIsUsedAtItsOwnAddress) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  std::vector<std::uint32_t> heap(4, 1);
  std::uint32_t onStack = 0;
  Buffer shared = device->share(heap.data(), 16);
  Buffer stack = device->share(&onStack, 4);
  EXPECT_EQ(shared.address(), reinterpret_cast<std::uint64_t>(heap.data()));
  for (std::uint32_t *to : {heap.data() + 2, &onStack}) {
    LaunchDescription launch{
        .name = "add",
        .parameters = {raw(reinterpret_cast<std::uint64_t>(to)), raw(1u)},
        .module = module};
    EXPECT_TRUE(device->launch(launch).findings.empty());
    EXPECT_EQ(*to, 6u);
  }
  EXPECT_THAT(refusal([&] { device->share(heap.data() + 1, 4); }),
              testing::HasSubstr("a part of them is already"));
  shared = Buffer();
  device->share(heap.data() + 1, 4);
}

TEST(SimDevice, MemoryLiesWhereItIsAskedFor) {
  auto device = open_sim();
  Buffer out = device->simulation()->allocate_at(0x7f1234000000, 4);
  EXPECT_EQ(out.address(), 0x7f1234000000u);
  device->set_name(out, "kept");
  auto module = load(*device, kAdd);
  LaunchResult result =
      device->launch({.name = "add",
                      .parameters = {raw(std::uint64_t(0x7f1234000000)),
                                     raw(std::uint32_t(2))},
                      .module = module});
  EXPECT_TRUE(result.findings.empty()) << result.to_string();
  std::uint32_t sum = 0;
  device->copy_out(&sum, out, 4);
  EXPECT_EQ(sum, 7u);
  auto at = [&](std::uint64_t address, std::size_t bytes) {
    return refusal([&] { device->simulation()->allocate_at(address, bytes); });
  };
  EXPECT_EQ(at(0x7f1234000100, 16), "");
  EXPECT_EQ(at(0x7f1233ffff00, 257),
            "257 bytes at 0x7f1233ffff00 overlap kept, 4 bytes at "
            "0x7f1234000000");
  EXPECT_THAT(at(0x7f1234000000, 0), HasSubstr("overlap kept"));
  EXPECT_EQ(at(0x302000011, 16), ""); // memory of the host lies anywhere
  const char *range = "cannot be global memory, which is from 0x1000 to "
                      "0xffffffffff and from 0x50000000000 to "
                      "0x1ffffffffffff";
  EXPECT_THAT(at(0, 16), HasSubstr(range));
  EXPECT_THAT(at(0x10000000000, 16), HasSubstr(range)) << "shared memory";
  EXPECT_THAT(at(0xffffffff00, 512), HasSubstr(range)) << "into shared memory";
  EXPECT_THAT(at(0x1ffffffffff00, 512), HasSubstr(range));
  EXPECT_THAT(at(0xffffffffffffff00, 512), HasSubstr(range)) << "wraps around";
}

TEST(SimDevice, BuffersPassOverWhatLiesAtAnAddress) {
  auto device = open_sim();
  std::uint64_t first = device->allocate(64).address();
  auto placed = open_sim();
  Buffer there = placed->simulation()->allocate_at(first, 100'000);
  Buffer next = placed->allocate(64);
  EXPECT_GE(next.address(), first + 100'000 + 4096);
}

TEST(SimDevice, CopiesKnowWhatWasNotWritten) {
  auto device = open_sim();
  Buffer from = device->allocate(8), to = device->allocate(8);
  std::uint32_t one = 1, back[2] = {};
  device->copy_in(from, &one, 4);
  device->enqueue_copy(to.address(), from.address(), 8);
  device->enqueue_copy(reinterpret_cast<std::uint64_t>(back), to.address(), 8);
  EXPECT_EQ(back[0], 1u);
  EXPECT_EQ(back[1], 0xffffffffu);
  device->enqueue_fill(to.address(), 0x1234, 2, 4);
  device->copy_out(back, to, 8);
  EXPECT_EQ(back[1], 0x12341234u);
  EXPECT_THAT(refusal([&] {
                device->enqueue_copy(to.address() + 4, from.address(), 8);
              }),
              testing::MatchesRegex("a copy of 8 bytes at 0x.*: byte 4 of "
                                    "buffer 1 \\(8 bytes\\)"));
}

static LaunchDescription waiting(std::shared_ptr<LoadedModule> module,
                                 const std::uint32_t &wanted,
                                 const std::uint32_t &set) {
  return {.name = "wait",
          .parameters = {raw(reinterpret_cast<std::uint64_t>(&wanted)),
                         raw(reinterpret_cast<std::uint64_t>(&set))},
          .module = std::move(module)};
}

TEST(SimDevice, KernelsOfTwoStreamsWaitForEachOther) {
  auto device = open_sim();
  auto module = load(*device, kWait);
  std::uint32_t flags[3] = {};
  Buffer shared = device->share(flags, sizeof(flags));
  Stream one = device->create_stream(false), two = device->create_stream(false);
  std::atomic<int> ended = 0;
  auto count = [&](const LaunchResult &result) {
    EXPECT_TRUE(result.findings.empty()) << result.to_string();
    ++ended;
  };
  device->enqueue(waiting(module, flags[1], flags[0]), one, count);
  Event after = device->create_event();
  device->record(after, one);
  EXPECT_FALSE(device->is_done(one));
  EXPECT_FALSE(device->is_done(after));
  device->enqueue(waiting(module, flags[2], flags[1]), two, count);
  EXPECT_FALSE(device->is_done(two));
  int called = 0;
  device->call([&] { called = ended.load(); }, two);
  // A write of the host lets the second go, which lets the first go.
  reinterpret_cast<volatile std::uint32_t &>(flags[2]) = 1;
  device->synchronize();
  EXPECT_EQ(ended, 2);
  EXPECT_GE(called, 1);
  EXPECT_EQ(flags[0], 1u);
  EXPECT_TRUE(device->is_done(after));
}

/// A barrier of two devices, as all-reduces have it: lanes 0 and 1 tell the
/// ranks 0 and 1 that this one is there, and wait for what they say; then the
/// warp meets.
static constexpr std::string_view kRanks = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 flags, .param .u32 rank)
{
.reg .u32 %r<8>;
.reg .u64 %a<8>;
.reg .pred %p<3>;
ld.param.u64 %a0, [flags];
ld.param.u32 %r0, [rank];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %a1, %r2, 8;
add.u64 %a0, %a0, %a1;
mul.wide.u32 %a1, %r1, 64;
mul.wide.u32 %a2, %r0, 4;
add.u64 %a1, %a1, %a2;
add.u64 %a1, %a0, %a1;
mul.wide.u32 %a2, %r0, 64;
mul.wide.u32 %a3, %r1, 4;
add.u64 %a2, %a2, %a3;
add.u64 %a2, %a0, %a2;
mov.u32 %r3, 0;
setp.gt.u32 %p0, %r1, 1;
round:
@%p0 bra meet;
st.release.sys.global.u32 [%a1], 1;
again:
ld.acquire.sys.global.u32 %r4, [%a2];
setp.ne.u32 %p1, %r4, 1;
@%p1 bra again;
meet:
bar.sync 0;
add.u64 %a1, %a1, 32;
add.u64 %a2, %a2, 32;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, 2;
@%p2 bra round;
ret;
}
)";

TEST(SimDevice, LanesOfTwoStreamsWaitForEachOtherTwice) {
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      auto device = open_sim({.interleaving = order, .seed = seed});
      auto module = load(*device, kRanks);
      std::vector<std::uint32_t> zeros(32, 0);
      Buffer flags = device->allocate(128);
      device->copy_in(flags, zeros.data(), 128);
      std::vector<Stream> streams;
      for (std::uint32_t rank : {0u, 1u}) {
        LaunchDescription launch{
            .name = "ranks",
            .parameters = {raw(flags.address()), raw(rank)},
            .module = module};
        launch.grid = {2, 1, 1};
        launch.block = {32, 1, 1};
        streams.push_back(device->create_stream(false));
        device->enqueue(
            launch, streams.back(), [&](const LaunchResult &result) {
              EXPECT_TRUE(result.findings.empty()) << result.to_string();
            });
      }
      device->synchronize();
    }
}

TEST(SimDevice, NobodyWillComeIsADeadlock) {
  auto device = open_sim();
  auto module = load(*device, kWait);
  std::uint32_t flags[2] = {};
  Buffer shared = device->share(flags, sizeof(flags));
  Stream stream = device->create_stream(false);
  LaunchResult result;
  device->enqueue(waiting(module, flags[1], flags[0]), stream,
                  [&](LaunchResult found) { result = std::move(found); });
  EXPECT_TRUE(result.findings.empty());
  device->synchronize(stream);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].id, "deadlock");
  EXPECT_FALSE(result.is_finished);
}

TEST(SimDevice, FunctionsOfTheHostHoldNoLock) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  std::uint32_t out = 0, seen = 0;
  Buffer shared = device->share(&out, 4);
  Stream stream = device->create_stream();
  LaunchDescription launch{.name = "add",
                           .parameters = {raw(shared.address()), raw(1u)},
                           .module = module};
  auto enqueue = [&](std::uint32_t by) {
    launch.parameters[1] = raw(by);
    device->enqueue(launch, stream, [](LaunchResult) {});
  };
  std::mutex mine;
  std::string refused;
  std::unique_lock held(mine);
  enqueue(1);
  // It waits for a lock whose owner puts more into the stream.
  device->call(
      [&] {
        std::lock_guard lock(mine);
        seen = out;
        try {
          device->synchronize(stream);
        } catch (const UserError &error) {
          refused = error.message();
        }
      },
      stream);
  EXPECT_FALSE(device->is_done(stream));
  enqueue(2);
  EXPECT_EQ(out, 6u); // it waits for the function
  held.unlock();
  device->synchronize(stream);
  EXPECT_EQ(seen, 6u);
  EXPECT_EQ(out, 7u);
  EXPECT_EQ(refused,
            "a function of the host that a stream calls must not wait for the "
            "device: the stream waits for the function");
  // What it throws is told to whoever waits.
  device->call([] { throw UserError("thrown"); }, stream);
  EXPECT_THROW(device->synchronize(stream), UserError);
}

TEST(SimDevice, LaunchesRunAgainFromASnapshot) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  Buffer out = device->allocate(4);
  device->fill(out, 3);
  auto before = device->simulation()->snapshot();
  LaunchDescription launch{.name = "add",
                           .parameters = {raw(out.address()), raw(1u)},
                           .module = module};
  EXPECT_TRUE(device->launch(launch).ok());
  std::uint32_t back = 0;
  device->copy_out(&back, out, 4);
  EXPECT_EQ(back, 6u);
  before->restore();
  device->copy_out(&back, out, 4);
  EXPECT_EQ(back, 0x03030303u);
}

TEST(SimDevice, ASnapshotKnowsWhatWasTouched) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  Buffer large = device->allocate(64 << 20), out = device->allocate(8);
  device->set_name(large, "large");
  device->fill(out.slice(0, 4), 3);
  auto before = device->simulation()->snapshot();
  EXPECT_TRUE(before->is_idle());
  LaunchDescription launch{.name = "add",
                           .parameters = {raw(out.address()), raw(1u)},
                           .module = module};
  EXPECT_TRUE(device->launch(launch).ok());
  bool isOutSeen = false;
  for (const Snapshot::Memory &memory : before->memory()) {
    EXPECT_EQ(memory.is_touched,
              memory.address == out.address() || memory.name == "base")
        << memory.name;
    if (memory.address != out.address())
      continue;
    isOutSeen = true;
    ASSERT_EQ(memory.pieces.size(), 1u);
    EXPECT_EQ(memory.pieces[0].first, 0u);
    EXPECT_EQ(memory.pieces[0].second[3], std::byte(3));
    EXPECT_EQ(memory.written, std::vector{std::byte(0x0f)});
  }
  EXPECT_TRUE(isOutSeen);
  // What is copied and filled comes back too, and again.
  for (int i = 0; i < 2; ++i) {
    std::uint32_t word = 7;
    device->copy_in(out, &word, 4);
    device->enqueue_fill(large.address() + 5000, 9, 4, 2000);
    device->enqueue_copy(large.address() + 60000, out.address(), 4);
    before->restore();
    device->copy_out(&word, out, 4);
    EXPECT_EQ(word, 0x03030303u);
    device->copy_out(&word, large.slice(5000, 4), 4);
    EXPECT_EQ(word, 0xffffffffu);
    device->copy_out(&word, large.slice(60000, 4), 4);
    EXPECT_EQ(word, 0xffffffffu);
  }
}

TEST(SimDevice, ASnapshotCostsWhatIsWritten) {
  auto device = open_sim();
  auto module = load(*device, kAdd);
  Buffer large = device->allocate(256 << 20);
  Buffer out = device->allocate(4);
  device->fill(out, 3);
  std::uint64_t inUse = mallinfo2().uordblks + mallinfo2().hblkhd;
  auto before = device->simulation()->snapshot();
  LaunchDescription launch{.name = "add",
                           .parameters = {raw(out.address()), raw(1u)},
                           .module = module};
  EXPECT_TRUE(device->launch(launch).ok());
  before->restore();
  // A byte for each block of it, and little else.
  EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, inUse + (2 << 20));
}

TEST(SimDevice, VariablesLieWhereTheyAreWanted) {
  constexpr std::string_view kText = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 first = 5;
.visible .global .align 8 .u64 second = first;
.visible .entry run(.param .u64 out)
{
.reg .u32 %r<2>;
.reg .u64 %a<3>;
ld.param.u64 %a1, [out];
ld.global.u64 %a2, [second];
ld.global.u32 %r1, [%a2];
st.global.u32 [%a1], %r1;
ret;
}
)";
  auto device = open_sim();
  Buffer out = device->simulation()->allocate_at(0x7f1234000000, 4);
  auto module = device->simulation()->load_at(std::span(&kText, 1),
                            {{"second", 0x700000000000}, {"first", 0x5000}});
  EXPECT_EQ(module->variable("first").address(), 0x5000u);
  EXPECT_EQ(module->variable("second").address(), 0x700000000000u);
  LaunchResult result = device->launch(
      {.name = "run", .parameters = {raw(out.address())}, .module = module});
  EXPECT_TRUE(result.findings.empty()) << result.to_string();
  std::uint32_t word = 0;
  device->copy_out(&word, out, 4);
  EXPECT_EQ(word, 5u);
}

TEST(SimDevice, SeveralTextsAreLinked) {
  constexpr std::string_view kCaller = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .u32 r) twice(.param .u32 x);
.visible .entry run(.param .u64 out)
{
.reg .u32 %r<2>;
.reg .u64 %a<2>;
ld.param.u64 %a1, [out];
{
.param .u32 x;
.param .u32 r;
st.param.u32 [x], 21;
call (r), twice, (x);
ld.param.u32 %r1, [r];
}
st.global.u32 [%a1], %r1;
ret;
}
)";
  constexpr std::string_view kCalled = R"(.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .u32 r) twice(.param .u32 x)
{
.reg .u32 %r<3>;
ld.param.u32 %r1, [x];
add.u32 %r2, %r1, %r1;
st.param.u32 [r], %r2;
ret;
}
)";
  auto device = open_sim();
  std::string_view texts[] = {kCaller, kCalled};
  auto module = device->load(texts);
  Buffer out = device->allocate(4);
  EXPECT_TRUE(
      device->launch({.parameters = {raw(out.address())}, .module = module})
          .findings.empty());
  std::uint32_t back = 0;
  device->copy_out(&back, out, 4);
  EXPECT_EQ(back, 42u);
}

} // namespace kiln
