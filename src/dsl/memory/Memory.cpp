// Memory: elements of global tensors and shared tiles.
#include "kiln/language/memory/memory.h"
#include "dsl/kernel/AsmText.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/vector.h"
#include "support/Error.h"

namespace kiln {

// Accesses with a cache hint or a predicate: LLVM has no way to say them, so
// they are PTX.

/// The modifier of ld and st.
static const char *modifierOf(CacheHint hint) {
  switch (hint) {
  case CacheHint::none:
    break;
  case CacheHint::streaming:
    return ".cs";
  case CacheHint::last_use:
    return ".lu";
  case CacheHint::no_allocate:
    return ".L1::no_allocate";
  case CacheHint::evict_first:
    return ".L1::evict_first";
  case CacheHint::evict_last:
    return ".L1::evict_last";
  }
  return "";
}

static void checkHint(CacheHint hint, int argument, bool isStore,
                      const Where &where) {
  if (argument == Element::in_shared)
    userErrorAt(where, "shared memory has no cache; hints ({}) are for tensors",
                modifierOf(hint));
  if (isStore && hint == CacheHint::last_use)
    userErrorAt(where, "last_use (.lu) is a hint for loads; a store takes "
                       "streaming, no_allocate, evict_first or evict_last");
}

/// ".v4.b32", or ".b32" of one.
static std::string vectorSuffix(Type type, std::size_t count) {
  int bits = 8 * size_bytes(type);
  return count == 1 ? fmt::format(".b{}", bits)
                    : fmt::format(".v{}.b{}", count, bits);
}

/// "{$1, $2}" from `first` on, or "$1" of one.
static std::string vectorOf(int first, std::size_t count) {
  return count == 1 ? fmt::format("${}", first)
                    : registerList(first, static_cast<int>(count));
}

/// The register of an element's bits; eight of them have one of 16.
static std::pair<const char *, unsigned> registerOf(Type type) {
  switch (size_bytes(type)) {
  case 8:
    return {"l", 64};
  case 4:
    return {"r", 32};
  default:
    return {"h", 16};
  }
}

/// A register's bits as an element, or the other way round.
static mlir::Value convertBits(KernelBuilder::State &state, mlir::Value value,
                               mlir::Type to, const Where &where) {
  mlir::Type from = value.getType();
  if (from == to)
    return value;
  mlir::Location loc = state.at(where);
  unsigned width = from.getIntOrFloatBitWidth();
  if (width == to.getIntOrFloatBitWidth())
    return mlir::LLVM::BitcastOp::create(state.builder, loc, to, value);
  if (width < to.getIntOrFloatBitWidth())
    return mlir::arith::ExtUIOp::create(state.builder, loc, to, value);
  return mlir::arith::TruncIOp::create(state.builder, loc, to, value);
}

/// ".global", of the space an address points to.
static const char *spaceOf(mlir::Value address) {
  switch (mlir::cast<mlir::LLVM::LLVMPointerType>(address.getType())
              .getAddressSpace()) {
  case 3:
    return ".shared";
  case 7:
    return ".shared::cluster";
  default:
    return ".global";
  }
}

/// Small elements travel as words of 32 bits, where they fill them.
static bool isPacked(Type type, std::size_t count) {
  return type != Type::i1 && size_bytes(type) < 4 &&
         count * size_bytes(type) >= 4;
}

static std::vector<Value> loadHinted(KernelBuilder::State &state,
                                     mlir::Value address, Type type,
                                     std::size_t count, CacheHint hint,
                                     const Where &where) {
  if (isPacked(type, count)) {
    std::vector<Value> values;
    std::size_t words = count * size_bytes(type) / 4;
    for (const Value &word :
         loadHinted(state, address, Type::u32, words, hint, where))
      for (const Value &value : unpack(At(word, where), type))
        values.push_back(value);
    return values;
  }
  auto [constraint, bits] = registerOf(type);
  mlir::Type word = state.builder.getIntegerType(bits);
  llvm::SmallVector<mlir::Type> words(count, word);
  std::string constraints;
  for (std::size_t i = 0; i < count; ++i)
    constraints += fmt::format("={},", constraint);
  mlir::Value packed = state.inlineAsm(
      fmt::format("ld{}{}{} {}, [${}];", spaceOf(address), modifierOf(hint),
                  vectorSuffix(type, count), vectorOf(0, count), count),
      constraints + "l,~{memory}", {address},
      count == 1
          ? word
          : mlir::LLVM::LLVMStructType::getLiteral(state.context.get(), words),
      where);
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    mlir::Value value = count == 1 ? packed
                                   : mlir::LLVM::ExtractValueOp::create(
                                         state.builder, state.at(where), packed,
                                         static_cast<std::int64_t>(i));
    values.push_back(
        state.wrap(convertBits(state, value, state.lower(type), where), type));
  }
  return values;
}

