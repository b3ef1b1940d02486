// TensorProduct: tcgen05.mma: what it multiplies, and its text.
#include "dsl/tensorcore/SharedOperand.h"
#include "isa/MatrixForms.h"
#include "kiln/language/tensorcore/tensor_memory.h"
#include "support/Error.h"

namespace kiln {

namespace {
/// How a type of operands is multiplied (PTX, "Instruction descriptor").
struct TensorOperandKind {
  Type type;
  std::string_view kind; ///< of the instruction
  unsigned format;       ///< in the descriptor
};

/// How factors are multiplied with a kind of operands.
struct ScaledKind {
  const char *of; ///< operands
  Type scale;
  const char *kind; ///< of the instruction
  int block;        ///< elements of K
};

/// What one instruction computes.
struct Instruction {
  TensorOperandKind a, b;
  Type accumulator;
  int rows, columns; ///< M and N, of both CTAs of a pair
  bool isAKMajor, isBKMajor;
  TensorMmaOptions options;

  bool isScaled() const { return options.a_scales && options.b_scales; }
  /// Null: none has such factors.
  const ScaledKind *scaled() const;
  int k() const {
    return static_cast<int>(elements_in(a.type, kInstructionKBytes));
  }
  /// The block of K that the instruction at k begins with.
  int block(int k) const { return k / scaled()->block; }
  std::uint32_t descriptor(int k) const;
};
} // namespace

static constexpr ScaledKind kScaledKinds[] = {
    {"f8f6f4", Type::ue8m0, "mxf8f6f4.block_scale.scale_vec::1X", 32},
    {"mxf4", Type::ue8m0, "mxf4.block_scale.scale_vec::2X", 32},
    {"mxf4", Type::ue4m3, "mxf4nvf4.block_scale.scale_vec::4X", 16},
};

const ScaledKind *Instruction::scaled() const {
  for (const ScaledKind &kind : kScaledKinds)
    if (kind.of == a.kind &&
        kind.scale == options.a_scales->type())
      return &kind;
  return nullptr;
}

static TensorOperandKind tensorKindOf(Type type, const Where &where) {
  // Elements of 4 bits are packed.
  for (std::string_view kind : {"f16", "tf32", "i8", "mxf4", "f8f6f4"})
    if (const isa::TensorOperand *operand =
            isa::findTensorOperand(kind, isa::ptxName(type)))
      return {type, kind, operand->code};
  userErrorAt(where, "tcgen05.mma has no operands of type {}; it takes {}",
              name(type), isa::matrixOperands("tcgen05"));
}

std::uint32_t Instruction::descriptor(int k) const {
  std::uint32_t bits = a.format << 7 | b.format << 10 |
                       unsigned(options.negate_a) << 13 |
                       unsigned(options.negate_b) << 14 |
                       unsigned(!isAKMajor) << 15 | unsigned(!isBKMajor) << 16 |
                       unsigned(columns >> 3) << 17 | unsigned(rows >> 4) << 24;
  if (isScaled()) { // which bytes of their words the factors are, and what
    auto byte = static_cast<unsigned>(block(k) % kScalePieceBlocks);
    bool isPower = options.a_scales->type() == Type::ue8m0;
    return bits | byte << 4 | unsigned(isPower) << 23 | byte << 29;
  }
  unsigned result = accumulator == Type::f16   ? 0
                    : accumulator == Type::f32 ? 1
                                               : 2;
  return bits | result << 4;
}

/// Refuse types that do not go together.
static void checkTypes(const KernelBuilder::State &state,
                       const Instruction &one, bool isSpread,
                       const Where &where) {
  std::string_view kind = one.a.kind;
  bool isMixed = kind == "f8f6f4" || kind == "i8";
  if (kind != one.b.kind || (!isMixed && one.a.type != one.b.type))
    userErrorAt(where, "tcgen05.mma cannot multiply {} by {}", name(one.a.type),
                name(one.b.type));
  if (kind == "mxf4" && !one.isScaled())
    userErrorAt(where,
                "tcgen05.mma of {} takes factors of both operands: "
                "TensorMmaOptions::a_scales and b_scales",
                name(one.a.type));
  bool isNarrow = is_subbyte(one.a.type) || is_subbyte(one.b.type);
  if (isNarrow && (!one.isAKMajor || !one.isBKMajor))
    userErrorAt(where, "operands of less than 8 bits are K-major: their rows "
                       "are contiguous along K");
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
  if (one.accumulator == Type::f16 && !isSpread)
    userErrorAt(where, "sums of f16 have a column of 32 bits each; make their "
                       "tile with TensorMemory::half_sums");
  if (kind == "i8" && !state.device.has("tcgen05.mma.kind::i8"))
    userErrorAt(where, "{} does not multiply {}; sm_100a does",
                state.options.target, name(one.a.type));
  if (kind == "i8" && (one.options.negate_a || one.options.negate_b))
    userErrorAt(where, "tcgen05.mma of {} has no negation; only floats do",
                name(one.a.type));
}

/// Refuse factors that do not fit the product.
static void checkScales(const Instruction &one, const TensorTile &tile, int k,
                        const Where &where) {
  const auto &a = one.options.a_scales, &b = one.options.b_scales;
  if (!a && !b)
    return;
  if (!a || !b)
    userErrorAt(where, "factors of {} alone; both operands have them or none",
                a ? "a" : "b");
  if (!one.scaled() || a->type() != b->type())
    userErrorAt(where,
                "a product of {} with factors {} of a and {} of b; ue8m0 of "
                "both goes with floats of 8, 6 and 4 bits, ue4m3 with e2m1",
                name(one.a.type), name(a->type()), name(b->type()));
  if (one.accumulator != Type::f32 || tile.rows() != 128)
    userErrorAt(where,
                "a product with factors into {} rows of {}; 128 rows of f32 "
                "are possible",
                tile.rows(), name(one.accumulator));
  int blocks = k / one.scaled()->block;
  if (a->rows() != tile.rows() || b->rows() < tile.columns() ||
      a->blocks() < blocks || b->blocks() < blocks)
    userErrorAt(where,
                "factors of {} rows by {} blocks of a and {} by {} of b; a "
                "product of {}x{} with a K of {} has {} and {} rows by {} "
                "blocks",
                a->rows(), a->blocks(), b->rows(), b->blocks(), tile.rows(),
                tile.columns(), k, tile.rows(), tile.columns(), blocks);
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
  auto k = static_cast<int>(elements_in(type, kInstructionKBytes));
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

/// One instruction per 32 bytes of K; `operandA` gives that of A at k, and
/// `scales` the addresses of the factors there.
static void
issueAll(KernelBuilder::State &state, const TensorTile &tile,
         const Instruction &one, const SharedOperand &operandB,
         bool isAInTensorMemory,
         llvm::function_ref<mlir::Value(int k)> operandA,
         llvm::function_ref<mlir::Value(const TensorScales &, int)> scales,
         const Where &where) {
  bool isScaled = one.isScaled();
  std::string text = fmt::format(
      "{{\n.reg .pred added;\nsetp.ne.b32 added, $4, 0;\n"
      "tcgen05.mma.cta_group::{}.kind::{} [$0], {}, $2, $3,{} added;\n}}",
      tile.cta_group(), isScaled ? one.scaled()->kind : one.a.kind,
      isAInTensorMemory ? "[$1]" : "$1", isScaled ? " [$5], [$6]," : "");
  std::string constraints =
      fmt::format("r,{},l,r,r,{}~{{memory}}", isAInTensorMemory ? 'r' : 'l',
                  isScaled ? "r,r," : "");
  mlir::Value to = state.use(tile.address(), where);
  mlir::Value baseB =
      descriptorOf(state, operandB, operandB.tcgen05Fields(), where);
  mlir::Value first = firstAdds(state, one.options, where);
  mlir::Value always = state.constant(Type::i32, 1, where);
  for (int k = 0; k < operandB.tile.rows(); k += one.k()) {
    mlir::Value how = state.constant(
        Type::i32, static_cast<std::int32_t>(one.descriptor(k)), where);
    llvm::SmallVector<mlir::Value> operands{
        to, operandA(k),
        stepped(state, baseB, operandB.offsetBytes(0, k), where), how,
        k == 0 ? first : always};
    if (isScaled)
      for (const auto *of : {&one.options.a_scales, &one.options.b_scales})
        operands.push_back(scales(**of, k));
    state.inlineAsm(text, constraints, operands, nullptr, where);
  }
}

void TensorTile::mma(const SharedTile &a, const SharedTile &b,
                     const TensorMmaOptions &options, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkThread(state, where);
  SharedOperand operandA{a, !a.is_transposed()};
  SharedOperand operandB{b, b.is_transposed()};
  Instruction one{tensorKindOf(operandA.type(), where),
                  tensorKindOf(operandB.type(), where),
                  type_,
                  rows_ * cta_group_,
                  columns_,
                  operandA.isKMajor,
                  operandB.isKMajor,
                  options};
  checkTypes(state, one, is_spread_, where);
  checkColumns(one, cta_group_, where);
  checkShapes(*this, a.rows(), a.columns(), b, operandA.type(), where);
  checkScales(one, *this, a.columns(), where);
  checkOperand(operandA, "a", where);
  checkOperand(operandB, "b", where);
  mlir::Value baseA =
      descriptorOf(state, operandA, operandA.tcgen05Fields(), where);
  issueAll(
      state, *this, one, operandB, false,
      [&](int k) {
        return stepped(state, baseA, operandA.offsetBytes(0, k), where);
      },
      [&](const TensorScales &scales, int k) {
        int piece = one.block(k) / kScalePieceBlocks;
        return state.use(scales.address() + At(piece * scales.pitch_, where),
                         where);
      },
      where);
}

void TensorTile::mma(const TensorTile &a, const SharedTile &b,
                     const TensorMmaOptions &options, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkThread(state, where);
  SharedOperand operandB{b, b.is_transposed()};
  Instruction one{tensorKindOf(a.type(), where),
                  tensorKindOf(operandB.type(), where),
                  type_,
                  rows_ * cta_group_,
                  columns_,
                  true,
                  operandB.isKMajor,
                  options};
  checkTypes(state, one, is_spread_, where);
  checkColumns(one, cta_group_, where);
  checkShapes(*this, a.rows(), a.columns(), b, a.type(), where);
  if (options.a_scales || options.b_scales)
    userErrorAt(where, "a product with factors takes a from shared memory");
  checkOperand(operandB, "b", where);
  issueAll(
      state, *this, one, operandB, true,
      [&](int k) {
        return state.use(a.address() + At(k * size_bytes(a.type()) / 4, where),
                         where);
      },
      {}, where);
}

TensorScales TensorScales::slice(int first, int rows, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (first < 0 || rows < 32 || first % 32 || rows % 32 || first + rows > rows_)
    userErrorAt(where,
                "factors of {} rows from {} on; {} rows are there, and a "
                "slice has multiples of 32",
                rows, first, rows_);
  mlir::Value address = state.use(address_ + At(first / 32, where), where);
  return TensorScales(state.wrap(address, Type::u32), type_, rows, blocks_,
                      pitch_, cta_group_);
}

void TensorScales::copy(const SharedTile &from, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  if (!state.isOneThread)
    userErrorAt(where, "factors are copied outside one_thread; one thread "
                       "issues the copy");
  const TileLayout &layout = from.layout();
  int rowPieces = rows_ / kScalePieceRows,
      kPieces = blocks_ / kScalePieceBlocks;
  int bytes = rowPieces * kPieces * kScalePieceBytes;
  if (layout.type != type_ || layout.bytes() != bytes ||
      layout.swizzle != Swizzle::none || layout.panels() != 1 ||
      !from.is_whole() || pitch_ * 32 != rows_)
    userErrorAt(where,
                "factors {} of {} rows by {} blocks are copied from {}; they "
                "are {} bytes without a swizzle",
                name(type_), rows_, blocks_, layout.to_string(), bytes);
  // Rows of 16 bytes, eight of them a core matrix of 128.
  constexpr std::uint64_t kStride = 128 >> 4, kVersion = 1;
  mlir::Value base = descriptorOf(state, SharedOperand{from, true},
                                  kStride << 32 | kVersion << 46, where);
  for (int row = 0; row < rowPieces; ++row)
    for (int k = 0; k < kPieces; ++k)
      state.inlineAsm(
          fmt::format("tcgen05.cp.cta_group::{}.32x128b.warpx4 [$0], $1;",
                      cta_group_),
          "r,l,~{memory}",
          {state.use(address_ + At(k * pitch_ + 4 * row, where), where),
           stepped(state, base, (row * kPieces + k) * kScalePieceBytes, where)},
          nullptr, where);
}

} // namespace kiln
