// Atomics: types and orders an operation does not have.
#include "Refused.h"

using namespace errors;

namespace {
struct AtomicErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Tensor whole = kb.tensor("whole", i32, {8});
  Tensor real = kb.tensor("real", f32, {8});
  Tensor half = kb.tensor("half", f16, {8});
  Tensor small = kb.tensor("small", u8, {8});
};
} // namespace

TEST_F(AtomicErrors, Types) {
  refused(
      __LINE__, [&] { atomic_add(half(0), 1); },
      "there is no atom.add of f16; it takes i32, u32, i64, u64, index, f32 "
      "and f64");
  refused(
      __LINE__, [&] { atomic_max(real(0), 1); },
      "there is no atom.max of f32; it takes i32, u32, i64, u64 and index");
  refused(
      __LINE__, [&] { reduce_xor(real(0), 1); },
      "there is no red.xor of f32; it takes i32, u32, i64, u64 and index");
  refused(
      __LINE__, [&] { atomic_exchange(small(0), 1); },
      "there is no atom.exch of u8; it takes types of 32 and 64 bits");
  refused(
      __LINE__, [&] { atomic_compare_exchange(half(0), 1, 2); },
      "there is no atom.cas of f16; it takes types of 32 and 64 bits");
  refused(
      __LINE__, [&] { atomic_load(half(0)); },
      "there is no atomic_load of f16; it takes types of 32 and 64 bits");
}

TEST_F(AtomicErrors, ValuesHaveTheElementsType) {
  refused(
      __LINE__, [&] { atomic_add(whole(0), real(0)); },
      "expected a value of type i32, found f32; `cast` converts");
}

TEST_F(AtomicErrors, ReductionsAcquireNothing) {
  AtomicOptions acquiring{.order = MemoryOrder::acquire};
  refused(
      __LINE__, [&] { reduce_add(whole(0), 1, acquiring); },
      "reduce_add gives no value, so nothing can be acquired by it; its order "
      "is relaxed or release");
}

TEST_F(AtomicErrors, LoadsReleaseNothing) {
  AtomicOptions releasing{.order = MemoryOrder::release};
  refused(
      __LINE__, [&] { atomic_load(whole(0), releasing); },
      "atomic_load writes nothing, so nothing can be released by it; its order "
      "is relaxed or acquire");
}
