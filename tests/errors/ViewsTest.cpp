// Views: parts that are not there, and shapes memory does not have.
#include "Refused.h"

using namespace errors;

namespace {
struct ViewErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 128}};
  Dim m = kb.dim("m");
  Tensor x = kb.tensor("x", f32, {m, 8, 16});
  Tensor line = kb.tensor("line", f32, {16});
  SharedTile tile = kb.shared({f16, 16, 64, Swizzle::b128});
  SharedTile plain = kb.shared({f16, 16, 64});
};
} // namespace

TEST_F(ViewErrors, Slices) {
  refused(
      __LINE__, [&] { x.slice(3, 0, 8); },
      "slice of dimension 3; the tensor has 3");
  refused(
      __LINE__, [&] { x.slice(1, -1, 8); },
      "slice from -1; indices begin at 0");
  refused(
      __LINE__, [&] { x.slice(1, 0.5, 8); },
      "slice from 0.5; indices are integers");
  refused(
      __LINE__, [&] { x.slice(1, 0, cast(thread_id(), i64)); },
      "a slice of i64 indices; it takes an i32");
  refused(
      __LINE__, [&] { x.index(-1, 0); },
      "index of dimension -1; the tensor has 3");
  refused(
      __LINE__, [&] { x.bound(5); }, "bound of dimension 5; the tensor has 3");
  refused(
      __LINE__, [&] { line.index(0, 3); },
      "index of a tensor of one dimension is an element; x(i) reads and writes "
      "it");
}

TEST_F(ViewErrors, Orders) {
  refused(
      __LINE__, [&] { x.permute({0, 1, 1}); },
      "permute to {0, 1, 1}; the order of a tensor of 3 dimensions names each "
      "of 0 to 2 once");
  refused(
      __LINE__, [&] { x.transpose(); },
      "transpose of 3 dimensions; it swaps two, `permute` orders any number");
}

TEST_F(ViewErrors, Shapes) {
  refused(
      __LINE__, [&] { x.slice(1, 0, 4).reshape({m * 64}); },
      "reshape of {m, 4, 16} with strides {128, 16, 1}; the elements must lie "
      "one behind the other, with strides {64, 16, 1}, and none may be missing "
      "at the end of a slice");
  refused(
      __LINE__, [&] { x.slice(0, thread_id(), 4).reshape({4, 128}); },
      "reshape of {4, 8, 16} with strides {128, 16, 1}; the elements must lie "
      "one behind the other, with strides {128, 16, 1}, and none may be "
      "missing at the end of a slice");
  refused(
      __LINE__, [&] { x.reshape({m, 64}); },
      "reshape of {m, 8, 16} to {m, 64}: the number of elements is not the "
      "same, or cannot be seen to be");
  EXPECT_EQ(x.reshape({m * 2, 64}).strides()[0], Dim(64));
}

TEST_F(ViewErrors, TensorMapsOfViews) {
  refused(
      __LINE__, [&] { kb.tensor_map(x.index(0, 0), {.tile = {8, 16}}); },
      "a tensor map of a view of 'x'; the map is made before the kernel runs: "
      "make it of the tensor itself");
}

TEST_F(ViewErrors, SharedSlices) {
  refused(
      __LINE__, [&] { tile.slice(8, 0, 16, 64); },
      "a slice of 16 rows from 8 leaves the tile, which has 16");
  refused(
      __LINE__, [&] { tile.slice(0, thread_id(), 16, 65); },
      "a slice of 65 columns from 0 leaves the tile, which has 64");
  refused(
      __LINE__, [&] { tile.transpose().slice(0, -8, 64, 8); },
      "a slice of 8 rows from -8 leaves the tile, which has 16");
  std::string message =
      "a slice of 8x64 of a shared tile of 16x64 f16, swizzle 128 has no "
      "address of its own: the swizzle and the panels count from the beginning "
      "of the whole tile; this takes whole tiles";
  SharedTile part = tile.slice(8, 0, 8, 64);
  refused(__LINE__, [&] { part.address(); }, message);
  EXPECT_EQ(part.origin_row(), 8);
  EXPECT_TRUE(part.whole().is_whole());
  refused(
      __LINE__, [&] { part.slice(0, 2, 8, 8).load_vector(0, 4, 4); },
      "load_vector reads 4 values from column 6, which is not a multiple of "
      "4");
}

TEST_F(ViewErrors, SharedShapes) {
  std::string rest = "; only a whole tile without a swizzle, in one panel and "
                     "not transposed, has its elements one behind the other";
  refused(
      __LINE__, [&] { tile.reshape(8, 128); },
      "reshape of a shared tile of 16x64 f16, swizzle 128" + rest);
  refused(
      __LINE__, [&] { plain.transpose().reshape(8, 128); },
      "reshape of a shared tile of 16x64 f16, transposed" + rest);
  refused(
      __LINE__, [&] { plain.slice(0, 0, 8, 64).reshape(4, 128); },
      "reshape of a shared tile of 16x64 f16, sliced" + rest);
  refused(
      __LINE__, [&] { plain.reshape(8, 64); },
      "a tile of 16x64 cannot be seen as one of 8x64: the number of elements "
      "differs");
}
