// RawPtx: texts and operands that do not belong together.
#include "Refused.h"

using namespace errors;

namespace {
struct RawPtxErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Value whole = kb.scalar("whole", i32);
  Tensor x = kb.tensor("x", i8, {32});
};
} // namespace

TEST_F(RawPtxErrors, Placeholders) {
  refused(
      __LINE__, [&] { inline_ptx("mov.b32 {0}, {1};", {out(i32)}); },
      "inline_ptx(\"mov.b32 {0}, {1};\") names operand {1} and has 1");
  refused(
      __LINE__, [&] { inline_ptx("mov.b32 {0}, 5;", {out(i32), in(whole)}); },
      "inline_ptx(\"mov.b32 {0}, 5;\") never names its operand {1}");
}

TEST_F(RawPtxErrors, Types) {
  refused(
      __LINE__, [&] { inline_ptx("mov.b8 {0}, 1;", {out(u8)}); },
      "inline_ptx has no register for u8; cast or widen it to 16 bits");
  Value address = x(0).address();
  refused(
      __LINE__, [&] { inline_ptx("prefetch.L1 [{0}];", {inout(address)}); },
      "an operand of inline_ptx is an address and inout; addresses are read");
}

TEST_F(RawPtxErrors, TextsThatAreNoInstruction) {
  for (std::string text : {"", "mov.b32 %r1, 0"})
    refused(
        __LINE__, [&] { inline_ptx(text); },
        fmt::format("inline_ptx(\"{}\") does not end an instruction; end it "
                    "with ';'",
                    text));
}

TEST_F(RawPtxErrors, PredicatesGuardOneInstruction) {
  PtxOptions guarded{.predicate = whole == 0};
  refused(
      __LINE__, [&] { inline_ptx("membar.cta; membar.gl;", {}, guarded); },
      "inline_ptx(\"membar.cta; membar.gl;\") is not one instruction, and a "
      "predicate guards one; use if_ around several");
  refused(
      __LINE__, [&] { inline_ptx("membar.cta;", {}, {.predicate = whole}); },
      "expected a value of type i1, found i32; `cast` converts");
}

TEST_F(RawPtxErrors, PureWithoutAResult) {
  refused(
      __LINE__, [&] { inline_ptx("membar.cta;", {}, {.is_pure = true}); },
      "inline_ptx(\"membar.cta;\") is pure and writes nothing, so it would be "
      "removed; give it an out or leave is_pure");
}
