// RegisterTile: one variable of the kernel per register.
#include "dsl/kernel/State.h"
#include "dsl/tile/TileWalk.h"
#include "kiln/language/tile/register_tile.h"
#include "support/Error.h"

namespace kiln {

/// Refuse a layout whose threads the CTA does not consist of.
static void checkThreads(const KernelBuilder::State &state,
                         const RegisterLayout &layout, const Where &where) {
  int threads = state.contract.threads();
  if (threads % layout.threads() != 0)
    userErrorAt(
        where,
        "tiles of layout {} belong to {} threads, and the {} of kernel {} are "
        "not multiples of them",
        layout.name(), layout.threads(), threads, state.name);
}

/// Elements in one variable: halves lie in pairs.
static int elementsPerSlot(Type type, int registers) {
  bool isHalf = type == Type::f16 || type == Type::bf16;
  return isHalf && registers % 2 == 0 ? 2 : 1;
}

RegisterTile::RegisterTile(Type type, RegisterLayout layout, Where where)
    : type_(type), layout_(std::move(layout)), where_(where) {
  auto &state = KernelBuilder::State::current(where);
  kernel_ = state.token;
  checkThreads(state, layout_, where);
  int perSlot = elementsPerSlot(type, registers());
  mlir::Type word = state.lower(type);
  if (perSlot > 1)
    word = mlir::VectorType::get(perSlot, word);
  for (int i = 0; i < registers(); i += perSlot)
    slots_.push_back(state.slot(word, where).getAsOpaquePointer());
}

RegisterTile::RegisterTile(Type type, RegisterLayout layout, At value)
    : RegisterTile(type, std::move(layout), value.where()) {
  fill(value);
}

/// The type all values of a tile have: that of the first one.
static Type typeOf(const RegisterLayout &layout,
                   const std::vector<Value> &values, const Where &where) {
  if (static_cast<int>(values.size()) != layout.registers())
    userErrorAt(
        where,
        "a tile of layout {}, {}x{}, has {} registers in each thread, and {} "
        "values were given",
        layout.name(), layout.rows(), layout.columns(), layout.registers(),
        values.size());
  return values.front().type();
}

RegisterTile::RegisterTile(const RegisterLayout &layout,
                           const std::vector<Value> &values, Where where)
    : RegisterTile(typeOf(layout, values, where), layout, where) {
  for (int i = 0; i < registers(); ++i)
    set(i, At(values[i], where));
}

RegisterTile::RegisterTile(const RegisterTile &other, Where where)
    : RegisterTile(other.layout_, other.values(where), where) {}

RegisterTile &RegisterTile::operator=(const RegisterTile &other) {
  // An assignment has no line of its own; what is assigned was mostly made on
  // it.
  Where where = other.where_;
  if (type_ != other.type_ || layout_ != other.layout_)
    userErrorAt(where,
                "a tile of {}, {}, cannot take the values of one of {}, {}; "
                "`cast` converts the type, memory the layout",
                name(type_), layout_.to_string(), name(other.type_),
                other.layout_.to_string());
  for (int i = 0; i < registers(); ++i)
    set(i, At(other.element(i, where), where));
  return *this;
}

namespace {
/// The variable a register lies in, checked, and its place there.
struct Place {
  KernelBuilder::State &state;
  Where where;
  mlir::Value slot;
  mlir::Type type; ///< of the variable
  int index;       ///< in a pair

  bool isPair() const { return mlir::isa<mlir::VectorType>(type); }
  mlir::Value load() const {
    return mlir::LLVM::LoadOp::create(state.builder, state.at(where), type,
                                      slot);
  }
  void store(mlir::Value value) const {
    mlir::LLVM::StoreOp::create(state.builder, state.at(where), value, slot);
  }
};
} // namespace

static Place placeOf(const RegisterTile &tile, const void *kernel,
                     const std::vector<void *> &slots, int index,
                     const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (kernel != state.token)
    userErrorAt(where, "this RegisterTile belongs to another kernel than {}",
                state.name);
  if (slots.empty())
    userErrorAt(where, "this RegisterTile was moved from and holds nothing");
  if (index < 0 || index >= tile.registers())
    userErrorAt(
        where,
        "there is no register {} in a tile of layout {}, {}x{}; each thread "
        "holds 0 to {}",
        index, tile.layout().name(), tile.rows(), tile.columns(),
        tile.registers() - 1);
  int perSlot = elementsPerSlot(tile.type(), tile.registers());
  mlir::Type type = state.lower(tile.type());
  if (perSlot > 1)
    type = mlir::VectorType::get(perSlot, type);
  return {state, where,
          mlir::Value::getFromOpaquePointer(slots[index / perSlot]), type,
          index % perSlot};
}

Value RegisterTile::element(int index, Where where) const {
  Place place = placeOf(*this, kernel_, slots_, index, where);
  mlir::Value value = place.load();
  if (place.isPair())
    value = mlir::LLVM::ExtractElementOp::create(
        place.state.builder, place.state.at(where), value,
        place.state.constant(Type::i32, place.index, where));
  return place.state.wrap(value, type_);
}

void RegisterTile::set(int index, At value) {
  Place place = placeOf(*this, kernel_, slots_, index, value.where());
  mlir::Value element = place.state.use(value, type_);
  if (place.isPair())
    element = mlir::LLVM::InsertElementOp::create(
        place.state.builder, place.state.at(value.where()), place.load(),
        element, place.state.constant(Type::i32, place.index, value.where()));
  place.store(element);
}

std::vector<Value> RegisterTile::values(Where where) const {
  std::vector<Value> all;
  for (int i = 0; i < registers(); ++i)
    all.push_back(element(i, where));
  return all;
}

void RegisterTile::fill(At value) {
  for (int i = 0; i < registers(); ++i)
    set(i, value);
}

Value RegisterTile::row(int index, Where where) const {
  placeOf(*this, kernel_, slots_, index, where);
  return TileWalk(layout_, where).row(index);
}

Value RegisterTile::column(int index, Where where) const {
  placeOf(*this, kernel_, slots_, index, where);
  return TileWalk(layout_, where).column(index);
}

RegisterTile RegisterTile::transpose(Where where) const {
  return RegisterTile(layout_.transpose(where), values(where), where);
}

RegisterTile RegisterTile::reshape(int rows, int columns, Where where) const {
  return RegisterTile(layout_.reshape(rows, columns, where), values(where),
                      where);
}

RegisterTile RegisterTile::slice(int row, int column, int rows, int columns,
                                 Where where) const {
  RegisterSlice part = layout_.slice(row, column, rows, columns, where);
  std::vector<Value> values;
  for (int reg : part.registers)
    values.push_back(element(reg, where));
  return RegisterTile(part.layout, values, where);
}

} // namespace kiln
