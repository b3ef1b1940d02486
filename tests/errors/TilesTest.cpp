// Tiles: what is refused of tiles, TMA loads, multiplications and pipelines.
#include "Refused.h"

using namespace errors;

TEST(TileErrors, Shapes) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { kb.shared({f16, 0, 8}); },
      "a tile of 0x8 has no elements; both sides must be at least 1");
  refused(
      __LINE__, [&] { kb.shared({f16, 257, 8}); },
      "a tile of 257 rows is higher than a TMA box, which has at most 256; "
      "split it");
  refused(
      __LINE__, [&] { kb.shared({i8, 8, 272}); },
      "a tile of 272 columns without a swizzle is wider than a TMA box, "
      "which has at most 256; use a swizzle or split it");
  refused(
      __LINE__, [&] { kb.shared({f16, 8, 4}); },
      "the rows of a 8x4 tile of f16 are 8 bytes; TMA needs a multiple of "
      "16");
}

TEST(TileErrors, SwizzleAgainstTile) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { kb.shared({f16, 8, 72, Swizzle::b128}); },
      "the rows of a 8x72 tile of f16 are 144 bytes, not a multiple of its "
      "swizzle of 128; use columns in multiples of 64 or another swizzle");
  TmaOptions narrow{.tile = {8, 32}, .swizzle = Swizzle::b128};
  refused(
      __LINE__, [&] { kb.tensor_map("a", f16, {8, 64}, narrow); },
      "the rows of a 8x32 tile of f16 are 64 bytes, not a multiple of its "
      "swizzle of 128; use columns in multiples of 64 or another swizzle");
}

TEST(TileErrors, Indices) {
  KernelBuilder kb("k", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {8, 8});
  refused(
      __LINE__, [&] { x(1); }, "a tensor of 2 dimensions was given 1 indices");
  Value one = constant(f32, 1);
  refused(
      __LINE__, [&] { x.store_vector({0, 0}, {one, one, one}); },
      "store_vector writes 1, 2, 4, 8 or 16 values, not 3");
}

TEST(TileErrors, TmaLoad) {
  KernelBuilder kb("k", {.threads = 32});
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, {.tile = {8, 64}});
  SharedTile other = kb.shared({f16, 8, 64, Swizzle::b128});
  SharedTile tile = kb.shared(a.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  refused(
      __LINE__, [&] { tma_load(other, a, {0, 0}, full); },
      "tensor map 'a' loads tiles 8x64 f16 and the shared tile is 8x64 "
      "f16, swizzle 128; they must be the same");
  refused(
      __LINE__, [&] { tma_load(tile, a, {0}, full); },
      "tensor map 'a' has 2 dimensions; the origin has 1");
}

TEST(TileErrors, AccumulatorShapes) {
  KernelBuilder kb("k", {.warpgroups = 1});
  refused(
      __LINE__, [] { Accumulator(bf16, 64, 64); },
      "an accumulator holds f32, f16 or i32, not bf16");
  refused(
      __LINE__, [] { Accumulator(f32, 96, 64); },
      "an accumulator of 96 rows is not a multiple of the instruction's "
      "64");
  for (int columns : {0, 12, 264})
    refused(
        __LINE__, [&] { Accumulator(f32, 64, columns); },
        fmt::format("an instruction of {} columns; wgmma takes multiples "
                    "of 8 from 8 to 256",
                    columns));
  refused(
      __LINE__, [] { Accumulator(f32, 128, 256); },
      "an accumulator of 128x256 takes 256 registers of each thread, and a "
      "thread has 255; split it among warpgroups");
  refused(
      __LINE__, [] { Accumulator(i32, 64, 40); },
      "an instruction of 40 columns; wgmma of i32 takes 8, 24 and multiples of "
      "16 up to 256");
  refused(
      __LINE__, [] { Accumulator(f32, 64, 96, 64); },
      "an accumulator of 96 columns is not covered by instructions of 64; use "
      "a multiple");
}

TEST(TileErrors, AccumulatorsOfARole) {
  KernelBuilder kb("k", {.warpgroups = 2});
  unsigned line = __LINE__ + 3;
  auto both = [] {
    Accumulator first(f32, 64, 128);
    Accumulator second(f32, 64, 128);
  };
  refused(
      line, [&] { warpgroup(1, {.registers = 120}, both); },
      "an accumulator of 64x128 takes 64 registers of each thread (128 with "
      "those before it), and a thread of warpgroup 1 has 120; split it among "
      "warpgroups");
}

