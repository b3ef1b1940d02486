// WarpProduct: ldmatrix and mma.sync for the rows of each warp.
#include "dsl/tensorcore/WarpProduct.h"
#include "dsl/kernel/AsmText.h"
#include "dsl/tensorcore/WgmmaInstruction.h"
#include "isa/MatrixForms.h"
#include "kiln/language/value/math.h"
#include "support/Error.h"

namespace kiln {

/// Of mma.sync: a warp has 16 of the 64 rows of a warpgroup.
static constexpr int kWarpRows = 16, kColumns = 8;
/// What ldmatrix reads of a row.
static constexpr int kChunkBytes = 16;

void checkWarpColumns(int columns, const Where &where) {
  if (columns < kColumns || columns > 256 || columns % kColumns)
    userErrorAt(where,
                "an accumulator of {} columns; mma.sync takes multiples of {} "
                "up to 256",
                columns, kColumns);
}

llvm::SmallVector<mlir::Value>
zeroRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, const Where &where) {
  mlir::Value zero =
      accumulator.type == Type::f32
          ? state.constant(state.builder.getF32FloatAttr(0), where)
          : state.constant(Type::i32, 0, where);
  return llvm::SmallVector<mlir::Value>(accumulator.slots.size(), zero);
}

namespace {
/// Where the lanes of a warp find the rows of an operand's 8x8 matrices, each
/// 16 bytes long.
class WarpOperand {
public:
  WarpOperand(KernelBuilder::State &state, const SharedOperand &operand,
              bool isA, const Where &where);

  /// The words of 16 rows of A, or of so many columns of B, by 32 bytes of K
  /// from (mn, k) on: for each 8 of B those of its halves of K.
  llvm::SmallVector<mlir::Value> load(int mn, int k, int count = 16);

private:
  /// A lane's address but for what load() adds in the instruction, in a row's
  /// chunk of that number.
  mlir::Value address(int chunk);

  KernelBuilder::State &state_;
  const SharedOperand &operand_;
  Where where_;
  int rowChunks_;  ///< of a panel
  int mask_;       ///< of the chunks that a swizzle exchanges
  bool isAligned_; ///< the operand begins where the swizzle moves nothing
  Value base_;     ///< u32
  Value rows_;     ///< bytes to the lane's row, and to its panel
  Value chunk_;    ///< of it
  llvm::SmallVector<std::pair<int, mlir::Value>> addresses_;
};
} // namespace

WarpOperand::WarpOperand(KernelBuilder::State &state,
                         const SharedOperand &operand, bool isA,
                         const Where &where)
    : state_(state), operand_(operand), where_(where) {
  const TileLayout &layout = operand.layout();
  rowChunks_ = layout.row_bytes() / kChunkBytes;
  mask_ = std::max(0, static_cast<int>(layout.swizzle) / kChunkBytes - 1);
  const SharedTile &tile = operand.tile;
  int multiple = tile.origin_column_multiple();
  isAligned_ = multiple % layout.panel_columns() == 0;
  Value first = tile.is_whole() ? tile.address(where)
                                : tile(At(0, where), At(0, where)).address();
  base_ = state.wrap(mlir::LLVM::PtrToIntOp::create(
                         state.builder, state.at(where),
                         state.builder.getI32Type(), state.use(first, where)),
                     Type::i32);
  auto at = [&](int literal) { return At(literal, where); };
  // Lane 8 i + r names row r of matrix i. Those of A are, after one another,
  // the upper and lower rows of K's first half, then of the other; those of B
  // the halves of K of 8 columns, then of the next 8.
  Value lane = lane_id(where);
  Value inMatrix = lane & at(7);
  Value low = (lane >> at(3)) & at(1), high = (lane >> at(4)) & at(1);
  Value mnHalf = isA ? low : high, kHalf = isA ? high : low;
  Value row = inMatrix + At((operand.isKMajor ? mnHalf : kHalf) * at(8), where);
  Value chunk = operand.isKMajor ? kHalf : mnHalf;
  int chunks = 2; // that differ between lanes
  if (isA) {
    Value warp = warp_id(where) & at(3);
    if (operand.isKMajor) {
      row = row + At(warp * at(kWarpRows), where);
    } else {
      chunk = chunk + At(warp * at(2), where);
      chunks = 8;
    }
  }
  rows_ = row * at(layout.row_bytes());
  if (mask_)
    chunk_ = (rows_ >> at(7)) & at(mask_);
  if (chunks > rowChunks_) {
    rows_ =
        rows_ + At((chunk / at(rowChunks_)) * at(layout.panel_bytes()), where);
    chunk = chunk & at(rowChunks_ - 1);
  }
  // Where the swizzle depends on where the operand begins it comes later.
  chunk_ = mask_ && isAligned_ ? chunk_ ^ At(chunk, where) : chunk;
}

