// WgmmaInstruction: the types, majors and shapes of wgmma, and its text.
#include "dsl/tensorcore/WgmmaInstruction.h"
#include "dsl/kernel/AsmText.h"
#include "isa/MatrixForms.h"
#include "support/Error.h"

namespace kiln {

/// Whether an operand may be MN-major: the instruction can transpose 16 bits.
static bool hasMnMajor(Type type) {
  return type == Type::f16 || type == Type::bf16;
}

/// The row of the instruction for those operands; null: it has none.
static const isa::MatrixForm *formOf(Type a, Type b) {
  return isa::findMatrixForm("wgmma", "", isa::ptxName(a), isa::ptxName(b));
}

static void checkOperand(Type type, const Where &where) {
  if (!formOf(type, type))
    userErrorAt(where, "wgmma has no operands of type {}; it takes {}",
                name(type), isa::matrixOperands("wgmma"));
}

std::string WgmmaShape::text(int steps) const {
  int registers = accumulatorRegisters();
  // Integers have no signs to turn, and only 16 bits can be transposed.
  std::string tail;
  if (is_float(a))
    tail += fmt::format(", {}, {}", options.negate_a ? -1 : 1,
                        options.negate_b ? -1 : 1);
  if (hasMnMajor(a) && !isAInRegisters)
    tail += isAKMajor ? ", 0" : ", 1";
  if (hasMnMajor(a))
    tail += isBKMajor ? ", 0" : ", 1";
  std::string head = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{} {}, ", columns, k(),
      isa::ptxName(accumulator), isa::ptxName(a), isa::ptxName(b),
      options.saturate ? ".satfinite" : "",
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
  if (!isa::isWgmmaWidth(columns, /*isInteger=*/false))
    userErrorAt(where,
                "an instruction of {} columns; wgmma takes multiples of "
                "8 from 8 to 256",
                columns);
  if (!isa::isWgmmaWidth(columns, !is_float(type)))
    userErrorAt(where,
                "an instruction of {} columns; wgmma of {} takes 8, 24 and "
                "multiples of 16 up to 256",
                columns, name(type));
}

void checkWgmma(const WgmmaShape &shape, const Where &where) {
  checkOperand(shape.a, where);
  checkOperand(shape.b, where);
  const isa::MatrixForm *form = formOf(shape.a, shape.b);
  if (!form)
    userErrorAt(where, "wgmma cannot multiply {} by {}", name(shape.a),
                name(shape.b));
  bool isInteger = !is_float(shape.a);
  if (!form->hasSum(isa::ptxName(shape.accumulator)))
    userErrorAt(where, "wgmma of {} accumulates in {}, not in {}",
                name(shape.a),
                isInteger             ? "i32"
                : form->hasSum("f16") ? "f32 or f16"
                                      : "f32",
                name(shape.accumulator));
  checkWgmmaColumns(shape.a, shape.columns, where);
  for (const char *which : {"a", "b"}) {
    bool isA = *which == 'a';
    if ((isA ? shape.isAKMajor : shape.isBKMajor) || hasMnMajor(shape.a))
      continue;
    userErrorAt(where,
                "operand {} of type {} is not K-major; on sm_90 only "
                "f16 and bf16 can be: store it with K contiguous",
                which, name(isA ? shape.a : shape.b));
  }
  if (isInteger && (shape.options.negate_a || shape.options.negate_b))
    userErrorAt(where, "wgmma of {} has no negation; only floats do",
                name(shape.a));
  if (!isInteger && shape.options.saturate)
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
