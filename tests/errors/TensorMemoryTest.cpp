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
      "a tile of 64x64 f32 is loaded as .32x32b; it takes 128 rows");
  refused(
      __LINE__, [&] { memory.tile(f32, 128, 12).load(TensorShape::b16x256); },
      "a tile of 128x12 f32 is loaded as .16x256b; it takes columns in "
      "multiples of 8");
  RegisterTile other(f16, RegisterLayout::row_per_thread(128, 64), 0);
  refused(
      __LINE__, [&] { tile.store(other); },
      fmt::format("a tile of {} f16 is stored to 128x64 f32 of tensor memory; "
                  "it must have its shape and type, and be laid out as a "
                  "load's (TensorTile::layout)",
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
      "e4m3, e5m2, e2m3, e3m2, e2m1, i8 and u8");
  product(
      __LINE__, [&] { memory.tile(f16, 128, 128).mma(a, b.transpose()); },
      "sums of f16 have a column of 32 bits each; make their tile with "
      "TensorMemory::half_sums");
  SharedTile narrow = kb.shared(TileLayout::of(e2m1, 128, 256));
  product(
      __LINE__, [&] { acc.mma(narrow, narrow.transpose()); },
      "tcgen05.mma of e2m1 takes factors of both operands: "
      "TensorMmaOptions::a_scales and b_scales");
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
      "sm_103a does not multiply i8; sm_100a does");
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

TEST_F(TensorMemoryErrors, Scales) {
  TensorMemory memory(kb, 256);
  TensorTile acc = memory.tile(f32, 128, 128);
  SharedTile x = kb.shared(TileLayout::of(e4m3, 128, 128));
  SharedTile piece = kb.shared({ue8m0, 2, 256});
  refused(
      __LINE__, [&] { memory.scales(e4m3, 128, 4, 128); },
      "factors of type e4m3 in tensor memory; use ue8m0 or ue4m3");
  refused(
      __LINE__, [&] { memory.scales(ue8m0, 64, 4, 128); },
      "factors of 64 rows and 4 blocks of K; use multiples of 128 rows and of "
      "4 blocks");
  refused(
      __LINE__, [&] { memory.scales(ue8m0, 128, 8, 250); },
      "factors of 128 rows and 8 blocks take 8 columns from 250 on; 256 "
      "columns are allocated");
  TensorScales scales = memory.scales(ue8m0, 128, 4, 128);
  TensorScales more = memory.scales(ue8m0, 256, 4, 136);
  TensorScales others = memory.scales(ue4m3, 128, 4, 144);
  refused(
      __LINE__, [&] { scales.slice(16, 64); },
      "factors of 64 rows from 16 on; 128 rows are there, and a slice has "
      "multiples of 32");
  refused(
      __LINE__, [&] { scales.copy(piece); },
      "factors are copied outside one_thread; one thread issues the copy");
  auto product = [&](unsigned line, const std::function<void()> &body,
                     const std::string &message) {
    refused(line, [&] { one_thread(body); }, message);
  };
  product(
      __LINE__, [&] { more.copy(piece); },
      "factors ue8m0 of 256 rows by 4 blocks are copied from 2x256 ue8m0; they "
      "are 1024 bytes without a swizzle");
  product(
      __LINE__, [&] { acc.mma(x, x.transpose(), {.a_scales = scales}); },
      "factors of a alone; both operands have them or none");
  TensorMmaOptions both{.a_scales = scales, .b_scales = scales};
  product(
      __LINE__, [&] { acc.mma(a, b.transpose(), both); },
      "a product of f16 with factors ue8m0 of a and ue8m0 of b; ue8m0 of both "
      "goes with floats of 8, 6 and 4 bits, ue4m3 with e2m1");
  TensorMmaOptions mixed{.a_scales = scales, .b_scales = others};
  product(
      __LINE__, [&] { acc.mma(x, x.transpose(), mixed); },
      "a product of e4m3 with factors ue8m0 of a and ue4m3 of b; ue8m0 of both "
      "goes with floats of 8, 6 and 4 bits, ue4m3 with e2m1");
  SharedTile few = kb.shared(TileLayout::of(e4m3, 64, 128));
  TensorTile low = memory.tile(f32, 64, 128);
  product(
      __LINE__, [&] { low.mma(few, x.transpose(), both); },
      "a product with factors into 64 rows of f32; 128 rows of f32 are "
      "possible");
  SharedTile deep = kb.shared(TileLayout::of(e4m3, 128, 256));
  product(
      __LINE__, [&] { acc.mma(deep, deep.transpose(), both); },
      "factors of 128 rows by 4 blocks of a and 128 by 4 of b; a product of "
      "128x128 with a K of 256 has 128 and 128 rows by 8 blocks");
  SharedTile six = kb.shared(TileLayout::of(e2m3, 128, 128));
  product(
      __LINE__, [&] { acc.mma(six, six, both); },
      "operands of less than 8 bits are K-major: their rows are contiguous "
      "along K");
  TensorTile in_memory = memory.tile(f16, 128, 64, 160);
  product(
      __LINE__, [&] { acc.mma(in_memory, b.transpose(), both); },
      "a product with factors takes a from shared memory");
}

