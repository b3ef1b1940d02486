// Predicate: atoms with a condition in front of them, and no branch.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class Predicate : public OnDevice {};
INSTANTIATE_ON_DEVICES(Predicate);

TEST_P(Predicate, LoadsAndStoresOfEverySize) {
  for (Type type : {u8, i16, f16, f32, i64, f64})
    for (int width : {1, 2, 8, 16}) {
      if (width * size_bytes(type) > 16)
        continue;
      KernelBuilder kb("guarded", {.threads = 32});
      Tensor x = kb.tensor("x", type, {32, width});
      Tensor y = kb.tensor("y", type, {32, width});
      Value t = thread_id();
      Values loaded;
      predicated(t < 20, [&] { loaded = x.load_vector({t, 0}, width); });
      predicated(t >= 10, [&] { y.store_vector({t, 0}, loaded); });
      Kernel kernel = compile_checked(kb.module());
      EXPECT_EQ(count(kernel.ptx, "bra"), 0);
      Device *device = conformance::open(GetParam()).device.get();
      if (!device)
        continue;
      std::vector<double> numbers(32 * width), expected;
      std::vector<double> before(32 * width, 7);
      for (int i = 0; i < 32 * width; ++i) {
        numbers[i] = i % 100 + 1;
        int t = i / width;
        expected.push_back(t < 10 ? 7 : t < 20 ? numbers[i] : 0);
      }
      auto in = elements(type, numbers), out = elements(type, before);
      EXPECT_TRUE(try_run(*device, kernel, in, out).ok());
      EXPECT_EQ(values(type, out), expected) << name(type) << " x " << width;
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Predicate, AtomicsAndSharedMemory) {
  KernelBuilder kb("atomics", {.threads = 32});
  Tensor y = kb.tensor("y", i32, {2, 32});
  SharedTile tile = kb.shared({.type = i32, .rows = 1, .columns = 32});
  Value t = thread_id();
  tile(0, t) = 100;
  sync_threads();
  Value old;
  // Nested conditions hold together.
  predicated(t < 16, [&] {
    predicated(t % 2 == 0, [&] { old = atomic_add(tile(0, t), t + 1); });
    reduce_add(tile(0, t), 1000);
  });
  y(0, t) = old;
  predicated(t != 5, [&] { y(1, t) = tile(0, t); });
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "bra"), 0);
  OPEN_OR_SKIP(device);
  std::vector<int> found(64, -1), expected(64);
  for (int t = 0; t < 32; ++t) {
    bool adds = t < 16 && t % 2 == 0;
    expected[t] = adds ? 100 : 0;
    expected[32 + t] =
        t == 5 ? -1 : 100 + (adds ? t + 1 : 0) + (t < 16 ? 1000 : 0);
  }
  EXPECT_TRUE(try_run(device, kernel, found).ok());
  EXPECT_EQ(found, expected);
}

TEST_P(Predicate, CopiesAndBarriers) {
  KernelBuilder kb("copies", {.threads = 128});
  TmaTensor x = kb.tensor_map("x", f32, {8, 32}, {.tile = {8, 32}});
  TmaTensor y = kb.tensor_map("y", f32, {8, 32}, {.tile = {8, 32}});
  SharedTile tile = kb.shared(x.tile());
  Mbarrier barrier = kb.mbarriers(1)[0];
  Value isFirst = thread_id() == 0;
  predicated(isFirst, [&] {
    tma_prefetch(x);
    barrier.init(1);
    fence_mbarrier_init();
  });
  sync_threads();
  predicated(isFirst, [&] {
    tma_prefetch_tile(x, {0, 0});
    barrier.arrive_expect_tx(x.tile_bytes());
    tma_load(tile, x, {0, 0}, barrier);
  });
  barrier.wait(0);
  predicated(isFirst, [&] {
    tma_store(y, {0, 0}, tile);
    tma_store_commit();
    tma_store_wait(0);
  });
  Kernel kernel = compile_checked(kb.module());
  // The loop of the wait has the one branch.
  EXPECT_EQ(count(kernel.ptx, "bra "), 1);
  OPEN_OR_SKIP(device);
  std::vector<float> in(256), out(256, -1);
  std::iota(in.begin(), in.end(), 0.f);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(out, in);
}
