// Epilogue: an accumulator stored through shared memory is the one stored
// from registers.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class EpilogueCase : public OnDevice {};
INSTANTIATE_ON_DEVICES(EpilogueCase);

namespace {
/// A product of one tile, and where it goes.
struct Product {
  Type type = f32; ///< of the result
  int rows = 64, columns = 64;
  int d_rows = 80, d_columns = 96;
  Swizzle swizzle = Swizzle::b128;
  int depth = 64;
  int subtile = 64; ///< columns that go out at once
};
} // namespace

/// d[origin] = a * b twice: by TMA to `d`, from registers to `plain`.
static Kernel store_both_ways(const Product &product, int row, int column) {
  KernelBuilder kb("both", {.warpgroups = 1});
  TmaOptions operand{.tile = {product.rows, product.depth},
                     .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {product.rows, product.depth}, operand);
  operand.tile[0] = product.columns;
  TmaTensor b =
      kb.tensor_map("b", f16, {product.columns, product.depth}, operand);
  TmaTensor d = kb.tensor_map(
      "d", product.type, {product.d_rows, product.d_columns},
      {.tile = {product.rows, product.subtile}, .swizzle = product.swizzle});
  Tensor plain =
      kb.tensor("plain", product.type, {product.d_rows, product.d_columns});
  Epilogue out(kb, d);
  Pipeline pipe(kb, 1, {a, b});
  pipe.produce([&](const Slot &slot) {
    slot.load(a, {0, 0});
    slot.load(b, {0, 0});
  });
  Accumulator acc(f32, product.rows, product.columns);
  pipe.consume(
      acc, [&](const Slot &slot) { acc.mma(slot[a], slot[b].transpose()); });
  out.store(acc, {row, column});
  acc.store(plain, {row, column});
  out.finish();
  Kernel kernel = compile_checked(kb.module());
  EXPECT_TRUE(kernel.contract.arguments[2].is_output);
  return kernel;
}

static void check_same(const std::string &id, const Product &product, int row,
                       int column) {
  Kernel kernel = store_both_ways(product, row, column);
  int subtiles = product.columns / product.subtile;
  EXPECT_EQ(count(kernel.ptx, "fence.proxy.async"), subtiles);
  EXPECT_EQ(count(kernel.ptx, "bar.sync 1, 128"), 2 * subtiles);
  // 64 rows by 16 columns at once; an odd 8 go alone.
  int at_once = (product.subtile + 15) / 16;
  if (size_bytes(product.type) == 2)
    EXPECT_EQ(count(kernel.ptx, "stmatrix"),
              product.rows / 64 * subtiles * at_once);
  else
    EXPECT_GE(count(kernel.ptx, "st.shared.v2"),
              product.rows * product.columns / 256);
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  auto a = random_elements(f16, product.rows * product.depth, 1);
  auto b = random_elements(f16, product.columns * product.depth, 2);
  auto d = poisoned(product.type, product.d_rows * product.d_columns);
  auto plain = d;
  run(*device, kernel, a, b, d, plain);
  EXPECT_EQ(d, plain) << name(product.type) << ", " << product.rows << "x"
                      << product.columns << ", swizzle "
                      << static_cast<int>(product.swizzle);
  EXPECT_NE(plain, poisoned(product.type, product.d_rows * product.d_columns));
}

TEST_P(EpilogueCase, EverySwizzleAndType) {
  for (Swizzle swizzle :
       {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128})
    check_same(GetParam(), {.swizzle = swizzle}, 0, 0);
  for (Type type : {f16, bf16})
    check_same(GetParam(), {.type = type}, 8, 16);
  for (int subtile : {8, 16, 24, 32})
    check_same(GetParam(),
               {.type = f16,
                .columns = 96,
                .swizzle = subtile == 32   ? Swizzle::b64
                           : subtile == 16 ? Swizzle::b32
                                           : Swizzle::none,
                .subtile = subtile},
               0, 0);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(EpilogueCase, OverTheEdges) {
  check_same(GetParam(), {}, 32, 48);
  check_same(GetParam(), {.type = f16, .rows = 128, .columns = 128}, 24, 64);
  check_same(GetParam(),
             {.columns = 128, .swizzle = Swizzle::b128, .subtile = 32}, 16, 0);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(EpilogueCase, BuffersServeTwoTiles) {
  // Two roles, each with a barrier and a buffer of its own, twice.
  KernelBuilder kb("roles", {.warpgroups = 2});
  TmaOptions options{.tile = {64, 64}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, options);
  TmaTensor d = kb.tensor_map("d", f16, {128, 128}, options);
  Epilogue out(kb, d, {.warpgroups = 2, .buffers = 1});
  SharedTile operand = kb.shared(a.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(a.tile_bytes());
    tma_load(operand, a, {0, 0}, full);
  });
  sync_threads();
  for (int role : {0, 1})
    warpgroup(role, [&] {
      full.wait(0);
      Accumulator acc(f32, 64, 64);
      for (int step : {0, 1}) {
        // The second time it adds: twice the product.
        acc.mma(operand, operand);
        out.store(acc, {64 * role, 64 * step}, {}, role);
      }
      out.finish();
    });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "1, 128;") + count(kernel.ptx, "2, 128;"), 8);
  OPEN_OR_SKIP(device);
  // The identity: its square is itself.
  std::vector<double> identity(64 * 64), expected(128 * 128);
  for (int i = 0; i < 64; ++i)
    identity[i * 64 + i] = 1;
  for (int r = 0; r < 128; ++r)
    for (int c = 0; c < 128; ++c)
      expected[r * 128 + c] = r % 64 == c % 64 ? 1 + c / 64 : 0;
  auto in = elements(f16, identity), found = poisoned(f16, 128 * 128);
  run(device, kernel, in, found);
  EXPECT_EQ(values(f16, found), expected);
}

