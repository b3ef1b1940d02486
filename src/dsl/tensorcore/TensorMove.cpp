// TensorMove: tcgen05.ld and st, tiles between tensor memory and registers.
#include "dsl/tensorcore/AccumulatorState.h"
#include "dsl/kernel/AsmText.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/math.h"
#include "kiln/language/tensorcore/tensor_memory.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>

namespace kiln {

namespace {
/// A shape of the instructions, for each time that it is repeated.
struct ShapeInfo {
  const char *word;
  int lanes;     ///< of a warp, of tensor memory
  int columns;   ///< of 32 bits
  int registers; ///< of a thread
};

/// One instruction, of `count` registers of each thread.
struct Piece {
  int half;         ///< 16 lanes each; 0 of all 32
  int first, count; ///< registers
  int column;       ///< where it begins, of 32 bits
};

/// All of a tile.
struct Move {
  const ShapeInfo &shape;
  int words;        ///< columns of 32 bits
  int halves;       ///< of a warp's lanes
  int registers;    ///< of both halves
  bool isPacked;    ///< two columns in a register
  mlir::Value from; ///< the lanes of this warp

  std::vector<Piece> pieces() const;
  /// "tcgen05.ld.sync.aligned.32x32b.x4.b32 {...}, [$4+2];\n" of each piece.
  std::string text(bool isStore) const;
};
} // namespace

static constexpr int kLaneBits = 16; // the lane stands above the column
static constexpr int kMostRegisters = 128;

/// In the order of TensorShape.
static constexpr ShapeInfo kShapes[] = {{"32x32b", 32, 1, 1},
                                        {"16x64b", 16, 2, 1},
                                        {"16x128b", 16, 4, 2},
                                        {"16x256b", 16, 8, 4},
                                        {"16x32bx2", 16, 2, 1}};
static constexpr TensorShape kAllShapes[] = {
    TensorShape::b32x32, TensorShape::b16x64, TensorShape::b16x128,
    TensorShape::b16x256, TensorShape::b16x32x2};

static const ShapeInfo &infoOf(TensorShape shape) {
  return kShapes[static_cast<int>(shape)];
}

/// As few instructions as there are powers of two in the registers.
std::vector<Piece> Move::pieces() const {
  std::vector<Piece> all;
  int each = registers / halves;
  int wide = shape.columns * (isPacked ? 2 : 1);
  // Of .16x32bx2 each half of a warp has its own half of the columns.
  if (shape.word == kShapes[4].word)
    wide /= 2;
  for (int half = 0; half < halves; ++half)
    for (int first = 0; first < each;) {
      int count =
          std::min(kMostRegisters,
                   static_cast<int>(std::bit_floor(unsigned(each - first))));
      all.push_back(
          {half, half * each + first, count, first / shape.registers * wide});
      first += count;
    }
  return all;
}

std::string Move::text(bool isStore) const {
  std::string all;
  for (const Piece &piece : pieces()) {
    int offset = piece.column + (16 * piece.half << kLaneBits);
    std::string address =
        fmt::format("[${}{}]", registers,
                    offset ? fmt::format("+{}", offset) : std::string());
    if (shape.word == kShapes[4].word)
      address += fmt::format(", {}", words / 2);
    std::string list = registerList(piece.first, piece.count);
    all += fmt::format("tcgen05.{}.sync.aligned.{}.x{}{}.b32 {}, {};\n",
                       isStore ? "st" : "ld", shape.word,
                       piece.count / shape.registers,
                       !isPacked ? ""
                       : isStore ? ".unpack::16b"
                                 : ".pack::16b",
                       isStore ? address : list, isStore ? list : address);
  }
  return all +
         fmt::format("tcgen05.wait::{}.sync.aligned;", isStore ? "st" : "ld");
}

static void checkWarpgroup(const KernelBuilder::State &state, const char *what,
                           const Where &where) {
  if (state.isOneThread)
    userErrorAt(where,
                "{} of tensor memory stands inside one_thread; the 128 threads "
                "of a warpgroup do it together",
                what);
}

/// The address of the lanes that the calling warp may touch.
static mlir::Value warpLanes(KernelBuilder::State &state,
                             const TensorTile &tile, const Where &where) {
  LocationScope scope(where);
  Value lane = (warp_id() & 3) << (kLaneBits + 5);
  return state.use(bitcast(tile.address(), i32) + lane, where);
}

/// Whether the rows of a tile lie in the lanes of a shape, and its columns are
/// whole repetitions.
static bool fits(const ShapeInfo &shape, int rows, int registerColumns) {
  return (rows == 128 || shape.lanes == 16) &&
         registerColumns % shape.columns == 0;
}

RegisterLayout TensorTile::layout(TensorShape shape, Where where) const {
  const ShapeInfo &info = infoOf(shape);
  int each = 4 / size_bytes(type_); // elements of a register
  int wide = columns_ / each;
  if (!fits(info, rows_, wide))
    userErrorAt(where, "a tile of {}x{} {} is loaded as .{}; {}", rows_,
                columns_, name(type_), info.word,
                rows_ != 128 && info.lanes == 32
                    ? "it takes 128 rows"
                    : fmt::format("it takes columns in multiples of {}",
                                  info.columns * each));
  if (shape == TensorShape::b32x32)
    return RegisterLayout::row_per_thread(rows_, columns_, where);
  std::vector<LayoutMode> threads, registers = {{each, 0, 1}};
  switch (shape) {
  case TensorShape::b16x64:
    threads = {{2, 8, 0}, {2, 0, each}, {8, 1, 0}};
    registers.push_back({wide / 2, 0, 2 * each});
    break;
  case TensorShape::b16x128:
    threads = {{4, 0, each}, {8, 1, 0}};
    registers.push_back({2, 8, 0});
    registers.push_back({wide / 4, 0, 4 * each});
    break;
  case TensorShape::b16x256:
    threads = {{4, 0, 2 * each}, {8, 1, 0}};
    registers.push_back({2, 0, each});
    registers.push_back({2, 8, 0});
    registers.push_back({wide / 8, 0, 8 * each});
    break;
  default:
    threads = {{16, 1, 0}, {2, 0, columns_ / 2}};
    registers.push_back({wide / 2, 0, each});
  }
  int warpRows = rows_ / 4;
  threads.push_back({4, warpRows, 0});
  registers.push_back({warpRows / 16, 16, 0});
  return RegisterLayout(info.word, rows_, columns_, threads, registers, where);
}

/// What moves a tile whose registers are laid out so.
static Move moveOf(KernelBuilder::State &state, const TensorTile &tile,
                   int words, TensorShape shape, const Where &where) {
  const ShapeInfo &info = infoOf(shape);
  bool isPacked = words * 4 != tile.columns() * size_bytes(tile.type());
  int lanes = tile.rows() / 4;
  return {info,
          words,
          lanes / info.lanes,
          tile.rows() * tile.columns() / 128 * size_bytes(tile.type()) / 4,
          isPacked,
          warpLanes(state, tile, where)};
}

RegisterTile TensorTile::load(Where where) const {
  return load(TensorShape::b32x32, where);
}

RegisterTile TensorTile::load(TensorShape shape, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkWarpgroup(state, "a load", where);
  RegisterLayout to = layout(shape, where);
  Move move = moveOf(state, *this, words(columns_), shape, where);
  // One piece of assembly with its wait: no use of a register can stand between
  // a load and it.
  int count = move.registers;
  std::string outputs;
  for (int i = 0; i < count; ++i)
    outputs += "=r,";
  mlir::Type word = state.builder.getI32Type();
  mlir::Type result = word;
  if (count > 1)
    result = mlir::LLVM::LLVMStructType::getLiteral(
        state.context.get(), llvm::SmallVector<mlir::Type>(count, word));
  mlir::Value out = state.inlineAsm(move.text(false), outputs + "r,~{memory}",
                                    {move.from}, result, where);
  std::vector<Value> values;
  for (int i = 0; i < count; ++i) {
    mlir::Value one = count == 1 ? out
                                 : mlir::LLVM::ExtractValueOp::create(
                                       state.builder, state.at(where), out,
                                       llvm::ArrayRef<std::int64_t>{i});
    Value bits = state.wrap(one, Type::u32);
    if (size_bytes(type_) == 4) {
      values.push_back(bitcast(At(bits, where), type_));
    } else {
      for (const Value &half : unpack(At(bits, where), type_))
        values.push_back(half);
    }
  }
  return RegisterTile(to, values, where);
}

void TensorTile::store(const RegisterTile &tile, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkWarpgroup(state, "a store", where);
  int wide = columns_ * size_bytes(type_) / 4;
  const TensorShape *shape = std::find_if(
      std::begin(kAllShapes), std::end(kAllShapes), [&](TensorShape one) {
        return fits(infoOf(one), rows_, wide) && tile.type() == type_ &&
               tile.layout() == layout(one, where);
      });
  if (shape == std::end(kAllShapes))
    userErrorAt(where,
                "a tile of {} {} is stored to {}x{} {} of tensor memory; it "
                "must have its shape and type, and be laid out as a load's "
                "(TensorTile::layout)",
                tile.layout().to_string(), name(tile.type()), rows_, columns_,
                name(type_));
  Move move = moveOf(state, *this, words(columns_), *shape, where);
  llvm::SmallVector<mlir::Value> operands = wordsOf(state, tile, where);
  std::string constraints;
  for (int i = 0; i <= move.registers; ++i)
    constraints += "r,";
  operands.push_back(move.from);
  state.inlineAsm(move.text(true), constraints + "~{memory}", operands, nullptr,
                  where);
}

} // namespace kiln
