// WgmmaInstruction: the types, majors and shapes of wgmma, and its text.
#include "dsl/tensorcore/WgmmaInstruction.h"
#include "dsl/kernel/AsmText.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// What the instruction is called for an operand type, and what it gives.
struct WgmmaOperandKind {
  Type type;
  const char *ptx;
  bool hasF16Accumulator;
  bool hasMnMajor; ///< the instruction can transpose it

  bool isInteger() const { return !is_float(type); }
  bool isEightBitFloat() const {
    return type == Type::e4m3 || type == Type::e5m2;
  }
};
} // namespace

static constexpr WgmmaOperandKind kWgmmaOperandKinds[] = {
    {Type::f16, "f16", true, true},     {Type::bf16, "bf16", false, true},
    {Type::tf32, "tf32", false, false}, {Type::e4m3, "e4m3", true, false},
    {Type::e5m2, "e5m2", true, false},  {Type::i8, "s8", false, false},
    {Type::u8, "u8", false, false},
};

static const WgmmaOperandKind *findKind(Type type) {
  for (const WgmmaOperandKind &kind : kWgmmaOperandKinds)
    if (kind.type == type)
      return &kind;
  return nullptr;
}

static const WgmmaOperandKind &wgmmaKindOf(Type type, const Where &where) {
  if (const WgmmaOperandKind *kind = findKind(type))
    return *kind;
  userErrorAt(where,
              "wgmma has no operands of type {}; it takes f16, bf16, "
              "tf32, e4m3, e5m2, i8 and u8",
              name(type));
}

std::string WgmmaShape::text(int steps) const {
  int registers = accumulatorRegisters();
  const WgmmaOperandKind &kindA = *findKind(a), &kindB = *findKind(b);
  // Integers have no signs to turn, and only 16 bits can be transposed.
  std::string tail;
  if (!kindA.isInteger())
    tail += fmt::format(", {}, {}", options.negate_a ? -1 : 1,
                        options.negate_b ? -1 : 1);
  if (kindA.hasMnMajor && !isAInRegisters)
    tail += isAKMajor ? ", 0" : ", 1";
  if (kindA.hasMnMajor)
    tail += isBKMajor ? ", 0" : ", 1";
  const char *result = accumulator == Type::i32   ? "s32"
                       : accumulator == Type::f16 ? "f16"
                                                  : "f32";
  std::string head = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{} {}, ", columns, k(),
      result, kindA.ptx, kindB.ptx, options.saturate ? ".satfinite" : "",
      registerList(0, registers));
  int next = 2 * registers; // outputs, then the inputs tied to them
  int adds = next + steps * operandsOfAStep();
  std::string text = "{\n.reg .pred added;\n";
  for (int step = 0; step < steps; ++step, next += operandsOfAStep()) {
    std::string operandA =
        isAInRegisters ? registerList(next, 4) : fmt::format("${}", next);
    if (step < 2)
      text += fmt::format("setp.ne.b32 added, ${}, 0;\n", adds + step);
    text += fmt::format("{}{}, ${}, added{};\n", head, operandA,
                        next + operandsOfAStep() - 1, tail);
  }
  return text + "}";
}

std::string WgmmaShape::constraints(int steps) const {
  std::string text;
  for (int step = 0; step < steps; ++step)
    text += isAInRegisters ? "r,r,r,r,l," : "l,l,";
  return text + (steps > 1 ? "r,r" : "r");
}

void checkWgmmaColumns(Type type, int columns, const Where &where) {
  if (columns < 8 || columns > 256 || columns % 8 != 0)
    userErrorAt(where,
                "an instruction of {} columns; wgmma takes multiples of "
                "8 from 8 to 256",
                columns);
  // PTX, "Asynchronous Warpgroup Level Matrix Shape".
  if (!is_float(type) && columns % 16 != 0 && columns != 8 && columns != 24)
    userErrorAt(where,
                "an instruction of {} columns; wgmma of {} takes 8, 24 and "
                "multiples of 16 up to 256",
                columns, name(type));
}

void checkWgmma(const WgmmaShape &shape, const Where &where) {
  const WgmmaOperandKind &kindA = wgmmaKindOf(shape.a, where);
  const WgmmaOperandKind &kindB = wgmmaKindOf(shape.b, where);
  bool isMixable = kindA.isEightBitFloat() ? kindB.isEightBitFloat()
                   : kindA.isInteger()     ? kindB.isInteger()
                                           : kindA.type == kindB.type;
  if (!isMixable)
    userErrorAt(where, "wgmma cannot multiply {} by {}", name(shape.a),
                name(shape.b));
  bool hasAccumulator = kindA.isInteger() ? shape.accumulator == Type::i32
                        : shape.accumulator == Type::f16
                            ? kindA.hasF16Accumulator
                            : shape.accumulator == Type::f32;
  if (!hasAccumulator)
    userErrorAt(where, "wgmma of {} accumulates in {}, not in {}",
                name(shape.a),
                kindA.isInteger()         ? "i32"
                : kindA.hasF16Accumulator ? "f32 or f16"
                                          : "f32",
                name(shape.accumulator));
  checkWgmmaColumns(shape.a, shape.columns, where);
  for (const char *which : {"a", "b"}) {
    bool isA = *which == 'a';
    if ((isA ? shape.isAKMajor : shape.isBKMajor) || kindA.hasMnMajor)
      continue;
    userErrorAt(where,
                "operand {} of type {} is not K-major; on sm_90 only "
                "f16 and bf16 can be: store it with K contiguous",
                which, name(isA ? shape.a : shape.b));
  }
  if (kindA.isInteger() && (shape.options.negate_a || shape.options.negate_b))
    userErrorAt(where, "wgmma of {} has no negation; only floats do",
                name(shape.a));
  if (!kindA.isInteger() && shape.options.saturate)
    userErrorAt(where, "wgmma of {} does not saturate; only integers do",
                name(shape.a));
}

/// "=&f,=&f,...,0,1,...": `count` registers that go in and come out, and are
/// written while other operands are still to be read.
static std::string tiedConstraints(int count, char letter) {
  std::string outputs, inputs;
  for (int i = 0; i < count; ++i) {
    outputs += fmt::format("=&{},", letter);
    inputs += fmt::format("{},", i);
  }
  return outputs + inputs;
}

void tiedAsm(KernelBuilder::State &state, const std::string &text,
             const std::string &moreConstraints,
             llvm::MutableArrayRef<mlir::Value> registers,
             llvm::ArrayRef<mlir::Value> moreOperands, const Where &where) {
  int count = static_cast<int>(registers.size());
  llvm::SmallVector<mlir::Value> operands(registers.begin(), registers.end());
  operands.append(moreOperands.begin(), moreOperands.end());
  mlir::Type type = registers.front().getType();
  llvm::SmallVector<mlir::Type> types(count, type);
  mlir::Type result =
      count == 1
          ? type
          : mlir::LLVM::LLVMStructType::getLiteral(state.context.get(), types);
  char letter = type.isF32() ? 'f' : 'r';
  mlir::Value out =
      state.inlineAsm(text, tiedConstraints(count, letter) + moreConstraints,
                      operands, result, where);
  if (count == 1) {
    registers[0] = out;
    return;
  }
  for (int i = 0; i < count; ++i)
    registers[i] = mlir::LLVM::ExtractValueOp::create(
        state.builder, state.at(where), out, llvm::ArrayRef<std::int64_t>{i});
}

} // namespace kiln