mlir::Value WarpOperand::address(int chunk) {
  for (const auto &[known, value] : addresses_)
    if (known == chunk)
      return value;
  auto at = [&](int literal) { return At(literal, where_); };
  Value inRow = (chunk_ ^ at(chunk)) * at(kChunkBytes);
  Value offset = rows_ + At(inRow, where_);
  Value address = base_ + At(offset, where_);
  if (mask_ && !isAligned_)
    address =
        address ^ At((address >> at(3)) & at(mask_ * kChunkBytes), where_);
  addresses_.push_back({chunk, state_.use(address, where_)});
  return addresses_.back().second;
}

llvm::SmallVector<mlir::Value> WarpOperand::load(int mn, int k, int count) {
  const TileLayout &layout = operand_.layout();
  int row = operand_.isKMajor ? mn : k, column = operand_.isKMajor ? k : mn;
  auto chunks = static_cast<int>(bytes_of(layout.type, column)) / kChunkBytes;
  int moved =
      row * layout.row_bytes() + chunks / rowChunks_ * layout.panel_bytes();
  int words = count / 4;
  mlir::Type word = state_.builder.getI32Type();
  llvm::SmallVector<mlir::Type> types(words, word);
  mlir::Value loaded = state_.inlineAsm(
      fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [${}+{}];",
                  words, operand_.isKMajor ? "" : ".trans",
                  registerList(0, words), words, moved),
      words == 4 ? "=r,=r,=r,=r,r,~{memory}" : "=r,=r,r,~{memory}",
      {address(chunks % rowChunks_)},
      mlir::LLVM::LLVMStructType::getLiteral(state_.context.get(), types),
      where_);
  llvm::SmallVector<mlir::Value> values;
  for (int i = 0; i < words; ++i)
    values.push_back(mlir::LLVM::ExtractValueOp::create(
        state_.builder, state_.at(where_), loaded,
        llvm::ArrayRef<std::int64_t>{i}));
  return values;
}

/// Refuse what mma.sync does not multiply.
static void checkProduct(Type a, Type b, Type sum, const MmaOptions &options,
                         const Where &where) {
  const isa::MatrixForm *form =
      isa::findMatrixForm("mma", "", isa::ptxName(a), isa::ptxName(b));
  if (!form)
    userErrorAt(where, "mma.sync cannot multiply {} by {}", name(a), name(b));
  if (!form->hasSum(isa::ptxName(sum)))
    userErrorAt(where, "mma.sync of {} accumulates in {}, not in {}", name(a),
                !is_float(a)          ? "i32"
                : form->hasSum("f16") ? "f32 or f16"
                                      : "f32",
                name(sum));
  if (options.negate_a || options.negate_b)
    userErrorAt(where, "mma.sync has no negation; negate what it is given");
  if (is_float(a) && options.saturate)
    userErrorAt(where, "mma.sync of {} does not saturate; only integers do",
                name(a));
}

/// Refuse an operand that ldmatrix does not read so.
static void checkMajor(const SharedOperand &operand, const char *which,
                       const Where &where) {
  checkOperand(operand, which, where);
  if (!operand.isKMajor && size_bytes(operand.type()) != 2)
    userErrorAt(where,
                "operand {} of type {} is not K-major; ldmatrix transposes f16 "
                "and bf16 alone: store it with K contiguous",
                which, name(operand.type()));
}

