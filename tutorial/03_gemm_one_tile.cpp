// Lesson 3: a matrix product of one tile. Adds the tensor core: 128x128x64
// numbers multiplied by one warpgroup, 128 threads together.
//
//     D[128, 128] = A[128, 64] * B[64, 128]      f16 * f16 into f32
//
// TMA brings both operands as in lesson 2, one tile each. What is new happens
// between the wait and the store:
//
//     thread 0 | expect 32768 bytes, load A, load B | wait | mma | wait | store
//     others   |                                    | wait | mma | wait | store
//
// A wgmma is asynchronous like a TMA copy. The warpgroup issues it and goes on;
// until it has waited, neither the registers that are written nor the shared
// memory that is read may be touched.
#include "lessons.h"

using namespace kiln;

namespace lessons {

static constexpr int kM = 128, kN = 128, kK = 64;

// The kernel. The tensor core reads shared memory in an order of its own. So
// that no two threads of it meet in one bank, rows of 128 bytes are swizzled:
// their pieces of 16 bytes change places. TMA writes them so and wgmma reads
// them so; the kernel says Swizzle::b128 twice and never computes an address.
//
// A row of A is 64 numbers, 128 bytes: one swizzled row. A row of B is 128
// numbers, two of them: the tile is stored as two panels of 64 columns, and
// TMA loads it in two boxes.
//
//     A: 128 rows of 128 bytes        B: panel 0          panel 1
//        row 0    [k 0 ..... 63]         k 0  [n 0 .. 63]  k 0  [n 64 .. 127]
//        ...                             ...               ...
//        row 127  [k 0 ..... 63]         k 63 [n 0 .. 63]  k 63 [n 64 .. 127]
//
// The multiplication has three steps. wgmma_fence orders what threads did to
// the registers before. `issue` writes the instructions. wgmma_commit makes a
// group of them, and acc.wait(0) waits until no group is left. `acc.mma` is the
// first three in one, and the next lessons use it.
//
// A tensor core instruction is smaller than the tile: 64 rows, up to 256
// columns and 16 of k. So the line with `issue` becomes eight of them, each
// m64n128k16. Their operands are descriptors, 64 bits that hold an address in
// units of 16 bytes, and stepping through the tile means adding to them:
//
//     rows of D     k = 0..15     16..31         32..47         48..63
//       0 ..  63    a,     b      a+2,   b+128   a+4,   b+256   a+6,   b+384
//      64 .. 127    a+512, b      a+514, b+128   a+516, b+256   a+518, b+384
//
// 16 numbers further along a row of A are 32 bytes: 2. 64 rows further down are
// 64 * 128 bytes: 512. B goes down along k: 16 rows of 128 bytes are 128. The
// second panel of B is part of the same instruction, whose descriptor says that
// it lies 64 * 128 bytes behind the first. The first instruction of each half
// overwrites the accumulator, the other three add to it.
//
// The result is in registers, 128 of each thread. Which element is where the
// hardware decides: in the first eight columns thread t has two neighbours of
// row t / 4, two more eight rows further down, and so on
// (RegisterLayout::accumulator). `store` writes them to where they belong.
Module gemm_one_tile() {
  KernelBuilder kb("gemm_one_tile", {.warpgroups = 1});
  TmaTensor a = kb.tensor_map("a", f16, {kM, kK},
                              {.tile = {kM, kK}, .swizzle = Swizzle::b128});
  TmaTensor b = kb.tensor_map("b", f16, {kK, kN},
                              {.tile = {kK, kN}, .swizzle = Swizzle::b128});
  Tensor d = kb.tensor("d", f32, {kM, kN});
  kb.grid(1);

  SharedTile a_tile = kb.shared(a.tile(), {.name = "a"});
  SharedTile b_tile = kb.shared(b.tile(), {.name = "b"});
  Mbarrier loaded = kb.mbarriers(1, "loaded")[0];
  one_thread([&] {
    loaded.init(1);
    fence_mbarrier_init();
  });
  sync_threads();

  one_thread([&] {
    loaded.arrive_expect_tx(a.tile_bytes() + b.tile_bytes());
    tma_load(a_tile, a, {0, 0}, loaded);
    tma_load(b_tile, b, {0, 0}, loaded);
  });
  loaded.wait(0);

  Accumulator acc(f32, kM, kN);
  wgmma_fence();
  acc.issue(a_tile, b_tile);
  wgmma_commit();
  acc.wait(0);
  acc.store(d, {0, 0}, {.is_inside = true, .column_multiple = kN});
  return kb.module();
}

} // namespace lessons

// The launcher, shared by all lessons from here on: random matrices, the
// product computed again on the host in double, and every element compared.
int main() try {
  auto device = lessons::open_device();
  Kernel kernel = compile(lessons::gemm_one_tile());
  lessons::describe(kernel);
  return lessons::launch_gemm(*device, kernel, {128, 128, 64});
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// The timeline, as the simulator prints it:
//
// +--------+----------+---------+----------+
// |   time | producer | slot 0  | wgroup 0 |
// +--------+----------+---------+----------+
// |     29 | tma-0    | loading |          |
// |     37 | tma-0    | loading | wait-0   |
// |   1053 |          | full    |          |
// |   1064 |          | in use  | mma-0    |
// |   1576 |          |         |          |
// |   1587 |          |         | store    |
// |   1651 |          |         |          |
// +--------+----------+---------+----------+
//
// Loading and multiplying follow one another. Whatever is done about the speed
// of a product is about having them overlap, and begins with the next lesson.
//
// To take away:
//
// - fence, issue, commit, wait: the order is the protocol of the tensor core.
// - The tile is the kernel's business, the instruction the compiler's: eight
//   wgmma.mma_async.m64n128k16 here, as emit(module, Stage::ptx) shows.
// - TMA, swizzle and descriptors fit together because all of them are asked of
//   one TileLayout.
//
// On an H200: 128x128x64 in 7.5 us, most of it the launch (mean of 50).
