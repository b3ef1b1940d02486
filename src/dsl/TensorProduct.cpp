// TensorProduct: tcgen05.mma: what it multiplies, and its text.
#include "dsl/SharedOperand.h"
#include "kiln/tensor_memory.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// How a type of operands is multiplied (PTX, "Instruction descriptor").
struct OperandKind {
  Type type;
  const char *kind; ///< of the instruction
  unsigned format;  ///< in the descriptor
};

/// What one instruction computes.
struct Instruction {
  const OperandKind &a, &b;
  Type accumulator;
  int rows, columns; ///< M and N, of both CTAs of a pair
  bool isAKMajor, isBKMajor;
  TensorMmaOptions options;

  std::uint32_t descriptor() const;
};
} // namespace

static constexpr OperandKind kOperandKinds[] = {
    {Type::f16, "f16", 0},     {Type::bf16, "f16", 1},
    {Type::tf32, "tf32", 2},   {Type::e4m3, "f8f6f4", 0},
    {Type::e5m2, "f8f6f4", 1}, {Type::u8, "i8", 0},
    {Type::i8, "i8", 1},
};

static const OperandKind &kindOf(Type type, const Where &where) {
  for (const OperandKind &kind : kOperandKinds)
    if (kind.type == type)
      return kind;
  userErrorAt(where,
              "tcgen05.mma has no operands of type {}; it takes f16, bf16, "
              "tf32, e4m3, e5m2, i8 and u8",
              name(type));
}

std::uint32_t Instruction::descriptor() const {
  unsigned result = accumulator == Type::f16   ? 0
                    : accumulator == Type::f32 ? 1
                                               : 2;
  return result << 4 | a.format << 7 | b.format << 10 |
         unsigned(options.negate_a) << 13 | unsigned(options.negate_b) << 14 |
         unsigned(!isAKMajor) << 15 | unsigned(!isBKMajor) << 16 |
         unsigned(columns >> 3) << 17 | unsigned(rows >> 4) << 24;
}

/// Refuse types that do not go together.
static void checkTypes(const KernelBuilder::State &state,
                       const Instruction &one, const Where &where) {
  std::string_view kind = one.a.kind;
  bool isMixed = kind == "f8f6f4" || kind == "i8";
  if (kind != one.b.kind || (!isMixed && one.a.type != one.b.type))
    userErrorAt(where, "tcgen05.mma cannot multiply {} by {}", name(one.a.type),
                name(one.b.type));
  bool hasHalf = one.a.type == Type::f16 || kind == "f8f6f4";
  bool fits = kind == "i8" ? one.accumulator == Type::i32
                           : one.accumulator == Type::f32 ||
                                 (one.accumulator == Type::f16 && hasHalf);
  if (!fits)
    userErrorAt(where, "tcgen05.mma of {} accumulates in {}, not in {}",
                name(one.a.type),
                kind == "i8" ? "i32"
                : hasHalf    ? "f32 or f16"
                             : "f32",
                name(one.accumulator));
  if (kind == "i8" && state.options.target == "sm_103a")
    userErrorAt(where, "sm_103a multiplies no {}; sm_100a does",
                name(one.a.type));
  if (kind == "i8" && (one.options.negate_a || one.options.negate_b))
    userErrorAt(where, "tcgen05.mma of {} has no negation; only floats do",
                name(one.a.type));
}

/// Refuse an N the instruction does not have.
static void checkColumns(const Instruction &one, int ctaGroup,
                         const Where &where) {
  int step = ctaGroup == 2 ? 32 : one.rows == 64 ? 8 : 16;
  bool isFew = one.columns < step || one.columns % step;
  if (isFew || one.columns > 256)
    userErrorAt(where,
                "a product of {} columns; tcgen05.mma of {} rows takes "
                "multiples of {} up to 256",
                one.columns, one.rows, step);
}

/// Refuse shapes that do not give the tile's.
static void checkShapes(const TensorTile &tile, int rowsA, int columnsA,
                        const SharedTile &b, Type type, const Where &where) {
  int columnsB = b.columns() * tile.cta_group();
  if (rowsA != tile.rows() || columnsB != tile.columns() ||
      columnsA != b.rows())
    userErrorAt(where, "{}x{} times {}x{}{} does not give {}x{}", rowsA,
                columnsA, b.rows(), b.columns(),
                tile.cta_group() == 2 ? " in each CTA of a pair" : "",
                tile.rows(), tile.columns());
  int k = kInstructionKBytes / size_bytes(type);
  if (columnsA % k != 0)
    userErrorAt(where,
                "a K of {} is not a multiple of the instruction's {} for {}",
                columnsA, k, name(type));
}

