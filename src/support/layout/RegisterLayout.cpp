// RegisterLayout: the maths of tiles spread over registers, and the layouts the
// hardware knows.
#include "kiln/language/tile/layout.h"
#include "support/Error.h"
#include "support/layout/LayoutModes.h"

#include <numeric>

namespace kiln {

/// More threads than any CTA has, or more registers than any thread has, are a
/// slip; refusing them keeps every table below small.
static constexpr int kMaxThreads = 1024;
static constexpr int kMaxRegisters = 1024;

/// Drop what does not count and join what continues its neighbour, so that one
/// map has one form.
static std::vector<LayoutMode> simplified(const std::vector<LayoutMode> &in) {
  std::vector<LayoutMode> out;
  for (const LayoutMode &mode : in) {
    if (mode.extent == 1)
      continue;
    if (!out.empty() && mode.row == out.back().row * out.back().extent &&
        mode.column == out.back().column * out.back().extent)
      out.back().extent *= mode.extent;
    else
      out.push_back(mode);
  }
  return out;
}

/// "4:(0,2) 8:(1,0)"
static std::string describe(const std::vector<LayoutMode> &modes) {
  if (modes.empty())
    return "1";
  std::string text;
  for (const LayoutMode &mode : modes)
    text += fmt::format("{}{}:({},{})", text.empty() ? "" : " ", mode.extent,
                        mode.row, mode.column);
  return text;
}

RegisterLayout::RegisterLayout(std::string name, int rows, int columns,
                               std::vector<LayoutMode> threadModes,
                               std::vector<LayoutMode> registerModes,
                               Where where)
    : name_(std::move(name)), rows_(rows), columns_(columns),
      threads_(std::move(threadModes)), registers_(std::move(registerModes)) {
  check(where);
  threads_ = simplified(threads_);
  registers_ = simplified(registers_);
}

/// Refuse modes that count nothing, run backwards, or are too many.
static void checkModes(const char *what, const std::vector<LayoutMode> &modes,
                       int limit, const std::string &name,
                       const SourceLine &where) {
  std::int64_t total = 1;
  for (const LayoutMode &mode : modes) {
    if (mode.extent < 1 || mode.row < 0 || mode.column < 0)
      userErrorAt(where,
                  "layout {}: the {} mode {}:({},{}) counts nothing or runs "
                  "backwards; its extent is at least 1, its steps at least 0",
                  name, what, mode.extent, mode.row, mode.column);
    total *= mode.extent;
    if (total > limit)
      userErrorAt(where, "layout {} has {} or more {}s; {} are the most", name,
                  total, what, limit);
  }
}

void RegisterLayout::check(const SourceLine &where) const {
  if (rows_ < 1 || columns_ < 1)
    userErrorAt(where,
                "layout {}: a tile of {}x{} has no elements; both sides are "
                "at least 1",
                name_, rows_, columns_);
  checkModes("thread", threads_, kMaxThreads, name_, where);
  checkModes("register", registers_, kMaxRegisters, name_, where);
  int places = threads() * registers();
  std::int64_t elements = std::int64_t(rows_) * columns_;
  if (places % elements != 0)
    userErrorAt(where,
                "layout {}: {} threads of {} registers do not hold {}x{} "
                "elements equally often",
                name_, threads(), registers(), rows_, columns_);
  std::vector<int> held(elements), lastThread(elements, -1);
  for (int thread = 0; thread < threads(); ++thread)
    for (int reg = 0; reg < registers(); ++reg) {
      TileElement at = element(thread, reg);
      if (at.row >= rows_ || at.column >= columns_)
        userErrorAt(where,
                    "layout {}: register {} of thread {} is element ({}, {}), "
                    "outside the tile of {}x{}",
                    name_, reg, thread, at.row, at.column, rows_, columns_);
      int index = at.row * columns_ + at.column;
      if (lastThread[index] == thread)
        userErrorAt(where, "layout {}: thread {} holds element ({}, {}) twice",
                    name_, thread, at.row, at.column);
      lastThread[index] = thread;
      ++held[index];
    }
  for (int index = 0; index < elements; ++index)
    if (held[index] != copies())
      userErrorAt(where,
                  "layout {}: {} threads hold element ({}, {}), and {} hold "
                  "an element on average",
                  name_, held[index], index / columns_, index % columns_,
                  copies());
}

int RegisterLayout::threads() const { return countOf(threads_); }
int RegisterLayout::registers() const { return countOf(registers_); }

TileElement RegisterLayout::element(int thread, int reg) const {
  TileElement element;
  addDigits(threads_, thread, element);
  addDigits(registers_, reg, element);
  return element;
}

std::vector<RegisterPlace> RegisterLayout::holders(int row, int column) const {
  std::vector<RegisterPlace> places;
  for (int thread = 0; thread < threads(); ++thread)
    for (int reg = 0; reg < registers(); ++reg)
      if (element(thread, reg) == TileElement{row, column})
        places.push_back({thread, reg});
  return places;
}

std::string RegisterLayout::to_string() const {
  return fmt::format("{} {}x{}: threads {}, registers {}", name_, rows_,
                     columns_, describe(threads_), describe(registers_));
}

bool RegisterLayout::operator==(const RegisterLayout &other) const {
  return rows_ == other.rows_ && columns_ == other.columns_ &&
         threads_ == other.threads_ && registers_ == other.registers_;
}

// The layouts of the tensor core. A thread's 32-bit register holds neighbours
// along k; lane / 4 is the row, lane % 4 the register's place along k.

/// Refuse a side that is not a multiple of what one instruction covers.
static void checkMultiple(const char *name, const char *side, int size,
                          int unit, const Where &where) {
  if (size < unit || size % unit != 0)
    userErrorAt(where, "{} of {} {}; it takes multiples of {}", name, size,
                side, unit);
}

/// Elements of an operand in one 32-bit register.
static int elementsPerWord(const char *name, Type type, const Where &where) {
  switch (type) {
  case Type::f16:
  case Type::bf16:
    return 2;
  case Type::tf32:
    return 1;
  case Type::i8:
  case Type::u8:
  case Type::e4m3:
  case Type::e5m2:
    return 4;
  default:
    userErrorAt(where,
                "{} of {}; the tensor core takes f16, bf16, tf32, e4m3, e5m2, "
                "i8 and u8",
                name, kiln::name(type));
  }
}

RegisterLayout RegisterLayout::accumulator(int rows, int columns, Where where) {
  checkMultiple("accumulator", "rows", rows, 64, where);
  checkMultiple("accumulator", "columns", columns, 8, where);
  return RegisterLayout(
      "accumulator", rows, columns, {{4, 0, 2}, {8, 1, 0}, {4, 16, 0}},
      {{2, 0, 1}, {2, 8, 0}, {columns / 8, 0, 8}, {rows / 64, 64, 0}}, where);
}

/// Registers of operand A: `perWord` neighbours, two rows, two halves of k,
/// then further instructions.
static std::vector<LayoutMode> registersOfA(int perWord, int rows, int k,
                                            int instructionRows) {
  return {{perWord, 0, 1},
          {2, 8, 0},
          {2, 0, 4 * perWord},
          {k / (8 * perWord), 0, 8 * perWord},
          {rows / instructionRows, instructionRows, 0}};
}

RegisterLayout RegisterLayout::wgmma_operand(Type type, int rows, int k,
                                             Where where) {
  int perWord = elementsPerWord("wgmma_operand", type, where);
  checkMultiple("wgmma_operand", "rows", rows, 64, where);
  checkMultiple("wgmma_operand", "columns", k, 8 * perWord, where);
  return RegisterLayout("wgmma_operand", rows, k,
                        {{4, 0, perWord}, {8, 1, 0}, {4, 16, 0}},
                        registersOfA(perWord, rows, k, 64), where);
}

RegisterLayout RegisterLayout::mma_accumulator(int rows, int columns,
                                               Where where) {
  checkMultiple("mma_accumulator", "rows", rows, 16, where);
  checkMultiple("mma_accumulator", "columns", columns, 8, where);
  return RegisterLayout(
      "mma_accumulator", rows, columns, {{4, 0, 2}, {8, 1, 0}},
      {{2, 0, 1}, {2, 8, 0}, {columns / 8, 0, 8}, {rows / 16, 16, 0}}, where);
}

RegisterLayout RegisterLayout::mma_operand_a(Type type, int rows, int k,
                                             Where where) {
  int perWord = elementsPerWord("mma_operand_a", type, where);
  checkMultiple("mma_operand_a", "rows", rows, 16, where);
  checkMultiple("mma_operand_a", "columns", k, 8 * perWord, where);
  return RegisterLayout("mma_operand_a", rows, k, {{4, 0, perWord}, {8, 1, 0}},
                        registersOfA(perWord, rows, k, 16), where);
}

RegisterLayout RegisterLayout::mma_operand_b(Type type, int k, int columns,
                                             Where where) {
  int perWord = elementsPerWord("mma_operand_b", type, where);
  checkMultiple("mma_operand_b", "rows", k, 8 * perWord, where);
  checkMultiple("mma_operand_b", "columns", columns, 8, where);
  return RegisterLayout("mma_operand_b", k, columns,
                        {{4, perWord, 0}, {8, 0, 1}},
                        {{perWord, 1, 0},
                         {2, 4 * perWord, 0},
                         {k / (8 * perWord), 8 * perWord, 0},
                         {columns / 8, 0, 8}},
                        where);
}

RegisterLayout RegisterLayout::row_per_thread(int threads, int columns,
                                              Where where) {
  return RegisterLayout("row_per_thread", threads, columns, {{threads, 1, 0}},
                        {{columns, 0, 1}}, where);
}

RegisterLayout RegisterLayout::strided(int threads, int rows, int columns,
                                       int vector, Where where) {
  if (threads < 1 || vector < 1)
    userErrorAt(where,
                "strided over {} threads in vectors of {}; both are at least 1",
                threads, vector);
  checkMultiple("strided", "columns", columns, vector, where);
  int perRow = columns / vector;
  int along = std::gcd(perRow, threads); // threads side by side in a row
  int down = threads / along;            // rows they take together
  checkMultiple("strided", "rows", rows, down, where);
  return RegisterLayout("strided", rows, columns,
                        {{along, 0, vector}, {down, 1, 0}},
                        {{vector, 0, 1},
                         {perRow / along, 0, along * vector},
                         {rows / down, down, 0}},
                        where);
}

} // namespace kiln
