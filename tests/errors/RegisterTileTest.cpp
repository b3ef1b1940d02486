// RegisterTile: tiles that do not fit their threads, their values or another.
#include "Refused.h"

using namespace errors;

namespace {
struct RegisterTileErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 128}};
  RegisterLayout layout = RegisterLayout::accumulator(64, 8);
};
} // namespace

TEST_F(RegisterTileErrors, Threads) {
  refused(
      __LINE__, [&] { RegisterTile(f32, RegisterLayout::strided(96, 96, 1)); },
      "tiles of layout strided belong to 96 threads, and the 128 of kernel k "
      "are not multiples of them");
}

TEST_F(RegisterTileErrors, Values) {
  std::vector<Value> three(3, constant(f32, 1));
  refused(
      __LINE__, [&] { RegisterTile(layout, three); },
      "a tile of layout accumulator, 64x8, has 4 registers in each thread, and "
      "3 values were given");
  RegisterTile tile(f32, layout, 0);
  refused(
      __LINE__, [&] { tile.element(4); },
      "there is no register 4 in a tile of layout accumulator, 64x8; each "
      "thread holds 0 to 3");
  refused(
      __LINE__, [&] { tile.set(0, constant(i32, 1)); },
      "expected a value of type f32, found i32; `cast` converts");
  RegisterTile moved = std::move(tile);
  refused(
      __LINE__, [&] { tile.element(0); },
      "this RegisterTile was moved from and holds nothing");
}

TEST_F(RegisterTileErrors, Assignment) {
  RegisterTile tile(f32, layout, 0);
  refused(
      __LINE__, [&] { tile = RegisterTile(f16, layout, 0); },
      "a tile of f32, accumulator 64x8: threads 4:(0,2) 8:(1,0) 4:(16,0), "
      "registers 2:(0,1) 2:(8,0), cannot take the values of one of f16, "
      "accumulator 64x8: threads 4:(0,2) 8:(1,0) 4:(16,0), registers 2:(0,1) "
      "2:(8,0); `cast` converts the type, memory the layout");
}

TEST_F(RegisterTileErrors, AnotherKernel) {
  RegisterTile tile(f32, layout, 0);
  KernelBuilder other("other", {.threads = 128});
  refused(
      __LINE__, [&] { tile.row(0); },
      "this RegisterTile belongs to another kernel than other");
}