static void storeHinted(KernelBuilder::State &state, mlir::Value address,
                        Type type, const std::vector<Value> &values,
                        CacheHint hint, const Where &where) {
  if (isPacked(type, values.size())) {
    std::vector<Value> words;
    auto each = 4 / size_bytes(type);
    for (auto at = values.begin(); at != values.end(); at += each)
      words.push_back(pack({at, at + each}, where));
    return storeHinted(state, address, Type::u32, words, hint, where);
  }
  auto [constraint, bits] = registerOf(type);
  mlir::Type word = state.builder.getIntegerType(bits);
  llvm::SmallVector<mlir::Value> operands = {address};
  std::string constraints = "l";
  for (const Value &value : values) {
    operands.push_back(
        convertBits(state, state.use(At(value, where), type), word, where));
    constraints += fmt::format(",{}", constraint);
  }
  state.inlineAsm(fmt::format("st{}{}{} [$0], {};", spaceOf(address),
                              modifierOf(hint),
                              vectorSuffix(type, values.size()),
                              vectorOf(1, values.size())),
                  constraints + ",~{memory}", operands, nullptr, where);
}

/// Refuse to access one element of those that share bytes.
static void checkWhole(Type type, const Where &where) {
  if (is_subbyte(type))
    userErrorAt(where,
                "one element of {} is accessed, which has less than a byte; "
                "tiles of it are copied by TMA and multiplied",
                name(type));
}

Element::operator Value() const {
  auto &state = KernelBuilder::State::current(where_);
  checkWhole(type_, where_);
  mlir::Value address = state.use(address_, where_);
  if (state.predicate)
    return loadHinted(state, address, type_, 1, CacheHint::none, where_)[0];
  mlir::Value value = mlir::LLVM::LoadOp::create(
      state.builder, state.at(where_), state.lower(type_), address,
      size_bytes(type_));
  return state.wrap(value, type_);
}

void Element::operator=(At value) const {
  const Where &where = value.where();
  checkWhole(type_, where);
  auto &state = KernelBuilder::State::current(where);
  mlir::Value address = state.use(address_, where);
  mlir::Value bits = state.use(value, type_);
  if (state.predicate)
    storeHinted(state, address, type_, {state.wrap(bits, type_)},
                CacheHint::none, where);
  else
    mlir::LLVM::StoreOp::create(state.builder, state.at(where), bits, address,
                                size_bytes(type_));
  state.markWritten(argument_);
}

Value Element::load(CacheHint hint) const {
  if (hint == CacheHint::none)
    return *this;
  auto &state = KernelBuilder::State::current(where_);
  checkHint(hint, argument_, /*isStore=*/false, where_);
  return loadHinted(state, state.use(address_, where_), type_, 1, hint,
                    where_)[0];
}

void Element::store(At value, CacheHint hint) const {
  if (hint == CacheHint::none)
    return *this = value;
  const Where &where = value.where();
  auto &state = KernelBuilder::State::current(where);
  checkHint(hint, argument_, /*isStore=*/true, where);
  storeHinted(state, state.use(address_, where), type_,
              {state.wrap(state.use(value, type_), type_)}, hint, where);
  state.markWritten(argument_);
}

