// Views: parts and other shapes of global tensors and shared tiles.
#include "dsl/kernel/State.h"
#include "kiln/language/memory/memory.h"
#include "support/Error.h"

#include <algorithm>
#include <numeric>

namespace kiln {

// Tensors.

static void checkDimension(const char *what, const Tensor &tensor,
                           int dimension, const Where &where) {
  int rank = static_cast<int>(tensor.shape().size());
  if (dimension < 0 || dimension >= rank)
    userErrorAt(where, "{} of dimension {}; the tensor has {}", what, dimension,
                rank);
}

/// A literal or Dim as a Dim; nothing of a Value.
static std::optional<Dim> asDim(const char *what, const At &operand) {
  if (auto *dim = std::get_if<Dim>(&operand.operand()))
    return *dim;
  if (auto *literal = std::get_if<std::int64_t>(&operand.operand())) {
    if (*literal < 0)
      userErrorAt(operand.where(), "{} from {}; indices begin at 0", what,
                  *literal);
    return Dim(*literal);
  }
  if (auto *number = std::get_if<double>(&operand.operand()))
    userErrorAt(operand.where(), "{} from {}; indices are integers", what,
                *number);
  return std::nullopt;
}

Tensor Tensor::moved(int dimension, const At &by, std::int64_t multiple) const {
  std::vector<At> first(shape_.size(), At(0, by.where()));
  first[dimension] = by;
  Tensor result = *this;
  result.base_ = at(first).address();
  result.base_multiple_ =
      std::gcd(base_multiple_, multiple * strides_[dimension].divisor());
  result.is_view_ = true;
  return result;
}

Tensor Tensor::slice(int dimension, At start, Dim extent, int multiple) const {
  const Where &where = start.where();
  auto &state = KernelBuilder::State::current(where);
  checkDimension("slice", *this, dimension, where);
  std::optional<Dim> from = asDim("slice", start);
  Tensor result = moved(dimension, start, from ? from->divisor() : multiple);
  result.shape_[dimension] = extent;
  const Bound &bound = bounds_[dimension];
  if (from && !bound.value.is_valid()) {
    // What is left is known at launch: then the shape says it.
    const Dim &size = shape_[dimension];
    bool isInside = from->is_constant() && extent.is_constant() &&
                    size.is_constant() &&
                    from->constant() + extent.constant() <= size.constant();
    if (!isInside)
      result.shape_[dimension] = min(extent, max(size - *from, 0));
    return result;
  }
  Value left = this->bound(dimension, where) -
               At(state.resolve(start, Type::i32), where);
  Value wanted =
      state.wrap(state.dimValue(extent, Type::i32, where), Type::i32);
  result.bounds_[dimension] = {
      min(wanted, At(left, where)),
      std::gcd(std::gcd(extent.divisor(), bound_multiple(dimension)),
               from ? from->divisor() : multiple)};
  return result;
}

Tensor Tensor::slice(int dimension, At start, const Value &extent,
                     int multiple) const {
  const Where &where = start.where();
  if (extent.type() != Type::i32)
    userErrorAt(where, "a slice of {} indices; it takes an i32",
                name(extent.type()));
  checkDimension("slice", *this, dimension, where);
  Tensor result = slice(dimension, start, shape_[dimension], multiple);
  Value left = result.bound(dimension, where);
  result.bounds_[dimension] = {min(extent, At(left, where)), 1};
  return result;
}

Tensor Tensor::index(int dimension, At at, int multiple) const {
  checkDimension("index", *this, dimension, at.where());
  if (shape_.size() == 1)
    userErrorAt(at.where(), "index of a tensor of one dimension is an element; "
                            "x(i) reads and writes it");
  std::optional<Dim> from = asDim("index", at);
  Tensor result = moved(dimension, at, from ? from->divisor() : multiple);
  result.shape_.erase(result.shape_.begin() + dimension);
  result.strides_.erase(result.strides_.begin() + dimension);
  result.bounds_.erase(result.bounds_.begin() + dimension);
  return result;
}

Tensor Tensor::permute(const std::vector<int> &order, Where where) const {
  std::vector<int> sorted = order, all(shape_.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    userErrorAt(where,
                "permute to {{{}}}; the order of a tensor of {} dimensions "
                "names each of 0 to {} once",
                fmt::join(order, ", "), shape_.size(), shape_.size() - 1);
  Tensor result = *this;
  result.is_view_ = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.shape_[i] = shape_[order[i]];
    result.strides_[i] = strides_[order[i]];
    result.bounds_[i] = bounds_[order[i]];
  }
  return result;
}

Tensor Tensor::transpose(Where where) const {
  if (shape_.size() != 2)
    userErrorAt(where,
                "transpose of {} dimensions; it swaps two, `permute` orders "
                "any number",
                shape_.size());
  return permute({1, 0}, where);
}

/// The row-major strides of a shape.
static std::vector<Dim> packedStrides(const std::vector<Dim> &shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// A product as what it multiplies: its number, and the rest in order, so that
/// m * k and k * m are one.
static std::pair<std::int64_t, std::vector<std::string>>
factorsOf(const std::vector<Dim> &dims) {
  std::int64_t number = 1;
  std::vector<std::string> rest;
  std::vector<Dim> open = dims;
  while (!open.empty()) {
    Dim dim = open.back();
    open.pop_back();
    if (dim.is_constant())
      number *= dim.constant();
    else if (dim.op() == Dim::Op::mul)
      open.insert(open.end(), {dim.lhs(), dim.rhs()});
    else
      rest.push_back(dim.to_string());
  }
  std::sort(rest.begin(), rest.end());
  return {number, rest};
}

/// "{m, 64}"
static std::string describe(const std::vector<Dim> &dims) {
  std::string text;
  for (const Dim &dim : dims)
    text += (text.empty() ? "" : ", ") + dim.to_string();
  return "{" + text + "}";
}

Tensor Tensor::reshape(const std::vector<Dim> &shape, Where where) const {
  std::vector<Dim> packed = packedStrides(shape_);
  bool isPacked = true;
  for (std::size_t i = 0; i < shape_.size(); ++i)
    isPacked &= !bounds_[i].value.is_valid() &&
                (shape_[i] == Dim(1) ||
                 factorsOf({strides_[i]}) == factorsOf({packed[i]}));
  if (!isPacked)
    userErrorAt(where,
                "reshape of {} with strides {}; the elements must lie one "
                "behind the other, with strides {}, and none may be missing at "
                "the end of a slice",
                describe(shape_), describe(strides_), describe(packed));
  if (shape.empty() || factorsOf(shape) != factorsOf(shape_))
    userErrorAt(where,
                "reshape of {} to {}: the number of elements is not the same, "
                "or cannot be seen to be",
                describe(shape_), describe(shape));
  Tensor result(base_, type_, argument_, shape, packedStrides(shape));
  result.base_multiple_ = base_multiple_;
  result.is_view_ = true;
  return result;
}

Value Tensor::bound(int dimension, Where where) const {
  auto &state = KernelBuilder::State::current(where);
  checkDimension("bound", *this, dimension, where);
  if (bounds_[dimension].value.is_valid())
    return bounds_[dimension].value;
  return state.wrap(state.dimValue(shape_[dimension], Type::i32, where),
                    Type::i32);
}

bool Tensor::surely_holds(int dimension, std::int64_t size) const {
  const Dim &extent = shape_[dimension];
  return !bounds_[dimension].value.is_valid() && extent.is_constant() &&
         size <= extent.constant();
}

std::int64_t Tensor::bound_multiple(int dimension) const {
  const Bound &bound = bounds_[dimension];
  return bound.value.is_valid() ? bound.multiple : shape_[dimension].divisor();
}

// Shared tiles.

Value SharedTile::address(Where where) const {
  if (!is_whole())
    userErrorAt(where,
                "a slice of {}x{} of a shared tile of {} has no address of its "
                "own: the swizzle and the panels count from the beginning of "
                "the whole tile; this takes whole tiles",
                rows(), columns(), layout_.to_string());
  return address_;
}

SharedTile SharedTile::transpose() const {
  SharedTile result = *this;
  result.is_transposed_ = !is_transposed_;
  return result;
}

/// Move a side of a slice's origin; refuse what leaves the tile.
static void moveOrigin(const char *side, const At &start, int extent, int size,
                       int &origin, Value &runtime) {
  const Where &where = start.where();
  auto &state = KernelBuilder::State::current(where);
  auto *literal = std::get_if<std::int64_t>(&start.operand());
  std::int64_t from = literal ? *literal : 0;
  if (extent < 1 || from < 0 || from + extent > size)
    userErrorAt(where, "a slice of {} {} from {} leaves the tile, which has {}",
                extent, side, from, size);
  if (literal) {
    origin += static_cast<int>(from);
    return;
  }
  Value value = state.resolve(start, Type::i32);
  runtime = runtime.is_valid() ? runtime + At(value, where) : value;
}

SharedTile SharedTile::slice(At row, At column, int rows, int columns) const {
  if (is_transposed_)
    return transpose().slice(column, row, columns, rows).transpose();
  SharedTile result = *this;
  moveOrigin("rows", row, rows, rows_, result.origin_row_, result.runtime_row_);
  moveOrigin("columns", column, columns, columns_, result.origin_column_,
             result.runtime_column_);
  result.rows_ = rows;
  result.columns_ = columns;
  return result;
}

SharedTile SharedTile::reshape(int rows, int columns, Where where) const {
  if (!is_whole() || is_transposed_ || layout_.swizzle != Swizzle::none ||
      layout_.panels() > 1)
    userErrorAt(where,
                "reshape of a shared tile of {}{}; only a whole tile without a "
                "swizzle, in one panel and not transposed, has its elements "
                "one behind the other",
                layout_.to_string(),
                is_transposed_ ? ", transposed"
                : is_whole()   ? ""
                               : ", sliced");
  if (rows < 1 || columns < 1 ||
      std::int64_t(rows) * columns !=
          std::int64_t(layout_.rows) * layout_.columns)
    userErrorAt(where,
                "a tile of {}x{} cannot be seen as one of {}x{}: the number of "
                "elements differs",
                layout_.rows, layout_.columns, rows, columns);
  return SharedTile(address_, {layout_.type, rows, columns});
}

} // namespace kiln
