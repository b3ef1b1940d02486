// Atomics: every operation and type, in global and in shared memory.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <algorithm>
#include <numeric>

using namespace conformance;

class Atomics : public OnDevice {};
INSTANTIATE_ON_DEVICES(Atomics);

namespace {
/// One operation in its two forms, and what it makes of two numbers.
struct Operation {
  const char *ptx;
  Value (*atomic)(const Element &, At, const AtomicOptions &);
  void (*reduce)(const Element &, At, const AtomicOptions &);
  std::int64_t (*on_host)(std::int64_t, std::int64_t);
};
} // namespace

static const Operation kOperations[] = {
    {"add", atomic_add, reduce_add, [](auto a, auto b) { return a + b; }},
    {"min", atomic_min, reduce_min,
     [](auto a, auto b) { return std::min(a, b); }},
    {"max", atomic_max, reduce_max,
     [](auto a, auto b) { return std::max(a, b); }},
    {"and", atomic_and, reduce_and, [](auto a, auto b) { return a & b; }},
    {"or", atomic_or, reduce_or, [](auto a, auto b) { return a | b; }},
    {"xor", atomic_xor, reduce_xor, [](auto a, auto b) { return a ^ b; }},
};
static constexpr int kCount = 6;

/// What 96 threads that bring 3t + 1 make of 12, for one operation.
static std::int64_t folded(const Operation &operation) {
  std::int64_t result = 12;
  for (int t = 0; t < 96; ++t)
    result = operation.on_host(result, 3 * t + 1);
  return result;
}

TEST_P(Atomics, EveryOperationOfIntegers) {
  for (Type type : {i32, u32, i64, u64}) {
    KernelBuilder kb("operations", {.threads = 96});
    Tensor sums = kb.tensor("sums", type, {3, kCount});
    SharedTile tile = kb.shared({.type = type, .rows = 1, .columns = 8});
    Value t = thread_id(), mine = cast(t * 3 + 1, type);
    if_(t < 8, [&] { tile(0, t) = 12; });
    sync_threads();
    for (int k = 0; k < kCount; ++k) {
      kOperations[k].atomic(sums(0, k), mine, {});
      kOperations[k].reduce(sums(1, k), mine, {});
      kOperations[k].reduce(tile(0, k), mine, {});
    }
    sync_threads();
    if_(t < kCount, [&] { sums(2, t) = tile(0, t); });
    Kernel kernel = compile_checked(kb.module());
    for (const Operation &operation : kOperations) {
      std::string name = std::string(".") + operation.ptx + ".";
      EXPECT_EQ(count(kernel.ptx, "atom.relaxed.gpu.global" + name), 1);
      EXPECT_EQ(count(kernel.ptx, "red.relaxed.gpu.global" + name), 1);
      EXPECT_EQ(count(kernel.ptx, "red.relaxed.gpu.shared" + name), 1);
    }
    EXPECT_TRUE(kernel.contract.arguments[0].is_output);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data =
        elements(type, std::vector<double>(3 * kCount, 12));
    run(*device, kernel, data);
    std::vector<double> found = values(type, data);
    for (int k = 0; k < 3 * kCount; ++k)
      EXPECT_EQ(found[k], folded(kOperations[k % kCount]))
          << name(type) << " " << kOperations[k % kCount].ptx << " "
          << k / kCount;
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Atomics, SignsDecideMinAndMax) {
  KernelBuilder kb("signs", {.threads = 1});
  Tensor a = kb.tensor("a", i32, {2});
  Tensor b = kb.tensor("b", u32, {2});
  atomic_min(a(0), -1);
  atomic_max(a(1), -1);
  reduce_min(b(0), 0xFFFFFFFFu);
  reduce_max(b(1), 0xFFFFFFFFu);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> signed_data = {5, 5};
  std::vector<unsigned> unsigned_data = {5, 5};
  run(device, kernel, signed_data, unsigned_data);
  EXPECT_EQ(signed_data, (std::vector<int>{-1, 5}));
  EXPECT_EQ(unsigned_data, (std::vector<unsigned>{5, 0xFFFFFFFFu}));
}

TEST_P(Atomics, AddOfFloats) {
  for (Type type : {f32, f64}) {
    KernelBuilder kb("sum", {.threads = 64});
    Tensor sum = kb.tensor("sum", type, {2});
    kb.grid(3);
    Value mine = cast(thread_id(), type) * 0.5;
    atomic_add(sum(0), mine);
    reduce_add(sum(1), mine);
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data = elements(type, {1, 2});
    run(*device, kernel, data);
    EXPECT_EQ(values(type, data),
              (std::vector<double>{1 + 3 * 1008, 2 + 3 * 1008}))
        << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Atomics, OldValuesAreTickets) {
  // Every thread of every CTA draws another number.
  KernelBuilder kb("tickets", {.threads = 64});
  Tensor next = kb.tensor("next", u32, {1});
  Tensor drawn = kb.tensor("drawn", u32, {4, 64});
  kb.grid(4);
  drawn(block_id(), thread_id()) = atomic_add(next(0), 1);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<unsigned> counter = {10}, found(256, 0), expected(256);
  run(device, kernel, counter, found);
  std::iota(expected.begin(), expected.end(), 10);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(counter[0], 266u);
}

TEST_P(Atomics, ExchangeAndCompareExchange) {
  for (Type type : {i32, u64, f32, f64}) {
    KernelBuilder kb("exchange", {.threads = 1});
    Tensor x = kb.tensor("x", type, {3});
    Tensor old = kb.tensor("old", type, {3});
    old(0) = atomic_exchange(x(0), 7);
    old(1) = atomic_compare_exchange(x(1), 2, 8);
    old(2) = atomic_compare_exchange(x(2), 99, 9);
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "atom.relaxed.gpu.global.exch.b"), 1);
    EXPECT_EQ(count(kernel.ptx, "atom.relaxed.gpu.global.cas.b"), 2);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data = elements(type, {1, 2, 3});
    std::vector<std::uint8_t> before = poisoned(type, 3);
    run(*device, kernel, data, before);
    EXPECT_EQ(values(type, data), (std::vector<double>{7, 8, 3}));
    EXPECT_EQ(values(type, before), (std::vector<double>{1, 2, 3}));
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Atomics, OrderAndScope) {
  // The last CTA to arrive adds up what the others wrote before.
  KernelBuilder kb("last", {.threads = 1});
  Tensor parts = kb.tensor("parts", i32, {5});
  Tensor arrived = kb.tensor("arrived", i32, {1});
  Tensor sum = kb.tensor("sum", i32, {1});
  kb.grid(5);
  parts(block_id()) = block_id() + 1;
  Value before =
      atomic_add(arrived(0), 1, {.order = MemoryOrder::acquire_release});
  if_(before == 4, [&] {
    Var total(i32, 0);
    for_range(0, 5, [&](Value i) { total = total + parts(i); });
    sum(0) = total;
  });
  reduce_add(arrived(0), 0,
             {.order = MemoryOrder::release, .scope = Scope::sys});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "atom.acq_rel.gpu.global.add.s32"), 1);
  EXPECT_EQ(count(kernel.ptx, "red.release.sys.global.add.s32"), 1);
  OPEN_OR_SKIP(device);
  std::vector<int> parts_data(5, 0), arrived_data = {0}, sum_data = {0};
  run(device, kernel, parts_data, arrived_data, sum_data);
  EXPECT_EQ(sum_data[0], 15);
  EXPECT_EQ(arrived_data[0], 5);
}