void prefetch(const Element &element, bool into_l1, Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (element.is_shared())
    userErrorAt(where, "prefetch was given an element of shared memory, which "
                       "has no cache; it takes one of a tensor");
  state.inlineAsm(
      fmt::format("prefetch.global.{} [$0];", into_l1 ? "L1" : "L2"), "l",
      {state.use(element.address(), where)}, nullptr, where);
}

/// The address of an element: 64-bit arithmetic, since tensors pass 2^31.
static mlir::Value elementAddress(KernelBuilder::State &state,
                                  const Value &base, Type type,
                                  const std::vector<Dim> &strides,
                                  const std::vector<At> &indices,
                                  const Where &where) {
  if (indices.size() != strides.size())
    userErrorAt(where, "a tensor of {} dimensions was given {} indices",
                strides.size(), indices.size());
  mlir::Location loc = state.at(where);
  mlir::Value sum;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Value index =
        cast(At(state.resolve(indices[i], Type::i32), where), Type::i64);
    mlir::Value term = state.use(index, where);
    if (strides[i] != Dim(1))
      term = mlir::arith::MulIOp::create(
          state.builder, loc, term,
          state.dimValue(strides[i], Type::i64, where));
    sum = sum ? mlir::Value(
                    mlir::arith::AddIOp::create(state.builder, loc, sum, term))
              : term;
  }
  mlir::Value address = state.use(base, where);
  return mlir::LLVM::GEPOp::create(state.builder, loc, address.getType(),
                                   state.lower(type), address, sum);
}

/// Refuse a constant index that lies outside a constant extent, or before the
/// first element.
static void checkIndex(const char *what, std::size_t dimension, const At &index,
                       const Dim &extent) {
  const auto *number = std::get_if<std::int64_t>(&index.operand());
  if (!number)
    return;
  if (*number < 0 && !extent.is_constant())
    userErrorAt(index.where(),
                "index {} of dimension {} of a {}; indices begin at 0", *number,
                dimension, what);
  if (!extent.is_constant() || (*number >= 0 && *number < extent.constant()))
    return;
  userErrorAt(index.where(),
              "index {} of dimension {} of a {}; its {} elements are 0 to {}",
              *number, dimension, what, extent.constant(),
              extent.constant() - 1);
}

static void checkIndices(const std::vector<At> &indices,
                         const std::vector<Dim> &shape) {
  for (std::size_t i = 0; i < std::min(indices.size(), shape.size()); ++i)
    checkIndex("tensor", i, indices[i], shape[i]);
}

/// Refuse a vector that surely leaves its row. `what`: "load_vector reads".
static void checkRow(const char *what, const At &column, std::size_t count,
                     const Dim &extent) {
  const auto *number = std::get_if<std::int64_t>(&column.operand());
  auto size = static_cast<std::int64_t>(count);
  std::int64_t first = number ? *number : 0;
  if (!extent.is_constant() || first + size <= extent.constant())
    return;
  userErrorAt(column.where(),
              "{} {} values from {} of a row, which has {} elements", what,
              count, number ? fmt::to_string(first) : "any column",
              extent.constant());
}

Element Tensor::operator()(At i) const { return at({i}); }
Element Tensor::operator()(At i, At j) const { return at({i, j}); }
Element Tensor::operator()(At i, At j, At k) const { return at({i, j, k}); }

Element Tensor::at(const std::vector<At> &indices) const {
  Where where = indices.empty() ? Where::current() : indices[0].where();
  auto &state = KernelBuilder::State::current(where);
  checkIndices(indices, shape_);
  mlir::Value address =
      elementAddress(state, base_, type_, strides_, indices, where);
  return Make::a<Element>(state.wrap(address, Type::u64), type_, argument_,
                          where);
}

// Vectors: neighbours in one instruction.

/// Refuse what one instruction cannot access.
static void checkVector(const char *what, Type type, std::int64_t count,
                        const Where &where) {
  checkWhole(type, where);
  if (count < 1 || count > 16 || (count & (count - 1)) != 0)
    userErrorAt(where, "{} 1, 2, 4, 8 or 16 values, not {}", what, count);
  if (count * size_bytes(type) > 16)
    userErrorAt(where, "{} at most 16 bytes; {} values of {} are {}", what,
                count, name(type), count * size_bytes(type));
}