TEST_P(EpilogueCase, FragmentsNameTheirElements) {
  // Every register written where the fragment says gives what store writes.
  KernelBuilder kb("fragment", {.warpgroups = 1});
  TmaOptions options{.tile = {128, 64}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {128, 64}, options);
  Tensor stored = kb.tensor("stored", f32, {128, 128});
  Tensor placed = kb.tensor("placed", f32, {128, 128});
  Pipeline pipe(kb, 1, {a});
  pipe.produce([&](const Slot &slot) { slot.load(a, {0, 0}); });
  Accumulator acc(f32, 128, 128);
  pipe.consume(
      acc, [&](const Slot &slot) { acc.mma(slot[a], slot[a].transpose()); });
  acc.store(stored, {0, 0});
  for (int i = 0; i < acc.elements(); ++i)
    placed(acc.fragment_row(i), acc.fragment_column(i)) = acc.element(i);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  auto in = random_elements(f16, 128 * 64, 3);
  auto expected = poisoned(f32, 128 * 128), found = poisoned(f32, 128 * 128);
  run(device, kernel, in, expected, found);
  EXPECT_EQ(found, expected);
}

TEST_P(EpilogueCase, RowsThatTmaCannotTake) {
  // By threads through shared memory, and from registers: in tiles that divide
  // the accumulator's columns, and with a narrower one at their end.
  for (auto [type, subtile] : {std::pair(f16, 32), {f16, 64}, {f32, 40}})
    for (int columns : {96, 91, 90}) {
      KernelBuilder kb("odd", {.warpgroups = 1});
      TmaOptions operand{.tile = {64, 64}, .swizzle = Swizzle::b128};
      TmaTensor a = kb.tensor_map("a", f16, {64, 64}, operand);
      operand.tile[0] = 96;
      TmaTensor b = kb.tensor_map("b", f16, {96, 64}, operand);
      Tensor d = kb.tensor("d", type, {2, 80, columns});
      Tensor plain = kb.tensor("plain", type, {2, 80, columns});
      Epilogue out(kb, d, 64, subtile, {.column_multiple = 8});
      Pipeline pipe(kb, 1, {a, b});
      pipe.produce([&](const Slot &slot) {
        slot.load(a, {0, 0});
        slot.load(b, {0, 0});
      });
      Accumulator acc(f32, 64, 96);
      pipe.consume(acc, [&](const Slot &slot) {
        acc.mma(slot[a], slot[b].transpose());
      });
      for (int i : {0, 1}) { // the second one reaches over both edges
        out.store(acc, {i, 24 * i, 8 * i});
        acc.store(plain.index(0, i), {24 * i, 8 * i});
      }
      out.finish();
      Kernel kernel = compile_checked(kb.module());
      EXPECT_TRUE(kernel.contract.arguments[2].is_output);
      if (!conformance::open(GetParam()).device)
        continue;
      auto left = random_elements(f16, 64 * 64, 1);
      auto right = random_elements(f16, 96 * 64, 2);
      auto found = poisoned(type, 2 * 80 * columns), expected = found;
      run(*conformance::open(GetParam()).device, kernel, left, right, found,
          expected);
      EXPECT_EQ(found, expected) << name(type) << " " << columns;
      EXPECT_NE(expected, poisoned(type, 2 * 80 * columns));
    }
  SKIP_WITHOUT_DEVICE();
}