TEST_P(Atomics, LoadsOfEveryType) {
  for (Type type : {i32, u64, f32, f64}) {
    KernelBuilder kb("loads", {.threads = 1});
    Tensor x = kb.tensor("x", type, {2});
    Tensor seen = kb.tensor("seen", type, {3});
    SharedTile tile = kb.shared({.type = type, .rows = 1, .columns = 4});
    tile(0, 1) = 6;
    seen(0) = atomic_load(x(0));
    seen(1) =
        atomic_load(x(1), {.order = MemoryOrder::acquire, .scope = Scope::sys});
    seen(2) = atomic_load(tile(0, 1));
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "ld.relaxed.gpu.global.b"), 1);
    EXPECT_EQ(count(kernel.ptx, "ld.acquire.sys.global.b"), 1);
    EXPECT_EQ(count(kernel.ptx, "ld.relaxed.gpu.shared.b"), 1);
    EXPECT_FALSE(kernel.contract.arguments[0].is_output);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data = elements(type, {4, 5});
    std::vector<std::uint8_t> found = poisoned(type, 3);
    run(*device, kernel, data, found);
    EXPECT_EQ(values(type, found), (std::vector<double>{4, 5, 6}))
        << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Atomics, LoadsWaitForAnotherCta) {
  // What comes before the flag is seen behind it.
  KernelBuilder kb("flag", {.threads = 1});
  Tensor word = kb.tensor("word", i32, {1});
  Tensor flag = kb.tensor("flag", i32, {1});
  Tensor copy = kb.tensor("copy", i32, {1});
  kb.grid(2);
  if_(
      block_id() == 0,
      [&] {
        word(0) = 42;
        reduce_add(flag(0), 1, {.order = MemoryOrder::release});
      },
      [&] {
        while_(
            [&] {
              return atomic_load(flag(0), {.order = MemoryOrder::acquire}) == 0;
            },
            [] {});
        copy(0) = word(0);
      });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> word_data = {0}, flag_data = {0}, copy_data = {0};
  run(device, kernel, word_data, flag_data, copy_data);
  EXPECT_EQ(copy_data[0], 42);
}