namespace {
/// Tiles that go together, and an accumulator for them.
struct MmaErrors : testing::Test {
  KernelBuilder kb{"k", {.warpgroups = 1}};
  SharedTile a = tile(f16, 64, 64), b = tile(f16, 8, 64).transpose();
  Accumulator acc{f32, 64, 8};

  SharedTile tile(Type type, int rows, int columns) {
    return kb.shared({type, rows, columns, Swizzle::b128});
  }
};
} // namespace

TEST_F(MmaErrors, Types) {
  SharedTile words = tile(f32, 64, 32), brains = tile(bf16, 8, 64).transpose();
  refused(
      __LINE__, [&] { acc.mma(words, words); },
      "wgmma has no operands of type f32; it takes f16, bf16, tf32, e4m3, "
      "e5m2, i8 and u8");
  refused(
      __LINE__, [&] { acc.mma(a, brains); },
      "wgmma cannot multiply f16 by bf16");
  Accumulator whole(i32, 64, 8);
  refused(
      __LINE__, [&] { whole.mma(a, b); },
      "wgmma of f16 accumulates in f32 or f16, not in i32");
  Accumulator half(f16, 64, 8);
  SharedTile other = tile(bf16, 64, 64);
  refused(
      __LINE__, [&] { half.mma(other, brains); },
      "wgmma of bf16 accumulates in f32, not in f16");
}

TEST_F(MmaErrors, Shapes) {
  SharedTile wide = tile(f16, 16, 64).transpose();
  refused(
      __LINE__, [&] { acc.mma(a, wide); },
      "64x64 times 64x16 does not give 64x8");
}

TEST_F(MmaErrors, DepthOfTheInstruction) {
  SharedTile rows = tile(f16, 8, 64).transpose(), columns = tile(f16, 8, 64);
  Accumulator wide(f32, 64, 64);
  refused(
      __LINE__, [&] { wide.mma(rows, columns); },
      "a K of 8 is not a multiple of the instruction's 16 for f16");
}

TEST_F(MmaErrors, Majors) {
  SharedTile eight = tile(e4m3, 64, 128), rows = tile(e4m3, 128, 128);
  Accumulator wide(f32, 64, 128);
  refused(
      __LINE__, [&] { wide.mma(eight, rows); },
      "operand b of type e4m3 is not K-major; on sm_90 only f16 and bf16 "
      "can be: store it with K contiguous");
}

TEST_F(MmaErrors, Swizzle) {
  SharedTile plain = kb.shared({f16, 64, 64});
  refused(
      __LINE__, [&] { acc.mma(plain, b); },
      "operand a lies in shared memory without a swizzle (64x64 f16); give "
      "its tile swizzle 32, 64 or 128, or panels of 8 columns");
}

TEST_F(MmaErrors, Options) {
  refused(
      __LINE__, [&] { acc.mma(a, b, {.saturate = true}); },
      "wgmma of f16 does not saturate; only integers do");
  Value one = constant(i32, 1);
  refused(
      __LINE__, [&] { acc.mma(a, b, {.add = one}); },
      "MmaOptions::add is an i1, not i32");
  SharedTile left = tile(i8, 64, 128), right = tile(i8, 8, 128).transpose();
  Accumulator whole(i32, 64, 8);
  refused(
      __LINE__, [&] { whole.mma(left, right, {.negate_b = true}); },
      "wgmma of i8 has no negation; only floats do");
}

TEST_F(MmaErrors, InFlight) {
  acc.mma(a, b);
  const char *text = "an accumulator of 64x8 is used while its multiplication "
                     "is in flight; call wait(0) first";
  refused(__LINE__, [&] { acc.element(0); }, text);
  refused(__LINE__, [&] { acc.tile(); }, text);
  acc.wait(0);
  acc.element(0);
}

TEST_F(MmaErrors, NamesTheWaitThatWouldDo) {
  Accumulator other(f32, 64, 8);
  acc.mma(a, b);
  other.mma(a, b);
  refused(
      __LINE__, [&] { acc.tile(); },
      "an accumulator of 64x8 is used while its multiplication is in flight; "
      "call wait(1) first");
  wgmma_wait(1);
  acc.tile();
  EXPECT_TRUE(other.is_in_flight());
  wgmma_fence();
  acc.issue(a, b);
  acc.wait(0);
  refused(
      __LINE__, [&] { acc.tile(); },
      "an accumulator of 64x8 is used while its multiplication is in flight "
      "and in no group yet; call wgmma_commit, then wait(0)");
  refused(
      __LINE__, [&] { wgmma_wait(-1); },
      "wgmma.wait_group takes 0 to 7 groups, not -1");
  RegisterTile wide(f64, acc.layout(), 0.0);
  refused(
      __LINE__, [&] { wgmma_wait(0, {.after = &wide}); },
      "WaitOptions::after is a tile of f64; elements of 4 bytes or less can "
      "be");
}

