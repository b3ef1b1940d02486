// TileMath: tiles that do not go together, memory that does not fit them, and
// reductions that cannot be.
#include "Refused.h"

using namespace errors;

namespace {
struct TileMathErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 256}};
  Tensor x = kb.tensor("x", f32, {64, 16});
  Tensor cube = kb.tensor("cube", f32, {4, 64, 16});
  SharedTile scratch = kb.shared({f32, 16, 4});
  RegisterTile tile{f32, RegisterLayout::accumulator(64, 16), 0};
};
} // namespace

TEST_F(TileMathErrors, LayoutsThatDiffer) {
  RegisterTile other(f32, RegisterLayout::row_per_thread(64, 16), 0);
  refused(
      __LINE__, [&] { tile + other; },
      "tiles of accumulator 64x16: threads 4:(0,2) 8:(1,0) 4:(16,0), registers "
      "2:(0,1) 2:(8,0) 2:(0,8) and of row_per_thread 64x16: threads 64:(1,0), "
      "registers 16:(0,1) do not go together: each thread computes with what "
      "it holds; their layouts are equal, or one has a single row or column in "
      "the same threads");
}

TEST_F(TileMathErrors, TypesThatDiffer) {
  refused(
      __LINE__, [&] { tile *cast(tile, f16); },
      "the operands of '*' are f32 and f16; `cast` one of them");
  refused(
      __LINE__, [&] { cast(tile, i32) + 0.5; },
      "the literal 0.5 is not a valid i32; cast one of the operands");
}

TEST_F(TileMathErrors, RowsInSeveralWarps) {
  std::string text = tile.layout().transpose().to_string();
  refused(
      __LINE__, [&] { reduce_columns(tile, Reduction::add); },
      "the rows of " + text +
          " lie in 4 warps each, which meet in shared memory: give "
          "ReduceOptions::scratch, a tile of 16x4 f32");
  SharedTile turned = scratch.transpose();
  refused(
      __LINE__, [&] { reduce_columns(tile, Reduction::add, {turned}); },
      "the scratch tile is 4x16 f32; 16 rows of f32 in 4 warps each take 16x4 "
      "f32");
  refused(
      __LINE__, [&] { reduce_columns(tile, Reduction::add, {scratch}); },
      "128 of the 256 threads of kernel k reduce rows that lie in several "
      "warps; they meet at a named barrier: give ReduceOptions::barrier");
}

TEST_F(TileMathErrors, LanesThatAreNoPowerOfTwo) {
  KernelBuilder other("other", {.threads = 96});
  RegisterTile three(
      f32, RegisterLayout("three", 32, 3, {{3, 0, 1}, {32, 1, 0}}, {}), 0);
  refused(
      __LINE__, [&] { reduce_rows(three, Reduction::max); },
      "the rows of three 32x3: threads 3:(0,1) 32:(1,0), registers 1 lie in 3 "
      "threads, 1 apart; a reduction takes powers of two inside a warp");
}

TEST_F(TileMathErrors, Reductions) {
  refused(
      __LINE__, [&] { reduce_rows(tile, Reduction::bit_or); },
      "the elements of a tile are reduced by add, min or max");
}

TEST_F(TileMathErrors, WarpsThatAreNotWhole) {
  KernelBuilder other("other", {.threads = 16});
  RegisterTile row(f32, RegisterLayout::strided(16, 1, 16), 0);
  refused(
      __LINE__, [&] { reduce_rows(row, Reduction::add); },
      "a reduction shuffles among the 32 lanes of whole warps, and kernel "
      "other has 16 threads");
}

TEST_F(TileMathErrors, Memory) {
  RegisterTile half = cast(tile, f16);
  refused(
      __LINE__, [&] { half.store(x, {0, 0}); },
      "store of a tile of f16 and memory of f32; `cast` the tile");
  refused(
      __LINE__, [&] { tile.store(scratch); },
      "store of a tile of 64x16 and a shared tile of 16x4; they have one "
      "shape: `slice` takes a part");
  refused(
      __LINE__, [&] { load_tile(tile.layout(), scratch); },
      "load_tile of a tile of 64x16 and a shared tile of 16x4; they have one "
      "shape: `slice` takes a part");
  refused(
      __LINE__, [&] { load_tile(tile.layout(), cube, {0, 0}); },
      "load_tile takes a tensor of 2 dimensions and an origin (row, column); "
      "this tensor has 3, the origin 2");
  refused(
      __LINE__, [&] { tile.store(x, {0}); },
      "store takes a tensor of 2 dimensions and an origin (row, column); this "
      "tensor has 2, the origin 1");
  refused(
      __LINE__, [&] { tile.store(x, {0, -8}); },
      "store at -8; rows and columns begin at 0");
}

TEST_F(TileMathErrors, Copies) {
  refused(
      __LINE__, [&] { copy(CopyScope::warp, tile, x); },
      "copy by a warp of 32 threads, and the layout of the register tile is of "
      "128: " +
          tile.layout().to_string());
  SharedTile half = kb.shared({f16, 16, 8});
  refused(
      __LINE__, [&] { copy(CopyScope::cta, half, x); },
      "copy of a tile of f16 and memory of f32; `cast` the tile");
  refused(
      __LINE__, [&] { copy(CopyScope::cta, half, half.transpose()); },
      "copy of a shared tile of 8x16 to one of 16x8; they have one shape");
  Dim m = kb.dim("m");
  Tensor y = kb.tensor("y", f32, {m, 16});
  refused(
      __LINE__, [&] { copy(CopyScope::cta, y, x); },
      "copy of a tensor of {64, 16} to one of {m, 16}; both have one constant "
      "shape: `slice` gives it");
  refused(
      __LINE__, [&] { copy(CopyScope::cta, cube, cube); },
      "copy takes a tensor of 2 dimensions and an origin (row, column); this "
      "tensor has 3, the origin 2");
  KernelBuilder other("other", {.threads = 48});
  Tensor z = other.tensor("z", f32, {16, 16});
  refused(
      __LINE__, [&] { copy(CopyScope::warp, z, z); },
      "copy by a warp of 32 threads, and the 48 of kernel other are "
      "not multiples of them");
}