static void checkThread(const KernelBuilder::State &state, const Where &where) {
  state.requireTensorCore(TensorCore::tcgen05, "mma of tensor memory", where);
  if (!state.isOneThread)
    userErrorAt(where, "mma of tensor memory stands outside one_thread; one "
                       "thread issues it");
}

/// Whether the first instruction adds, as an i32.
static mlir::Value firstAdds(KernelBuilder::State &state,
                             const TensorMmaOptions &options,
                             const Where &where) {
  if (!options.add)
    return state.constant(Type::i32, 0, where);
  if (options.add->type() != Type::i1)
    userErrorAt(where, "TensorMmaOptions::add is an i1, not {}",
                name(options.add->type()));
  return mlir::arith::ExtUIOp::create(state.builder, state.at(where),
                                      state.builder.getI32Type(),
                                      state.use(*options.add, where));
}

/// One instruction per 32 bytes of K; `operandA` gives that of A at k.
static void issueAll(KernelBuilder::State &state, const TensorTile &tile,
                     const Instruction &one, const SharedOperand &operandB,
                     bool isAInTensorMemory,
                     llvm::function_ref<mlir::Value(int k)> operandA,
                     const Where &where) {
  std::string text = fmt::format(
      "{{\n.reg .pred added;\nsetp.ne.b32 added, $4, 0;\n"
      "tcgen05.mma.cta_group::{}.kind::{} [$0], {}, $2, $3, added;\n}}",
      tile.cta_group(), one.a.kind, isAInTensorMemory ? "[$1]" : "$1");
  std::string constraints =
      fmt::format("r,{},l,r,r,~{{memory}}", isAInTensorMemory ? 'r' : 'l');
  mlir::Value to = state.use(tile.address(), where);
  mlir::Value baseB =
      descriptorOf(state, operandB, operandB.tcgen05Fields(), where);
  mlir::Value how = state.constant(
      Type::i32, static_cast<std::int32_t>(one.descriptor()), where);
  mlir::Value first = firstAdds(state, one.options, where);
  mlir::Value always = state.constant(Type::i32, 1, where);
  int step = kInstructionKBytes / size_bytes(one.a.type);
  for (int k = 0; k < operandB.tile.rows(); k += step)
    state.inlineAsm(text, constraints,
                    {to, operandA(k),
                     stepped(state, baseB, operandB.offsetBytes(0, k), where),
                     how, k == 0 ? first : always},
                    nullptr, where);
}

void TensorTile::mma(const SharedTile &a, const SharedTile &b,
                     const TensorMmaOptions &options, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkThread(state, where);
  SharedOperand operandA{a, !a.is_transposed()};
  SharedOperand operandB{b, b.is_transposed()};
  Instruction one{kindOf(operandA.type(), where),
                  kindOf(operandB.type(), where),
                  type_,
                  rows_ * cta_group_,
                  columns_,
                  operandA.isKMajor,
                  operandB.isKMajor,
                  options};
  checkTypes(state, one, where);
  checkColumns(one, cta_group_, where);
  checkShapes(*this, a.rows(), a.columns(), b, operandA.type(), where);
  checkOperand(operandA, "a", where);
  checkOperand(operandB, "b", where);
  mlir::Value baseA =
      descriptorOf(state, operandA, operandA.tcgen05Fields(), where);
  issueAll(
      state, *this, one, operandB, false,
      [&](int k) {
        return stepped(state, baseA, operandA.offsetBytes(0, k), where);
      },
      where);
}

void TensorTile::mma(const TensorTile &a, const SharedTile &b,
                     const TensorMmaOptions &options, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkThread(state, where);
  SharedOperand operandB{b, b.is_transposed()};
  Instruction one{kindOf(a.type(), where),
                  kindOf(operandB.type(), where),
                  type_,
                  rows_ * cta_group_,
                  columns_,
                  true,
                  operandB.isKMajor,
                  options};
  checkTypes(state, one, where);
  checkColumns(one, cta_group_, where);
  checkShapes(*this, a.rows(), a.columns(), b, a.type(), where);
  checkOperand(operandB, "b", where);
  issueAll(
      state, *this, one, operandB, true,
      [&](int k) {
        return state.use(a.address() + At(k * size_bytes(a.type()) / 4, where),
                         where);
      },
      where);
}

} // namespace kiln