TEST_F(MmaErrors, InFlightOnOneOfTwoPaths) {
  const char *text = "an accumulator of 64x8 is used while its multiplication "
                     "is in flight; call wait(0) first";
  Value first = thread_id() < 128;
  if_(first, [&] { acc.mma(a, b); });
  refused(__LINE__, [&] { acc.tile(); }, text);
  if_(first, [&] { acc.wait(0); });
  refused(__LINE__, [&] { acc.tile(); }, text);
  for_range(thread_id(), 128, [&](Value) { acc.wait(0); });
  refused(__LINE__, [&] { acc.tile(); }, text);
  for_range(0, 2, [&](Value) { acc.wait(0); }); // turns twice, surely
  acc.tile();
}

TEST_F(MmaErrors, InFlightFromTheTurnBefore) {
  unsigned read = __LINE__ + 2, written = __LINE__ + 3;
  auto turn = [&] {
    acc.tile();
    acc.mma(a, b);
  };
  auto text = [&](int line) {
    return fmt::format(
        "an accumulator of 64x8 is used while the multiplication of the loop's "
        "previous turn ({}) may be in flight; wait(0) at the end of the loop "
        "or before the use",
        at(line));
  };
  refused(
      read, [&] { for_range(0, 4, [&](Value) { turn(); }); }, text(written));
  acc.wait(0);
  Value condition = thread_id() < 4;
  refused(
      read, [&] { while_([&] { return condition; }, turn); }, text(written));
  acc.wait(0);
  unsigned open = __LINE__ + 3;
  auto apart = [&] {
    acc.element(0);
    acc.issue(a, b);
  };
  refused(
      open - 1, [&] { for_range(0, 4, [&](Value) { apart(); }); },
      fmt::format(
          "an accumulator of 64x8 is used while the multiplication of the "
          "loop's previous turn ({}) may be in flight; wgmma_commit it and "
          "wait(0) at the end of the loop or before the use",
          at(open)));
}

TEST_F(MmaErrors, RegisterOperands) {
  RegisterTile rows(f16, RegisterLayout::row_per_thread(128, 32));
  Accumulator tall(f32, 128, 8);
  SharedTile narrow = kb.shared({f16, 8, 32, Swizzle::b64}).transpose();
  refused(
      __LINE__, [&] { tall.mma(rows, narrow); },
      fmt::format("operand a lies in registers as {}; wgmma takes {}",
                  rows.layout().to_string(),
                  RegisterLayout::wgmma_operand(f16, 128, 32).to_string()));
  RegisterTile start(f16, acc.layout());
  refused(
      __LINE__, [&] { acc.start_from(start); },
      fmt::format("an accumulator of f32 {} cannot start from a tile of f16 {}",
                  acc.layout().to_string(), acc.layout().to_string()));
}

TEST_F(MmaErrors, OneThread) {
  unsigned line = __LINE__ + 1;
  std::function<void()> alone = [&] { acc.mma(a, b); };
  refused(
      line, [&] { one_thread(alone); },
      "mma stands inside one_thread; all 128 threads of a warpgroup issue "
      "it together");
}

TEST_F(MmaErrors, WaitAndStore) {
  Tensor line = kb.tensor("line", f32, {64});
  refused(
      __LINE__, [&] { acc.wait(8); },
      "wgmma.wait_group takes 0 to 7 groups, not 8");
  refused(
      __LINE__, [&] { acc.store(line, {0, 0}); },
      "an accumulator is stored to a tensor of 2 dimensions at an origin "
      "of 2; found 1 and 2");
}

namespace {
/// A pipeline of two tensors.
struct PipelineErrors : testing::Test {
  KernelBuilder kb{"k", {.warpgroups = 1}};
  TmaOptions options{.tile = {64, 64}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, options);
  TmaTensor b = kb.tensor_map("b", f16, {64, 64}, options);
  TmaTensor c = kb.tensor_map("c", f16, {64, 64}, options);
  Pipeline pipe{kb, 2, {a, b}};
};
} // namespace

