// AsyncCopy: cp.async of every size, its groups, and its arrivals.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class AsyncCopy : public OnDevice {};
INSTANTIATE_ON_DEVICES(AsyncCopy);

/// Copies 32 rows of `count` f16 through shared memory, with `wait` between;
/// thread t reads the first valid[t] of them.
static Kernel copied(int count, bool through_l1, bool is_partial) {
  KernelBuilder kb("copied", {.threads = 32});
  Tensor x = kb.tensor("x", f16, {32, count});
  Tensor y = kb.tensor("y", f16, {32, count});
  // Rows of 16 bytes, the least a tile has.
  SharedTile tile = kb.shared({.type = f16, .rows = 32, .columns = 8});
  Value t = thread_id();
  AsyncCopyOptions options{.through_l1 = through_l1};
  if (is_partial)
    options.valid = t % (count + 1);
  async_copy(tile(t, 0), x(t, 0), count, options);
  async_copy_commit();
  async_copy_wait(0);
  sync_threads();
  y.store_vector({31 - t, 0}, tile.load_vector(31 - t, 0, count));
  return compile_checked(kb.module());
}

TEST_P(AsyncCopy, EverySize) {
  for (int count : {2, 4, 8})
    for (bool through_l1 : {false, true})
      for (bool is_partial : {false, true}) {
        Kernel kernel = copied(count, through_l1, is_partial);
        bool is_past = count == 8 && !through_l1;
        EXPECT_EQ(conformance::count(kernel.ptx,
                                     is_past ? "cp.async.cg.shared.global"
                                             : "cp.async.ca.shared.global"),
                  1);
        EXPECT_EQ(kernel.contract.arguments[0].alignment_bytes, 2 * count);
        Device *device = conformance::open(GetParam()).device.get();
        if (!device)
          continue;
        std::vector<double> numbers(32 * count), expected;
        std::iota(numbers.begin(), numbers.end(), 1);
        for (int t = 0; t < 32; ++t)
          for (int i = 0; i < count; ++i)
            expected.push_back(is_partial && i >= t % (count + 1)
                                   ? 0
                                   : numbers[t * count + i]);
        auto in = elements(f16, numbers), out = poisoned(f16, 32 * count);
        EXPECT_TRUE(try_run(*device, kernel, in, out).ok());
        EXPECT_EQ(values(f16, out), expected) << count << is_partial;
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(AsyncCopy, GroupsInFlight) {
  KernelBuilder kb("groups", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {3, 32});
  Tensor y = kb.tensor("y", f32, {3, 32});
  SharedTile tile = kb.shared({.type = f32, .rows = 3, .columns = 32});
  Value t = thread_id();
  for (int i = 0; i < 3; ++i) {
    async_copy(tile(i, t), x(i, t), 1);
    if (i < 2)
      async_copy_commit();
  }
  // Of its own copies a thread needs no barrier to see what it waited for.
  async_copy_wait(1);
  y(0, t) = tile(0, t);
  async_copy_wait(0);
  y(1, t) = tile(1, t);
  async_copy_wait_all();
  y(2, t) = tile(2, t);
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "cp.async.wait_group 1"), 1);
  EXPECT_EQ(count(kernel.ptx, "cp.async.wait_all"), 1);
  OPEN_OR_SKIP(device);
  std::vector<float> in(96), out(96, -1);
  std::iota(in.begin(), in.end(), 0.f);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(out, in);
}

TEST_P(AsyncCopy, ArrivesAtABarrier) {
  for (bool is_extra : {false, true}) {
    KernelBuilder kb("arrives", {.threads = 32});
    Tensor x = kb.tensor("x", f32, {32});
    Tensor y = kb.tensor("y", f32, {32});
    SharedTile tile = kb.shared({.type = f32, .rows = 1, .columns = 32});
    Mbarrier barrier = kb.mbarriers(1)[0];
    Value t = thread_id();
    one_thread([&] { barrier.init(32); });
    sync_threads();
    async_copy(tile(0, t), x(t), 1);
    barrier.arrive_copies(is_extra);
    if (is_extra)
      barrier.arrive();
    barrier.wait(0);
    y(t) = tile(0, 31 - t);
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, ".noinc"), is_extra ? 0 : 1);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<float> in(32), out(32, -1);
    std::iota(in.begin(), in.end(), 0.f);
    EXPECT_TRUE(try_run(*device, kernel, in, out).ok());
    EXPECT_EQ(out, std::vector<float>(in.rbegin(), in.rend()));
  }
  SKIP_WITHOUT_DEVICE();
}
