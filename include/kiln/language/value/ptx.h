// ptx.h: an instruction Kiln has no name for, written as PTX.
//
// The text is PTX with {0}, {1}, ... for its operands. Registers follow from
// the operands' types; what is written comes back as Values, in order. All
// other braces are PTX's own:
//
//     Value nearest =
//         inline_ptx("cvt.rna.tf32.f32 {0}, {1};", {out(tf32), in(x)})[0];
//     inline_ptx("ld.global.v2.f32 {{0}, {1}}, [{2}];",
//                {out(f32), out(f32), in(x(i).address())});
//     inline_ptx("add.s32 {0}, {0}, 1;", {inout(n)}, {.predicate = n < 4});
//
//     i16 u16 f16 bf16      .b16   (h)      i64 u64 index, addresses  .b64 (l)
//     i32 u32               .b32   (r)      f64                       .f64 (d)
//     f32 tf32              .f32   (f)      i1                        .pred (b)
//
// There are no registers of 8 bits: cast to 16. Where a tensor is called `in`
// or `out` it hides these words; say kiln::out.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>

#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// One operand of `inline_ptx`, made by in, out and inout.
class PtxOperand {
public:
  enum class Access : std::uint8_t { read, write, read_write };

  PtxOperand(Access access, Type type, std::optional<At> value)
      : access_(access), type_(type), value_(std::move(value)) {}

  Access access() const { return access_; }
  Type type() const { return type_; } ///< of what is written
  const std::optional<At> &value() const { return value_; }

private:
  Access access_;
  Type type_;
  std::optional<At> value_;
};

/// Read by the instruction.
PtxOperand in(At value);
/// Written by it.
PtxOperand out(Type type);
/// Read and written, in one register.
PtxOperand inout(At value);

struct PtxOptions {
  /// i1: the text is one instruction, run where it holds (@p in front). Where
  /// it does not, what is `out` is 0 and `inout` keeps its own.
  std::optional<Value> predicate;
  /// It does nothing but compute its results: the compiler removes it where
  /// they are not used. Else it is done where it stands, and memory is taken to
  /// have changed.
  bool is_pure = false;
};

/// Add the text to the kernel. Returns what it wrote, in the order of the
/// operands.
std::vector<Value> inline_ptx(const std::string &text,
                              const std::vector<PtxOperand> &operands = {},
                              const PtxOptions &options = {},
                              Where where = Where::current());

} // namespace kiln