/// Consecutive indices must mean consecutive elements.
static void checkAdjacent(const std::vector<Dim> &strides, std::size_t count,
                          const Where &where) {
  if (count > 1 && strides.back() != Dim(1))
    userErrorAt(where,
                "the innermost stride of this tensor is {}; vectors "
                "need neighbours in memory, a stride of 1",
                strides.back().to_string());
}

static std::vector<Value> loadVector(KernelBuilder::State &state,
                                     mlir::Value address, Type type, int count,
                                     const Where &where) {
  if (state.predicate)
    return loadHinted(state, address, type, count, CacheHint::none, where);
  mlir::Location loc = state.at(where);
  mlir::Value vector = mlir::LLVM::LoadOp::create(
      state.builder, loc, mlir::VectorType::get(count, state.lower(type)),
      address, static_cast<unsigned>(count) * size_bytes(type));
  std::vector<Value> values;
  for (int i = 0; i < count; ++i)
    values.push_back(state.wrap(
        mlir::LLVM::ExtractElementOp::create(
            state.builder, loc, vector, state.constant(Type::i32, i, where)),
        type));
  return values;
}

static void storeVector(KernelBuilder::State &state, mlir::Value address,
                        Type type, const std::vector<Value> &values,
                        const Where &where) {
  if (state.predicate)
    return storeHinted(state, address, type, values, CacheHint::none, where);
  auto count = static_cast<int>(values.size());
  mlir::Location loc = state.at(where);
  mlir::Value vector = mlir::LLVM::PoisonOp::create(
      state.builder, loc, mlir::VectorType::get(count, state.lower(type)));
  for (int i = 0; i < count; ++i)
    vector = mlir::LLVM::InsertElementOp::create(
        state.builder, loc, vector, state.use(At(values[i], where), type),
        state.constant(Type::i32, i, where));
  mlir::LLVM::StoreOp::create(state.builder, loc, vector, address,
                              static_cast<unsigned>(count) * size_bytes(type));
}

std::vector<Value> Tensor::load_vector(const std::vector<At> &indices,
                                       int count, CacheHint hint) const {
  Where where = indices.empty() ? Where::current() : indices[0].where();
  auto &state = KernelBuilder::State::current(where);
  checkVector("load_vector reads", type_, count, where);
  checkAdjacent(strides_, count, where);
  checkIndices(indices, shape_);
  if (indices.size() == shape_.size())
    checkRow("load_vector reads", indices.back(), count, shape_.back());
  mlir::Value address =
      elementAddress(state, base_, type_, strides_, indices, where);
  state.needAlignment(argument_, count * size_bytes(type_));
  if (hint == CacheHint::none)
    return loadVector(state, address, type_, count, where);
  return loadHinted(state, address, type_, count, hint, where);
}

void Tensor::store_vector(const std::vector<At> &indices,
                          const std::vector<Value> &values,
                          CacheHint hint) const {
  Where where = indices.empty() ? Where::current() : indices[0].where();
  auto &state = KernelBuilder::State::current(where);
  checkVector("store_vector writes", type_, values.size(), where);
  checkAdjacent(strides_, values.size(), where);
  checkIndices(indices, shape_);
  if (indices.size() == shape_.size())
    checkRow("store_vector writes", indices.back(), values.size(),
             shape_.back());
  mlir::Value address =
      elementAddress(state, base_, type_, strides_, indices, where);
  if (hint == CacheHint::none) {
    storeVector(state, address, type_, values, where);
  } else {
    checkHint(hint, argument_, /*isStore=*/true, where);
    storeHinted(state, address, type_, values, hint, where);
  }
  state.markWritten(argument_);
  state.needAlignment(argument_,
                      static_cast<int>(values.size()) * size_bytes(type_));
}

/// An index of a slice in the whole tile.
static Value inWhole(KernelBuilder::State &state, const At &index, int origin,
                     const Value &runtime, const Where &where) {
  Value value = state.resolve(index, Type::i32);
  if (origin)
    value = value + At(origin, where);
  if (runtime.is_valid())
    value = value + At(runtime, where);
  return value;
}

