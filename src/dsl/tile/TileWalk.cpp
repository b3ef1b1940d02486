// TileWalk: from a layout's modes to the rows and columns of a thread.
#include "dsl/tile/TileWalk.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include <bit>
#include <map>
#include <numeric>

namespace kiln {

static bool isPowerOfTwo(int number) {
  return std::has_single_bit(static_cast<unsigned>(number));
}

/// number / divisor, by a shift where it is one.
static Value divided(const Value &number, int divisor, const Where &where) {
  if (divisor == 1)
    return number;
  if (isPowerOfTwo(divisor))
    return number >>
           At(std::countr_zero(static_cast<unsigned>(divisor)), where);
  return number / At(divisor, where);
}

/// number % divisor, by a mask where it is one.
static Value remainder(const Value &number, int divisor, const Where &where) {
  if (isPowerOfTwo(divisor))
    return number & At(divisor - 1, where);
  return number % At(divisor, where);
}

/// Which of the layout's threads is calling.
static Value threadOf(const RegisterLayout &layout, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  Value thread = thread_id(Axis::x, where);
  if (layout.threads() == state.contract.threads())
    return thread;
  return remainder(thread, layout.threads(), where);
}

/// How many neighbours go together: a power of two that divides the first run
/// of columns and every other step along the columns.
static int vectorOf(const RegisterLayout &layout) {
  const std::vector<LayoutMode> &registers = layout.register_modes();
  if (registers.empty() || registers[0].row != 0 || registers[0].column != 1)
    return 1;
  int common = registers[0].extent;
  for (std::size_t i = 1; i < registers.size(); ++i)
    common = std::gcd(common, registers[i].column);
  for (const LayoutMode &mode : layout.thread_modes())
    common = std::gcd(common, mode.column);
  return common & -common;
}

std::vector<Value> threadDigits(const RegisterLayout &layout,
                                const Where &where) {
  Value thread = threadOf(layout, where);
  std::vector<Value> digits;
  int faster = 1; // threads of the modes before
  for (const LayoutMode &mode : layout.thread_modes()) {
    Value digit = divided(thread, faster, where);
    faster *= mode.extent;
    if (faster != layout.threads())
      digit = remainder(digit, mode.extent, where);
    digits.push_back(digit);
  }
  return digits;
}

TileWalk::TileWalk(const RegisterLayout &layout, const Where &where)
    : layout_(layout), where_(where), vector_(vectorOf(layout)) {
  auto &state = KernelBuilder::State::current(where);
  row_ = column_ = state.wrap(state.constant(Type::i32, 0, where), Type::i32);
  std::vector<Value> digits = threadDigits(layout, where);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const LayoutMode &mode = layout.thread_modes()[i];
    if (mode.row)
      row_ = row_ + At(digits[i] * At(mode.row, where), where);
    if (mode.column)
      column_ = column_ + At(digits[i] * At(mode.column, where), where);
  }
}

Value TileWalk::row(int reg) const {
  return row_ + At(layout_.element(0, reg).row, where_);
}

Value TileWalk::column(int reg) const {
  return column_ + At(layout_.element(0, reg).column, where_);
}

void TileWalk::forEachRow(
    const std::function<void(const Value &, std::span<const int>)> &body)
    const {
  std::map<int, std::vector<int>> rows;
  for (int reg = 0; reg < layout_.registers(); reg += vector_)
    rows[layout_.element(0, reg).row].push_back(reg);
  for (const auto &[row, registers] : rows)
    body(row_ + At(row, where_), registers);
}

} // namespace kiln
