// Values: what is refused of operators, literals, conversions and variables.
#include "Refused.h"

using namespace errors;

namespace {
/// A kernel with one value of each kind at hand.
struct ValueErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Tensor bytes = kb.tensor("bytes", e4m3, {32});
  Value whole = kb.scalar("whole", i32);
  Value wide = kb.scalar("wide", i64);
  Value real = kb.scalar("real", f32);
  Dim n = kb.dim("n");
};
} // namespace

TEST_F(ValueErrors, LiteralOfAnotherType) {
  refused(
      __LINE__, [&] { whole + 1.5; },
      "the literal 1.5 is not a valid i32; cast one of the operands");
  refused(
      __LINE__, [&] { 2.5 * whole; },
      "the literal 2.5 is not a valid i32; cast one of the operands");
  refused(
      __LINE__, [&] { constant(u8, 0.5); },
      "the literal 0.5 is not a valid u8; cast one of the operands");
}

TEST_F(ValueErrors, DimensionAsSomethingElse) {
  refused(
      __LINE__, [&] { real *n; },
      "the dimension n is an integer of 32 bits or more; cast it to use it "
      "as f32");
  refused(
      __LINE__, [&] { constant(u8, n + 1); },
      "the dimension add(n, 1) is an integer of 32 bits or more; cast it to "
      "use it as u8");
}

TEST_F(ValueErrors, OperandsOfTwoTypes) {
  refused(
      __LINE__, [&] { whole + wide; },
      "the operands of '+' are i32 and i64; `cast` one of them");
  refused(
      __LINE__, [&] { static_cast<void>(real < whole); },
      "the operands of '<' are f32 and i32; `cast` one of them");
  refused(
      __LINE__, [&] { min(whole, wide); },
      "the operands of 'min' are i32 and i64; `cast` one of them");
  refused(
      __LINE__, [&] { select(whole == 0, real, whole); },
      "the operands of 'select' are f32 and i32; `cast` one of them");
}

TEST_F(ValueErrors, OperatorsATypeDoesNotHave) {
  refused(__LINE__, [&] { real % 2; }, "there is no '%' of f32");
  refused(__LINE__, [&] { real & 2; }, "there is no '&' of f32");
  refused(__LINE__, [&] { real | 2; }, "there is no '|' of f32");
  refused(__LINE__, [&] { real ^ 2; }, "there is no '^' of f32");
  refused(__LINE__, [&] { real << 2; }, "there is no '<<' of f32");
  refused(__LINE__, [&] { real >> 2; }, "there is no '>>' of f32");
  refused(
      __LINE__, [&] { ceil_div(real, 2); }, "there is no 'ceil_div' of f32");
  refused(__LINE__, [&] { whole && 1; }, "there is no '&&' of i32");
  refused(__LINE__, [&] { whole || 1; }, "there is no '||' of i32");
}

TEST_F(ValueErrors, ConditionsAreI1) {
  std::string message = "expected a value of type i1, found i32; `cast` "
                        "converts";
  refused(__LINE__, [&] { !whole; }, message);
  refused(__LINE__, [&] { select(whole, 1, 2); }, message);
  refused(__LINE__, [&] { if_(whole, [] {}); }, message);
  refused(__LINE__, [&] { while_([&] { return whole; }, [] {}); }, message);
}

TEST_F(ValueErrors, Addresses) {
  Value address = kb.shared({f16, 8, 8}).address();
  refused(
      __LINE__, [&] { address + 8; },
      "'+' was applied to an address; tiles, barriers and tensors are "
      "indexed, not computed with");
}

TEST_F(ValueErrors, EightBitFloats) {
  Value byte = bytes(0);
  refused(
      __LINE__, [&] { byte + byte; },
      "'+' was applied to e4m3, which can be loaded, stored, cast and "
      "multiplied by wgmma, and not computed with");
}

TEST_F(ValueErrors, ConstantOfAValue) {
  refused(
      __LINE__, [&] { constant(i64, whole); },
      "`constant` takes a literal; `cast` converts a Value");
}

TEST_F(ValueErrors, StoresAndVariablesKeepTheirType) {
  Tensor x = kb.tensor("x", f32, {32});
  Var sum(f32, 0);
  std::string message = "expected a value of type f32, found i32; `cast` "
                        "converts";
  refused(__LINE__, [&] { x(0) = whole; }, message);
  refused(__LINE__, [&] { sum = whole; }, message);
  refused(__LINE__, [&] { Var(f32, whole); }, message);
}

TEST_F(ValueErrors, EmptyValue) {
  Value empty;
  refused(
      __LINE__, [&] { whole + empty; },
      "this Value was never given one; assign it before use");
}

TEST_F(ValueErrors, AnotherKernel) {
  Var count(i32, 0);
  KernelBuilder other("other", {.threads = 32});
  refused(
      __LINE__, [&] { whole + 1; },
      "this Value belongs to another kernel than other");
  refused(
      __LINE__, [&] { count = 1; },
      "this Var belongs to another kernel than other");
}

TEST_F(ValueErrors, IndicesOutsideAConstantShape) {
  SharedTile tile = kb.shared({f32, 8, 16});
  Tensor any = kb.tensor("any", f32, {n, 4});
  refused(
      __LINE__, [&] { bytes(32); },
      "index 32 of dimension 0 of a tensor; its 32 elements are 0 to 31");
  refused(
      __LINE__, [&] { any(1 << 20, -1); },
      "index -1 of dimension 1 of a tensor; its 4 elements are 0 to 3");
  refused(
      __LINE__, [&] { any(-1, 0); },
      "index -1 of dimension 0 of a tensor; indices begin at 0");
  refused(
      __LINE__, [&] { tile(8, 0); },
      "index 8 of dimension 0 of a shared tile; its 8 elements are 0 to 7");
  refused(
      __LINE__, [&] { tile.transpose()(0, 8); },
      "index 8 of dimension 1 of a shared tile; its 8 elements are 0 to 7");
}

TEST_F(ValueErrors, OutsideItsRegion) {
  Value inner;
  unsigned loop = __LINE__ + 1;
  for_range(0, n, [&](Value i) {
    Value next = i;
    inner = next + 1;
  });
  refused(
      __LINE__, [&] { inner + 1; },
      fmt::format("a value made at {} is used outside its region, the body "
                  "begun at {}; carry it out with a Var declared before "
                  "that body",
                  at(loop + 2), at(loop)));
}