WarpProduct::WarpProduct(KernelBuilder::State &state,
                         Accumulator::State &accumulator, Type a,
                         const SharedTile &b, const MmaOptions &options,
                         const Where &where)
    : state_(state), accumulator_(accumulator), a_(a), b_{b, b.is_transposed()},
      options_(options), where_(where) {
  checkProduct(a, b.layout().type, accumulator.type, options, where);
  checkMajor(b_, "b", where);
  if (state.isOneThread)
    userErrorAt(where, "mma stands inside one_thread; all 128 threads of a "
                       "warpgroup issue it together");
}

/// Sums, then four words of A and two of B.
std::string WarpProduct::text() const {
  int sums = accumulator_.type == Type::f16 ? 2 : 4;
  std::string_view type = isa::ptxName(accumulator_.type);
  return fmt::format(
      "mma.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{} {}, {}, {}, {};", k(),
      options_.saturate ? ".satfinite" : "", type, isa::ptxName(a_),
      isa::ptxName(b_.type()), type, registerList(0, sums),
      registerList(2 * sums, 4), registerList(2 * sums + 4, 2),
      registerList(0, sums));
}

void WarpProduct::issue(const SharedOperand &a) {
  checkMajor(a, "a", where_);
  WarpOperand operand(state_, a, /*isA=*/true, where_);
  issueAll([&](int k) {
    llvm::SmallVector<mlir::Value> words;
    for (int row = 0; row < accumulator_.rows; row += kInstructionRows)
      words.append(operand.load(row, k));
    return words;
  });
}

void WarpProduct::issue(llvm::ArrayRef<mlir::Value> a) {
  int perRow = b_.tile.rows() / k() * 4;
  issueAll([&](int at) {
    llvm::SmallVector<mlir::Value> words;
    for (int row = 0; row < accumulator_.rows / kInstructionRows; ++row)
      words.append(a.slice(row * perRow + at / k() * 4, 4).begin(),
                   a.slice(row * perRow + at / k() * 4, 4).end());
    return words;
  });
}

/// What is added to: the registers, or 0 where MmaOptions::add says so.
static llvm::SmallVector<mlir::Value>
startOf(KernelBuilder::State &state, const Accumulator::State &accumulator,
        const MmaOptions &options, const Where &where) {
  llvm::SmallVector<mlir::Value> registers =
      loadRegisters(state, accumulator, where);
  if (!options.add)
    return registers;
  if (options.add->type() != Type::i1)
    userErrorAt(where, "MmaOptions::add is an i1, not {}",
                name(options.add->type()));
  mlir::Value adds = state.use(*options.add, where);
  for (auto [value, zero] :
       llvm::zip_equal(registers, zeroRegisters(state, accumulator, where)))
    value = mlir::arith::SelectOp::create(state.builder, state.at(where), adds,
                                          value, zero);
  return registers;
}

void WarpProduct::issueAll(WordsOfA wordsOfA) {
  int sums = accumulator_.type == Type::f16 ? 2 : 4; // of a product
  int perRow = accumulator_.columns / kColumns * sums;
  llvm::SmallVector<mlir::Value> registers =
      startOf(state_, accumulator_, options_, where_);
  WarpOperand operandB(state_, b_, /*isA=*/false, where_);
  std::string mma = text();
  for (int at = 0; at < b_.tile.rows(); at += k()) {
    llvm::SmallVector<mlir::Value> a = wordsOfA(at);
    for (int column = 0; column < accumulator_.columns;
         column += 2 * kColumns) {
      int columns = std::min(2 * kColumns, accumulator_.columns - column);
      llvm::SmallVector<mlir::Value> b = operandB.load(column, at, columns);
      for (int row = 0; row < accumulator_.rows / kInstructionRows; ++row)
        for (int half = 0; half < columns / kColumns; ++half) {
          int first = row * perRow + (column / kColumns + half) * sums;
          llvm::SmallVector<mlir::Value> operands(a.begin() + row * 4,
                                                  a.begin() + row * 4 + 4);
          operands.append(b.begin() + half * 2, b.begin() + half * 2 + 2);
          tiedAsm(state_, mma, "r,r,r,r,r,r",
                  llvm::MutableArrayRef(registers).slice(first, sums), operands,
                  where_);
        }
    }
  }
  storeRegisters(state_, accumulator_, registers, where_);
  state_.wgmma.issue(accumulator_.id, collectiveLine.value_or(where_));
}

} // namespace kiln
