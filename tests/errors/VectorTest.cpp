// Vector: vectors no instruction has, and hints without a cache.
#include "Refused.h"

using namespace errors;

namespace {
struct VectorErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Tensor x = kb.tensor("x", f32, {8, 8});
  Tensor wide = kb.tensor("wide", f64, {8});
  Tensor apart = kb.tensor("apart", f32, {8, 8}, {1, 8});
  SharedTile tile = kb.shared({.type = f32, .rows = 8, .columns = 8});
  Value one = constant(f32, 1);
};
} // namespace

TEST_F(VectorErrors, Sizes) {
  for (int count : {-1, 0, 3, 32})
    refused(
        __LINE__, [&] { x.load_vector({0, 0}, count); },
        fmt::format("load_vector reads 1, 2, 4, 8 or 16 values, not {}",
                    count));
  refused(
      __LINE__, [&] { wide.load_vector({0}, 4); },
      "load_vector reads at most 16 bytes; 4 values of f64 are 32");
  refused(
      __LINE__, [&] { tile.store_vector(0, 0, {one, one, one}); },
      "store_vector writes 1, 2, 4, 8 or 16 values, not 3");
}

TEST_F(VectorErrors, Neighbours) {
  std::string message = "the innermost stride of this tensor is 8; vectors "
                        "need neighbours in memory, a stride of 1";
  refused(__LINE__, [&] { apart.load_vector({0, 0}, 2); }, message);
  refused(__LINE__, [&] { apart.store_vector({0, 0}, {one, one}); }, message);
  refused(
      __LINE__, [&] { tile.transpose().load_vector(0, 0, 2); },
      "load_vector reads neighbours in a row, and the rows of a transposed "
      "tile are columns in memory; use the tile as it is stored");
  refused(
      __LINE__, [&] { tile.load_vector(0, 6, 4); },
      "load_vector reads 4 values from column 6, which is not a multiple of "
      "4");
}

TEST_F(VectorErrors, Rows) {
  refused(
      __LINE__, [&] { x.store_vector({0, 6}, {one, one, one, one}); },
      "store_vector writes 4 values from 6 of a row, which has 8 elements");
  refused(
      __LINE__, [&] { x.load_vector({8, 0}, 4); },
      "index 8 of dimension 0 of a tensor; its 8 elements are 0 to 7");
  Tensor narrow = kb.tensor("narrow", f32, {8, 2});
  refused(
      __LINE__, [&] { narrow.load_vector({0, thread_id()}, 4); },
      "load_vector reads 4 values from any column of a row, which has 2 "
      "elements");
  SharedTile part = tile.slice(0, 0, 8, 6);
  refused(
      __LINE__, [&] { part.store_vector(0, 4, {one, one, one, one}); },
      "store_vector writes 4 values from 4 of a row, which has 6 elements");
  x.store_vector({0, 4}, {one, one, one, one});
}

TEST_F(VectorErrors, Hints) {
  refused(
      __LINE__, [&] { tile(0, 0).load(CacheHint::streaming); },
      "shared memory has no cache; hints (.cs) are for tensors");
  refused(
      __LINE__, [&] { tile(0, 0).store(1, CacheHint::no_allocate); },
      "shared memory has no cache; hints (.L1::no_allocate) are for tensors");
  refused(
      __LINE__, [&] { prefetch(tile(0, 0)); },
      "prefetch was given an element of shared memory, which has no cache; it "
      "takes one of a tensor");
  std::string message = "last_use (.lu) is a hint for loads; a store takes "
                        "streaming, no_allocate, evict_first or evict_last";
  refused(__LINE__, [&] { x(0, 0).store(one, CacheHint::last_use); }, message);
  refused(
      __LINE__, [&] { x.store_vector({0, 0}, {one}, CacheHint::last_use); },
      message);
}
