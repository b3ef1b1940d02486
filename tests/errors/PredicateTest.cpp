// Predicate: what cannot have a condition in front of it, and cp.async.
#include "Refused.h"

using namespace errors;

namespace {
struct PredicateErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Tensor x = kb.tensor("x", f32, {32});
  SharedTile tile = kb.shared({.type = f32, .rows = 1, .columns = 32});
  SharedTile halves = kb.shared({.type = f16, .rows = 1, .columns = 32});
  Mbarrier barrier = kb.mbarriers(1)[0];
  Value is_first = thread_id() == 0;
};
} // namespace

TEST_F(PredicateErrors, NoCondition) {
  refused(
      __LINE__, [&] { predicated(thread_id(), [] {}); },
      "expected a value of type i1, found i32; `cast` converts");
  refused(
      __LINE__, [&] { predicated(is_first, nullptr); },
      "predicated was given no body");
}

TEST_F(PredicateErrors, ControlFlow) {
  refused(
      __LINE__, [&] { predicated(is_first, [&] { if_(is_first, [] {}); }); },
      "scf.if stands inside predicated and takes no predicate; use if_ around "
      "it");
  auto loop = [] { for_range(0, 4, [](Value) {}); };
  refused(
      __LINE__, [&] { predicated(is_first, loop); },
      "scf.for stands inside predicated and takes no predicate; use if_ around "
      "it");
}

TEST_F(PredicateErrors, MoreThanOneInstruction) {
  refused(
      __LINE__, [&] { predicated(is_first, [&] { barrier.wait(0); }); },
      "what stands here is more than one instruction, and a predicate guards "
      "one; use if_ around it");
  const char *two = "membar.cta; membar.gl;";
  refused(
      __LINE__, [&] { predicated(is_first, [&] { inline_ptx(two); }); },
      "inline_ptx(\"membar.cta; membar.gl;\") is not one instruction, and a "
      "predicate guards one; use if_ around several");
}

TEST_F(PredicateErrors, WhatIsDoneInAnyCase) {
  Var sum(f32, 0);
  refused(
      __LINE__, [&] { predicated(is_first, [&] { sum = x(0); }); },
      "a Var is assigned inside predicated, which guards instructions; assign "
      "it a select instead");
  refused(
      __LINE__, [&] { predicated(is_first, [] { sync_threads(); }); },
      "nvvm.barrier0 stands inside predicated and takes no predicate; use if_ "
      "around it");
}

TEST_F(PredicateErrors, AsyncCopies) {
  refused(
      __LINE__, [&] { async_copy(x(0), tile(0, 0), 4); },
      "async_copy goes from an element of a tensor to one of a shared tile");
  refused(
      __LINE__, [&] { async_copy(halves(0, 0), x(0), 4); },
      "async_copy from f32 to f16; both have one type");
  refused(
      __LINE__, [&] { async_copy(tile(0, 0), x(0), 3); },
      "async_copy of 12 bytes; it takes 4, 8 or 16");
  refused(
      __LINE__, [] { async_copy_wait(-1); },
      "-1 groups of copies cannot be in flight; 0 or more can");
}
