// Refusals of tensor memory and its products.
#include "Refused.h"

using namespace errors;

namespace {
class TensorMemoryErrors : public testing::Test {
protected:
  KernelBuilder kb{"k", {.warpgroups = 2, .target = "sm_100a"}};
  SharedTile a = kb.shared(TileLayout::of(f16, 128, 64));
  SharedTile b = kb.shared(TileLayout::of(f16, 128, 64));
  Mbarrier done = kb.mbarriers(1)[0];
};
} // namespace

TEST(TensorMemoryTarget, IsBlackwell) {
  KernelBuilder kb("k", {.warpgroups = 1});
  Mbarrier done = kb.mbarriers(1)[0];
  std::string why = " needs tcgen05, and kernel k is for sm_90a, which has "
                    "wgmma; build it for sm_100a (KernelOptions::target)";
  refused(__LINE__, [&] { TensorMemory(kb, 128); }, "tensor memory" + why);
  refused(
      __LINE__, [&] { tensor_fence_after(); },
      "a fence of tensor memory" + why);
  refused(__LINE__, [&] { done.arrive_products(); }, "arrive_products" + why);
}

TEST(TensorMemoryTarget, IsNotHopper) {
  KernelBuilder kb("k", {.warpgroups = 1, .target = "sm_103a"});
  refused(
      __LINE__, [] { Accumulator(f32, 64, 64); },
      "an accumulator in registers needs wgmma, and kernel k is for sm_103a, "
      "which has tcgen05; build it for sm_90a (KernelOptions::target)");
}

TEST_F(TensorMemoryErrors, Allocation) {
  for (int columns : {0, 16, 96, 1024})
    refused(
        __LINE__, [&] { TensorMemory(kb, columns); },
        fmt::format("{} columns of tensor memory; a power of two from 32 to "
                    "512 can be allocated",
                    columns));
  refused(
      __LINE__, [&] { TensorMemory(kb, 32, {.cta_group = 3}); },
      "a CTA group of 3; 1 or 2 CTAs multiply together");
  refused(
      __LINE__, [&] { TensorMemory(kb, 32, {.cta_group = 2}); },
      "a pair of CTAs multiplies together, and kernel k has clusters of 1; "
      "give it an even number of CTAs");
  refused(
      __LINE__, [&] { TensorMemory(kb, 32, {.warp = 8}); },
      "warp 8 allocates tensor memory, and kernel k has warps 0 to 7");
  unsigned line = __LINE__ + 1;
  std::function<void()> inside = [&] { TensorMemory(kb, 32); };
  refused(
      line, [&] { one_thread(inside); },
      "tensor memory is allocated outside roles and one_thread: all threads "
      "synchronise there");
  unsigned first = __LINE__ + 1;
  TensorMemory memory(kb, 32);
  refused(
      __LINE__, [&] { TensorMemory(kb, 32); },
      fmt::format("tensor memory is allocated once in a kernel, and was at "
                  "{}; make tiles of that",
                  at(first)));
}

TEST_F(TensorMemoryErrors, Tiles) {
  TensorMemory memory(kb, 128);
  refused(
      __LINE__, [&] { memory.tile(e4m3, 128, 32); },
      "a tile of e4m3 in tensor memory; it holds types of 32 and 16 bits");
  refused(
      __LINE__, [&] { memory.tile(f32, 96, 32); },
      "a tile of 96 rows in tensor memory; 64 or 128 are possible with a CTA "
      "group of 1");
  refused(
      __LINE__, [&] { memory.tiles(f32, 128, 64, 2, 32); },
      "2 tiles of 64 columns of f32 from column 32 on; 128 columns of 32 bits "
      "are allocated");
  TensorTileArray two = memory.tiles(f32, 128, 64, 2);
  refused(__LINE__, [&] { two[2]; }, "there is no tile 2 in an array of 2");
  refused(
      __LINE__, [&] { two[0].slice(32, 40); },
      "a slice of 40 columns from 32 leaves the tile, which has 64");
  TensorTile halves = memory.tile(f16, 128, 64);
  refused(
      __LINE__, [&] { halves.slice(1, 2); },
      "a slice of 2 columns of f16 from 1; tensor memory has columns of 32 "
      "bits");
}

TEST_F(TensorMemoryErrors, LoadsAndStores) {
  TensorMemory memory(kb, 128);
  TensorTile tile = memory.tile(f32, 128, 64);
  unsigned line = __LINE__ + 1;
  std::function<void()> inside = [&] { tile.load(); };
  refused(
      line, [&] { one_thread(inside); },
      "a load of tensor memory stands inside one_thread; the 128 threads of a "
      "warpgroup do it together");
  refused(
      __LINE__, [&] { memory.tile(f32, 64, 64).load(); },
      "a tile of 64 rows is loaded; row_per_thread takes 128");
  RegisterTile other(f16, RegisterLayout::row_per_thread(128, 64), 0);
  refused(
      __LINE__, [&] { tile.store(other); },
      fmt::format("a tile of {} f16 is stored to 128x64 f32 of tensor memory; "
                  "it must have its shape and type, and a row in each thread "
                  "(RegisterLayout::row_per_thread)",
                  other.layout().to_string()));
}