TEST_F(PipelineErrors, Counts) {
  refused(
      __LINE__, [&] { Pipeline(kb, 0, {a}); },
      "a pipeline of 0 stages; at least 1 is needed");
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {}); },
      "a pipeline without tensors moves nothing; give it one or more");
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {a}, {.consumers = 0}); },
      "a pipeline with 0 consumers; at least 1 is needed");
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {a, b}, {.parts = {2}}); },
      "a pipeline of 2 tensors with the parts of 1; give one number for each");
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {a}, {.parts = {0}}); },
      "a tile in 0 parts; at least 1 is needed");
}

TEST_F(PipelineErrors, LoadsOfASlot) {
  auto half = [&](const Slot &slot) { slot.load(a, {0, 0}); };
  refused(
      __LINE__, [&] { pipe.produce(half); },
      "8192 bytes of tensors were loaded into a slot of 16384; each tensor of "
      "the pipeline is loaded once, by one thread");
  refused(
      __LINE__, [&] { pipe.produce_by_threads(half); },
      "the slots of this pipeline are filled by TMA; use produce");
  Pipeline threads(kb, 1, {{f16, 8, 64}}, {.is_by_threads = true});
  refused(
      __LINE__, [&] { threads.produce(half); },
      "the slots of this pipeline are filled by threads; use "
      "produce_by_threads");
  Pipeline both(kb, 1, {a}, {{f16, 8, 64}}, {.is_by_threads = true});
  refused(
      __LINE__, [&] { both.produce_by_threads([](const Slot &) {}); },
      "0 bytes of tensors were loaded into a slot of 8192; each tensor of the "
      "pipeline is loaded once, by one thread");
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {a}, {{f16, 8, 64}}, {}); },
      "a pipeline of 1 tensors and 1 tiles, and no threads fill those; set "
      "is_by_threads");
  unsigned line = __LINE__ + 1;
  auto none = [&](const Slot &slot) { slot.tile(2); };
  refused(line, [&] { pipe.produce(none); }, "a slot of 2 tiles has no tile 2");
  line = __LINE__ + 1;
  auto part = [&](const Slot &slot) { slot.load(a, {0, 0}, {.parts = 2}); };
  refused(
      line, [&] { pipe.produce(part); },
      "tensor map 'a' is loaded in 2 parts, and its pipeline was made for 1");
}

TEST_F(PipelineErrors, SlotsByHand) {
  refused(
      __LINE__, [&] { pipe.reserve(); },
      "the slots of this pipeline are filled by TMA; reserve stands inside "
      "one_thread");
  Pipeline threads(kb, 1, {{f16, 8, 64}}, {.is_by_threads = true});
  unsigned line = __LINE__ + 1;
  auto alone = [&] { threads.reserve(); };
  refused(
      line, [&] { one_thread(alone); },
      "the slots of this pipeline are filled by the 128 threads of a "
      "warpgroup; reserve stands outside one_thread");
  Slot slot = pipe.acquire();
  refused(
      __LINE__, [&] { threads.release(slot); },
      "this slot is of another pipeline; each takes back its own");
  refused(
      __LINE__, [&] { threads.commit(slot); },
      "this slot is of another pipeline; each takes back its own");
}

TEST_F(PipelineErrors, ForeignTensor) {
  unsigned line = __LINE__ + 1;
  auto load = [&](const Slot &slot) { slot.load(c, {0, 0}); };
  refused(
      line, [&] { pipe.produce(load); },
      "tensor map 'c' is not one of this pipeline's");
  Accumulator acc(f32, 64, 64);
  line = __LINE__ + 1;
  auto use = [&](const Slot &slot) { acc.mma(slot[c], slot[b]); };
  refused(
      line, [&] { pipe.consume(acc, use); },
      "tensor map 'c' is not one of this pipeline's");
}

TEST_F(PipelineErrors, NobodyProduces) {
  KernelBuilder other("other", {.warpgroups = 1});
  TmaTensor in = other.tensor_map("in", f16, {64, 64}, options);
  unsigned declared = __LINE__ + 1;
  Pipeline lonely(other, 2, {in});
  Accumulator acc(f32, 64, 64);
  auto use = [&](const Slot &slot) { acc.mma(slot[in], slot[in].transpose()); };
  unsigned consumed = __LINE__ + 1;
  lonely.consume(acc, use);
  refused(
      consumed, [&] { other.module(); },
      fmt::format("nobody arrives at the mbarrier declared at {}; this "
                  "wait would never end",
                  at(declared)));
}
