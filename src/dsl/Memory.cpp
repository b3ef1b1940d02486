// Memory: elements of global tensors and shared tiles.
#include "kiln/memory.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

Element::operator Value() const {
  auto &state = KernelBuilder::State::current(where_);
  mlir::Value value = mlir::LLVM::LoadOp::create(
      state.builder, state.at(where_), state.lower(type_),
      state.use(address_, where_), size_bytes(type_));
  return state.wrap(value, type_);
}

void Element::operator=(At value) const {
  auto &state = KernelBuilder::State::current(value.where());
  mlir::LLVM::StoreOp::create(state.builder, state.at(value.where()),
                              state.use(value, type_),
                              state.use(address_, value.where()),
                              size_bytes(type_));
  if (argument_ >= 0)
    state.contract.arguments[argument_].is_output = true;
}

/// The address of an element: 64-bit arithmetic, since tensors pass 2^31.
static mlir::Value elementAddress(KernelBuilder::State &state,
                                  const Value &base, Type type,
                                  const std::vector<Dim> &strides,
                                  const std::vector<At> &indices,
                                  const std::source_location &where) {
  if (indices.size() != strides.size())
    userErrorAt(where, "a tensor of {} dimensions was given {} indices",
                strides.size(), indices.size());
  mlir::Location loc = state.at(where);
  mlir::Value sum;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Value index = cast(At(state.resolve(indices[i], Type::i32), where),
                       Type::i64);
    mlir::Value term = state.use(index, where);
    if (strides[i] != Dim(1))
      term = mlir::arith::MulIOp::create(
          state.builder, loc, term, state.dimValue(strides[i], Type::i64, where));
    sum = sum ? mlir::Value(mlir::arith::AddIOp::create(state.builder, loc, sum,
                                                        term))
              : term;
  }
  mlir::Value address = state.use(base, where);
  return mlir::LLVM::GEPOp::create(state.builder, loc, address.getType(),
                                   state.lower(type), address, sum);
}

Element Tensor::operator()(At i) const { return at({i}); }
Element Tensor::operator()(At i, At j) const { return at({i, j}); }
Element Tensor::operator()(At i, At j, At k) const { return at({i, j, k}); }

Element Tensor::at(const std::vector<At> &indices) const {
  std::source_location where =
      indices.empty() ? std::source_location::current() : indices[0].where();
  auto &state = KernelBuilder::State::current(where);
  mlir::Value address =
      elementAddress(state, base_, type_, strides_, indices, where);
  return Element(state.wrap(address, Type::u64), type_, argument_, where);
}

void Tensor::store_vector(const std::vector<At> &indices,
                          const std::vector<Value> &values) const {
  std::source_location where =
      indices.empty() ? std::source_location::current() : indices[0].where();
  auto &state = KernelBuilder::State::current(where);
  std::size_t count = values.size();
  if (count != 1 && count != 2 && count != 4)
    userErrorAt(where, "store_vector writes 1, 2 or 4 values, not {}", count);
  mlir::Location loc = state.at(where);
  mlir::Type type =
      mlir::VectorType::get(static_cast<std::int64_t>(count), state.lower(type_));
  mlir::Value vector = mlir::LLVM::PoisonOp::create(state.builder, loc, type);
  for (std::size_t i = 0; i < count; ++i)
    vector = mlir::LLVM::InsertElementOp::create(
        state.builder, loc, vector, state.use(At(values[i], where), type_),
        state.constant(Type::i32, static_cast<int>(i), where));
  mlir::Value address =
      elementAddress(state, base_, type_, strides_, indices, where);
  mlir::LLVM::StoreOp::create(state.builder, loc, vector, address,
                              static_cast<unsigned>(count) * size_bytes(type_));
  ArgumentSpec &argument = state.contract.arguments[argument_];
  argument.is_output = true;
  argument.alignment_bytes = std::max(
      argument.alignment_bytes, static_cast<int>(count) * size_bytes(type_));
}

SharedTile SharedTile::transpose() const {
  SharedTile result = *this;
  result.is_transposed_ = !is_transposed_;
  return result;
}

Element SharedTile::operator()(At row, At column) const {
  auto &state = KernelBuilder::State::current(row.where());
  const std::source_location &where = row.where();
  Value r = state.resolve(is_transposed_ ? column : row, Type::i32);
  Value c = state.resolve(is_transposed_ ? row : column, Type::i32);
  int size = size_bytes(layout_.type);
  int panel = layout_.panel_columns();
  Value inPanel = layout_.panels() == 1 ? c : c % At(panel, where);
  Value byte = r * At(layout_.row_bytes(), where) + At(inPanel * At(size, where), where);
  if (layout_.panels() > 1)
    byte = byte + At((c / At(panel, where)) * At(layout_.panel_bytes(), where),
                     where);
  if (layout_.swizzle != Swizzle::none) {
    // 7.. -> 4..: the row within the pattern selects the 16-byte chunk. The
    // tile is aligned to the pattern, so its own offset has the address bits.
    int chunks = static_cast<int>(layout_.swizzle) / 16;
    Value flip = ((byte >> At(7, where)) & At(chunks - 1, where)) << At(4, where);
    byte = byte ^ At(flip, where);
  }
  mlir::Value address =
      state.offset(state.use(address_, where), state.use(byte, where), where);
  return Element(state.wrap(address, Type::u32), layout_.type, -1, where);
}

SharedTile tile_at(const SharedTile &array, At index) {
  auto &state = KernelBuilder::State::current(index.where());
  Value slot = state.resolve(index, Type::i32);
  Value bytes = slot * At(array.layout().stride_bytes(), index.where());
  mlir::Value address =
      state.offset(state.use(array.address(), index.where()),
                   state.use(bytes, index.where()), index.where());
  return SharedTile(state.wrap(address, Type::u32), array.layout());
}

} // namespace kiln
