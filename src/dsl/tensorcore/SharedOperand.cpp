// SharedOperand: strides, swizzles and addresses of an operand.
#include "dsl/tensorcore/SharedOperand.h"
#include "support/Error.h"

namespace kiln {

int SharedOperand::leadingBytes() const {
  bool isSwizzled = layout().swizzle != Swizzle::none;
  if (!isSwizzled)
    return isKMajor ? layout().panel_bytes() : 8 * layout().row_bytes();
  return isKMajor ? 16 : layout().panel_bytes(); // K-major: not read
}

int SharedOperand::strideBytes() const {
  bool isSwizzled = layout().swizzle != Swizzle::none;
  return isSwizzled || isKMajor ? 8 * layout().row_bytes()
                                : layout().panel_bytes();
}

int SharedOperand::offsetBytes(int mn, int k) const {
  const TileLayout &stored = layout();
  int row = isKMajor ? mn : k, column = isKMajor ? k : mn;
  int panel = column / stored.panel_columns();
  return panel * stored.panel_bytes() + row * stored.row_bytes() +
         static_cast<int>(
             bytes_of(stored.type, column % stored.panel_columns()));
}

/// The fields both have.
static std::uint64_t strideFields(const SharedOperand &operand) {
  auto field = [](int bytes) { return std::uint64_t(bytes & 0x3ffff) >> 4; };
  return field(operand.leadingBytes()) << 16 | field(operand.strideBytes())
                                                   << 32;
}

std::uint64_t SharedOperand::wgmmaFields() const {
  static constexpr std::pair<Swizzle, std::uint64_t> kModes[] = {
      {Swizzle::none, 0},
      {Swizzle::b128, 1},
      {Swizzle::b64, 2},
      {Swizzle::b32, 3}};
  std::uint64_t fields = strideFields(*this);
  for (auto [swizzle, mode] : kModes)
    if (swizzle == layout().swizzle)
      fields |= mode << 62;
  return fields;
}

std::uint64_t SharedOperand::tcgen05Fields() const {
  static constexpr std::pair<Swizzle, std::uint64_t> kModes[] = {
      {Swizzle::none, 0},
      {Swizzle::b128, 2},
      {Swizzle::b64, 4},
      {Swizzle::b32, 6}};
  constexpr std::uint64_t kVersion = 1;
  std::uint64_t fields = strideFields(*this) | kVersion << 46;
  for (auto [swizzle, mode] : kModes)
    if (swizzle == layout().swizzle)
      fields |= mode << 61;
  return fields;
}

void checkOperand(const SharedOperand &operand, const char *which,
                  const Where &where) {
  const TileLayout &layout = operand.layout();
  if (layout.swizzle == Swizzle::none && layout.row_bytes() != 16)
    userErrorAt(where,
                "operand {} lies in shared memory without a swizzle ({}); give "
                "its tile swizzle 32, 64 or 128, or panels of {} columns",
                which, layout.to_string(), elements_in(layout.type, 16));
}

mlir::Value descriptorOf(KernelBuilder::State &state,
                         const SharedOperand &operand, std::uint64_t fields,
                         const Where &where) {
  mlir::Location loc = state.at(where);
  mlir::OpBuilder &b = state.builder;
  // At a row that begins a pattern of 8 the swizzle moves nothing.
  const SharedTile &tile = operand.tile;
  Value first = tile.is_whole() ? tile.address(where)
                                : tile(At(0, where), At(0, where)).address();
  mlir::Value address = mlir::LLVM::PtrToIntOp::create(b, loc, b.getI64Type(),
                                                       state.use(first, where));
  mlir::Value low = mlir::arith::AndIOp::create(
      b, loc, address, state.constant(Type::i64, 0x3ffff, where));
  low = mlir::arith::ShRUIOp::create(b, loc, low,
                                     state.constant(Type::i64, 4, where));
  return mlir::arith::OrIOp::create(
      b, loc, low,
      state.constant(Type::i64, static_cast<std::int64_t>(fields), where));
}

mlir::Value stepped(KernelBuilder::State &state, mlir::Value descriptor,
                    int bytes, const Where &where) {
  if (bytes == 0)
    return descriptor;
  return mlir::arith::AddIOp::create(
      state.builder, state.at(where), descriptor,
      state.constant(Type::i64, bytes >> 4, where));
}

} // namespace kiln