TEST_F(TensorMemoryErrors, NarrowElements) {
  refused(
      __LINE__, [&] { kb.tensor("x", e2m1, {128, 64}); },
      "tensor 'x' of e2m1, whose elements have less than a byte and no "
      "address; declare a tensor map, which TMA copies");
  Tensor room = kb.tensor("room", u64, {16});
  Value address = constant(u64, 0);
  refused(
      __LINE__, [&] { kb.tensor_at(address, e3m2, {128, 64}); },
      "tensor at an address of e3m2, whose elements have less than a byte and "
      "no address; declare a tensor map, which TMA copies");
  TmaTensor map = kb.tensor_map("m", e2m1, {128, 256}, {.tile = {8, 256}});
  refused(
      __LINE__, [&] { map.at(address, room(0), {.shape = {64, 256}}); },
      "TmaTensor::at of tensor map 'm' changes the shape or the strides of "
      "elements of e2m1, which share bytes; change its address alone");
  SharedTile tile = kb.shared(TileLayout::of(e2m3, 8, 128));
  refused(
      __LINE__, [&] { Value(tile(0, 0)).type(); },
      "one element of e2m3 is accessed, which has less than a byte; tiles of "
      "it are copied by TMA and multiplied");
  refused(
      __LINE__, [&] { tile.load_vector(0, 0, 4); },
      "one element of e2m3 is accessed, which has less than a byte; tiles of "
      "it are copied by TMA and multiplied");
  Value byte = kb.tensor("factors", ue8m0, {4})(0);
  refused(
      __LINE__, [&] { cast(byte, f32); },
      "ue8m0 is cast to f32; ue8m0 is copied and multiplied, and of the narrow "
      "floats e4m3 and e5m2 are converted");
}

TEST_F(TensorMemoryErrors, LaunchControls) {
  refused(
      __LINE__, [&] { LaunchControl(kb, 0); },
      "0 threads read the answers; kernel k has 1 to 256");
  unsigned line = __LINE__ + 1;
  std::function<void()> inside = [&] { LaunchControl(kb, 1); };
  refused(
      line, [&] { one_thread(inside); },
      "LaunchControl is made outside roles and one_thread: all threads "
      "synchronise there");
  LaunchControl control(kb, 1);
  refused(
      __LINE__, [&] { control.ask_all(); },
      "ask_all stands outside one_thread; one thread asks for the CTA");
  KernelBuilder pairs(
      "p", {.warpgroups = 1, .cluster = {.x = 2}, .target = "sm_100a"});
  refused(
      __LINE__, [&] { LaunchControl(pairs, 1); },
      "cluster launch control in kernel p, which has clusters of 2; it takes "
      "over CTAs without clusters");
}