TEST_F(TensorMemoryErrors, Products) {
  TensorMemory memory(kb, 512);
  TensorTile acc = memory.tile(f32, 128, 128);
  refused(
      __LINE__, [&] { acc.mma(a, b.transpose()); },
      "mma of tensor memory stands outside one_thread; one thread issues it");
  auto product = [&](unsigned line, const std::function<void()> &body,
                     const std::string &message) {
    refused(line, [&] { one_thread(body); }, message);
  };
  product(
      __LINE__, [&] { acc.mma(a, b); },
      "128x64 times 128x64 does not give 128x128");
  product(
      __LINE__, [&] { memory.tile(bf16, 128, 128).mma(a, b.transpose()); },
      "tcgen05.mma of f16 accumulates in f32 or f16, not in bf16");
  product(
      __LINE__, [&] { memory.tile(f32, 128, 24).mma(a, b.transpose()); },
      "a product of 24 columns; tcgen05.mma of 128 rows takes multiples of 16 "
      "up to 256");
  SharedTile other = kb.shared(TileLayout::of(bf16, 128, 64));
  product(
      __LINE__, [&] { acc.mma(a, other.transpose()); },
      "tcgen05.mma cannot multiply f16 by bf16");
  SharedTile words = kb.shared(TileLayout::of(i32, 128, 32));
  product(
      __LINE__, [&] { acc.mma(words, words.transpose()); },
      "tcgen05.mma has no operands of type i32; it takes f16, bf16, tf32, "
      "e4m3, e5m2, i8 and u8");
  product(
      __LINE__, [&] { acc.mma(a, b.transpose(), {.add = thread_id()}); },
      "TensorMmaOptions::add is an i1, not i32");
  SharedTile bytes = kb.shared(TileLayout::of(i8, 128, 64));
  TensorTile sums = memory.tile(i32, 128, 128);
  TensorMmaOptions negated{.negate_a = true};
  product(
      __LINE__, [&] { sums.mma(bytes, bytes.transpose(), negated); },
      "tcgen05.mma of i8 has no negation; only floats do");
}

TEST(TensorMemoryTarget, OfIntegers) {
  KernelBuilder kb("k", {.warpgroups = 1, .target = "sm_103a"});
  SharedTile a = kb.shared(TileLayout::of(i8, 128, 64));
  TensorMemory memory(kb, 128);
  TensorTile acc = memory.tile(i32, 128, 128);
  unsigned line = __LINE__ + 1;
  std::function<void()> body = [&] { acc.mma(a, a.transpose()); };
  refused(
      line, [&] { one_thread(body); },
      "sm_103a multiplies no i8; sm_100a does");
}

TEST_F(TensorMemoryErrors, Arrivals) {
  refused(
      __LINE__, [&] { done.arrive_products(); },
      "arrive_products stands outside one_thread; it speaks for the products "
      "of the thread that calls it");
  unsigned line = __LINE__ + 1;
  std::function<void()> group = [&] { done.arrive_products({.cta_group = 4}); };
  refused(
      line, [&] { one_thread(group); },
      "a CTA group of 4; 1 or 2 CTAs multiply together");
  line = __LINE__ + 1;
  std::function<void()> mask = [&] { done.arrive_products({.cta_mask = 3}); };
  refused(
      line, [&] { one_thread(mask); },
      "the mask 0x3 does not name CTAs of a cluster of 1; 0x1 to 0x1 do");
}

TEST_F(TensorMemoryErrors, Pipelines) {
  TmaTensor map = kb.tensor_map("a", f16, {128, 64},
                                {.tile = {128, 64}, .swizzle = Swizzle::b128});
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {map}, {.tensor_group = 3}); },
      "a CTA group of 3; 1 or 2 CTAs multiply together");
  PipelineOptions both{.is_by_threads = true, .tensor_group = 2};
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {map}, both); },
      "the slots of a pair of CTAs are loaded by TMA; threads fill those of a "
      "CTA group of 1");
  PipelineOptions shared{.peers = {constant(i32, 1)}, .tensor_group = 1};
  refused(
      __LINE__, [&] { Pipeline(kb, 1, {map}, shared); },
      "the slots of products of tensor memory are loaded by the CTAs that "
      "multiply together alone");
  Pipeline pipeline(kb, 1, {map}, {.tensor_group = 1});
  refused(
      __LINE__, [&] { pipeline.acquire(); },
      "the slots of this pipeline are read by products of tensor memory; "
      "acquire stands inside one_thread");
}