Element SharedTile::operator()(At row, At column) const {
  checkIndex("shared tile", 0, row, rows());
  checkIndex("shared tile", 1, column, columns());
  auto &state = KernelBuilder::State::current(row.where());
  const Where &where = row.where();
  Value r = inWhole(state, is_transposed_ ? column : row, origin_row_,
                    runtime_row_, where);
  Value c = inWhole(state, is_transposed_ ? row : column, origin_column_,
                    runtime_column_, where);
  int panel = layout_.panel_columns();
  Value inPanel = layout_.panels() == 1 ? c : c % At(panel, where);
  Value inRow = layout_.type == Type::e2m1
                    ? inPanel >> At(1, where)
                    : inPanel * At(size_bytes(layout_.type), where);
  Value byte = r * At(layout_.row_bytes(), where) + At(inRow, where);
  if (layout_.panels() > 1)
    byte = byte +
           At((c / At(panel, where)) * At(layout_.panel_bytes(), where), where);
  if (layout_.swizzle != Swizzle::none) {
    // 7.. -> 4..: the row within the pattern selects the 16-byte chunk. The
    // tile is aligned to the pattern, so its own offset has the address bits.
    int chunks = static_cast<int>(layout_.swizzle) / 16;
    Value flip = ((byte >> At(7, where)) & At(chunks - 1, where))
                 << At(4, where);
    byte = byte ^ At(flip, where);
  }
  mlir::Value address =
      state.offset(state.use(address_, where), state.use(byte, where), where);
  return Make::a<Element>(state.wrap(address, Type::u32), layout_.type, -1,
                          where);
}

/// Refuse vectors of a tile whose elements are not neighbours or not aligned.
static void checkTileVector(const char *what, const SharedTile &tile,
                            const At &column, std::size_t count) {
  const Where &where = column.where();
  checkVector(what, tile.layout().type, count, where);
  if (tile.is_transposed() && count > 1)
    userErrorAt(where,
                "{} neighbours in a row, and the rows of a transposed "
                "tile are columns in memory; use the tile as it is "
                "stored",
                what);
  auto *literal = std::get_if<std::int64_t>(&column.operand());
  auto size = static_cast<std::int64_t>(count);
  if (literal && (*literal + tile.origin_column()) % size != 0)
    userErrorAt(where,
                "{} {} values from column {}, which is not a multiple "
                "of {}",
                what, count, *literal + tile.origin_column(), count);
  checkRow(what, column, count, tile.columns());
}

std::vector<Value> SharedTile::load_vector(At row, At column, int count) const {
  auto &state = KernelBuilder::State::current(row.where());
  checkTileVector("load_vector reads", *this, column, count);
  Element first = (*this)(row, column);
  return loadVector(state, state.use(first.address(), row.where()),
                    layout_.type, count, row.where());
}

void SharedTile::store_vector(At row, At column,
                              const std::vector<Value> &values) const {
  auto &state = KernelBuilder::State::current(row.where());
  checkTileVector("store_vector writes", *this, column, values.size());
  Element first = (*this)(row, column);
  storeVector(state, state.use(first.address(), row.where()), layout_.type,
              values, row.where());
}

SharedTile SharedTileArray::operator[](At index) const {
  const Where &where = index.where();
  auto &state = KernelBuilder::State::current(where);
  auto *literal = std::get_if<std::int64_t>(&index.operand());
  if (literal && (*literal < 0 || *literal >= count_))
    userErrorAt(where, "there is no tile {} in an array of {}", *literal,
                count_);
  if (literal && *literal == 0)
    return Make::a<SharedTile>(address_, layout_);
  Value bytes =
      state.resolve(index, Type::i32) * At(layout_.stride_bytes(), where);
  mlir::Value address =
      state.offset(state.use(address_, where), state.use(bytes, where), where);
  return Make::a<SharedTile>(state.wrap(address, Type::u32), layout_);
}

} // namespace kiln
