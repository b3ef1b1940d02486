// Matrix: what a warp does with matrices in its registers.
//
// Each is one instruction for whole warps, written as PTX: LLVM's intrinsics
// have one name per form, PTX one word per field of it.
#include "kiln/language/tensorcore/matrix.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/ptx.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

/// "{{0}, {1}}" of `count` operands from `first` on.
static std::string operandList(std::size_t first, std::size_t count) {
  std::string text;
  for (std::size_t i = first; i < first + count; ++i)
    text += fmt::format("{}{{{}}}", i == first ? "" : ", ", i);
  return fmt::format("{{{}}}", text);
}

/// "sync.aligned.m8n8.x4.trans.shared.b16", for rows in shared memory.
static std::string suffix(const char *what, const Element &row,
                          std::size_t count, const MatrixOptions &options,
                          const Where &where) {
  if (count != 1 && count != 2 && count != 4)
    userErrorAt(where, "{} moves 1, 2 or 4 matrices, not {}", what, count);
  if (!row.is_shared())
    userErrorAt(where,
                "{} was given an element of a tensor; its rows lie in shared "
                "memory",
                what);
  if (size_bytes(row.type()) > 2)
    userErrorAt(where,
                "{} was given an element of {}; its matrices have elements of "
                "16 bits, or pairs of 8",
                what, name(row.type()));
  return fmt::format("sync.aligned.m8n8.x{}{}.shared.b16", count,
                     options.transpose ? ".trans" : "");
}

Values ldmatrix(const Element &row, int count, const MatrixOptions &options,
                Where where) {
  std::string form = suffix("ldmatrix", row, count, options, where);
  std::vector<PtxOperand> operands(count, out(Type::u32));
  operands.push_back(in(At(row.address(), where)));
  return inline_ptx(fmt::format("ldmatrix.{} {}, [{{{}}}];", form,
                                operandList(0, count), count),
                    operands, {}, where);
}

void stmatrix(const Element &row, const Values &words,
              const MatrixOptions &options, Where where) {
  auto &state = KernelBuilder::State::current(where);
  std::string form = suffix("stmatrix", row, words.size(), options, where);
  std::vector<PtxOperand> operands = {in(At(row.address(), where))};
  for (const Value &word : words) {
    state.use(At(word, where), Type::u32);
    operands.push_back(in(At(word, where)));
  }
  inline_ptx(fmt::format("stmatrix.{} [{{0}}], {};", form,
                         operandList(1, words.size())),
             operands, {}, where);
}

Value movmatrix(At word) {
  KernelBuilder::State::current(word.where()).use(word, Type::u32);
  return inline_ptx("movmatrix.sync.aligned.m8n8.trans.b16 {0}, {1};",
                    {out(Type::u32), in(word)}, {}, word.where())[0];
}

// Products.

/// A type as mma names it.
static std::string ptxName(Type type) {
  if (type == Type::i8 || type == Type::i32)
    return fmt::format("s{}", size_bits(type));
  return std::string(name(type));
}

/// Registers of one lane for a matrix of `elements`; only f64 and sums of 32
/// bits have a register each.
static int registersOf(Type type, int elements) {
  int bits = size_bits(type);
  return elements * bits / std::max(bits, 32) / 32;
}

int MmaForm::a_registers() const { return registersOf(a, m * k); }
int MmaForm::b_registers() const { return registersOf(b, k * n); }
int MmaForm::accumulators() const { return registersOf(accumulator, m * n); }

std::string MmaForm::to_string() const {
  return fmt::format("m{}n{}k{}, {} += {} * {}", m, n, k, name(accumulator),
                     name(a), name(b));
}

/// Whether PTX has the form.
static bool isForm(const MmaForm &form) {
  auto isByte = [](Type type) { return type == Type::i8 || type == Type::u8; };
  bool is16 = form.m == 16 && form.n == 8, is8 = form.m == 8 && form.n == 8;
  if (isByte(form.a) && isByte(form.b))
    return form.accumulator == Type::i32 &&
           ((is16 && (form.k == 16 || form.k == 32)) || (is8 && form.k == 16));
  if (form.a != form.b)
    return false;
  switch (form.a) {
  case Type::f16:
  case Type::bf16:
    return is16 && (form.k == 8 || form.k == 16) &&
           (form.accumulator == Type::f32 ||
            (form.accumulator == Type::f16 && form.a == Type::f16));
  case Type::tf32:
    return is16 && (form.k == 4 || form.k == 8) &&
           form.accumulator == Type::f32;
  case Type::f64:
    return form.accumulator == Type::f64 &&
           ((is8 && form.k == 4) ||
            (is16 && (form.k == 4 || form.k == 8 || form.k == 16)));
  default:
    return false;
  }
}

/// The values of one matrix as operands, refused where they are too many, too
/// few or of another type than its registers.
static void addMatrix(std::vector<PtxOperand> &operands, const Values &values,
                      int count, Type type, const char *what,
                      const MmaForm &form, const Where &where) {
  if (static_cast<int>(values.size()) != count)
    userErrorAt(where, "mma {} takes {} registers of {} for {}, not {}",
                form.to_string(), count, name(type), what, values.size());
  for (const Value &value : values) {
    KernelBuilder::State::current(where).use(At(value, where), type);
    operands.push_back(in(At(value, where)));
  }
}

Values mma(const MmaForm &form, const Values &a, const Values &b,
           const Values &c, Where where) {
  if (!isForm(form))
    userErrorAt(where,
                "there is no mma {}; there are m16n8 with k 8 and 16 of f16 "
                "and bf16, 4 and 8 of tf32, 16 and 32 of i8 and u8, 4, 8 and "
                "16 of f64, and m8n8k16 of i8 and u8, m8n8k4 of f64",
                form.to_string());
  // Halves are packed also where they are summed.
  Type sum = form.accumulator == Type::f16 ? Type::u32 : form.accumulator;
  Type factor = form.a == Type::f64 ? Type::f64 : Type::u32;
  int count = form.accumulators();
  std::vector<PtxOperand> operands(count, out(sum));
  addMatrix(operands, a, form.a_registers(), factor, "A", form, where);
  addMatrix(operands, b, form.b_registers(), factor, "B", form, where);
  addMatrix(operands, c, count, sum, "C", form, where);
  std::size_t atB = count + a.size(), atC = atB + b.size();
  return inline_ptx(
      fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{} {}, {}, {}, "
                  "{};",
                  form.m, form.n, form.k, ptxName(form.accumulator),
                  ptxName(form.a), ptxName(form.b), ptxName(form.accumulator),
                  operandList(0, count), operandList(count, a.size()),
                  operandList(atB, b.size()), operandList(atC, c.size())),
      operands, {}, where);
}

} // namespace kiln
