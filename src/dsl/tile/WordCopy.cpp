// WordCopy: load words, shift, store words.
//
// Lanes side by side have neighbouring words, so that the word behind a lane's
// own is that of the next lane (shfl). Only the last lane of a row needs one
// that nobody has: those of all rows in flight are loaded at once, one by each
// lane.
//
// A word may hold a valid element and one behind the end of its row. That is
// the next row's, but in the last row it may lie outside the buffer: the last
// row is copied element by element.
#include "dsl/tile/WordCopy.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/math.h"
#include "kiln/language/value/ptx.h"
#include "kiln/language/value/vector.h"
#include "kiln/language/threads/warp.h"

#include <algorithm>

namespace kiln {

static constexpr int kWordBytes = 4;
static constexpr int kWarpLanes = 32;
/// Rows a lane has in flight.
static constexpr int kRowsInFlight = 32;
/// Rows after which a swizzle repeats itself.
static constexpr int kSwizzleRows = 8;

/// The same value, which the compiler knows nothing of: what follows from it
/// is not computed ahead for all rows, and kept in registers.
static Value opaque(const Value &value, const Where &where) {
  return inline_ptx("mov.b32 {0}, {1};", {out(i32), in(At(value, where))}, {},
                    where)[0];
}

/// Lanes side by side: the words of a panel's row.
static int wordsOf(const TileLayout &layout) {
  return layout.row_bytes() / kWordBytes;
}

bool canCopyWords(const SharedTile &to, const Tensor &from, int threads) {
  const TileLayout &layout = to.layout();
  int size = size_bytes(layout.type), words = wordsOf(layout);
  if (size >= kWordBytes || to.is_transposed() || !to.is_whole() ||
      from.shape().size() != 2 || from.strides()[1] != Dim(1))
    return false;
  if (layout.row_bytes() % kWordBytes || words > threads || threads % words)
    return false;
  if (words >
      kWarpLanes) // a row of a panel is one of a warp, or of a part of it
    return false;
  if (from.argument() < 0) // its first word may begin before it
    return false;
  // A word reaches into the next row, and no further.
  const Dim &stride = from.strides()[0];
  if (!stride.is_constant() || stride.constant() * size < kWordBytes)
    return false;
  // A thread's rows are so far apart that all of them begin alike in a word.
  int apart = threads / words;
  return apart * size % kWordBytes == 0 && layout.rows % apart == 0;
}

namespace {

class WordCopy {
public:
  WordCopy(const SharedTile &to, const Tensor &from, bool isAligned,
           int threads, const Value &thread, const Where &where)
      : state_(KernelBuilder::State::current(where)), where_(where),
        layout_(to.layout()), from_(from), to_(to),
        each_(kWordBytes / size_bytes(layout_.type)), words_(wordsOf(layout_)),
        apart_(threads / words_), threads_(threads), isAligned_(isAligned),
        thread_(thread),
        rows_(min(from.bound(0, where), At(layout_.rows, where))),
        columns_(min(from.bound(1, where), At(layout_.columns, where))) {
    state_.needAlignment(from.argument(), kWordBytes);
  }

  void run() {
    Values last = loadLastRow();
    // Each lane has the word behind one of the rows in flight.
    int most = std::min(kRowsInFlight, words_);
    for (int panel = 0; panel < layout_.panels(); ++panel)
      for (int row = 0; row < layout_.rows; row += apart_ * most)
        copyRows(panel * layout_.panel_columns(), row,
                 std::min(most, (layout_.rows - row) / apart_));
    storeLastRow(last);
  }

private:
  At at(const Value &value) const { return At(value, where_); }
  At at(int value) const { return At(value, where_); }

  /// The word an element lies in, and how many of its bits come before it.
  std::pair<Value, Value> wordOf(const Element &element) const {
    mlir::Location loc = state_.at(where_);
    auto &builder = state_.builder;
    mlir::Type i64 = builder.getI64Type();
    mlir::Value pointer = state_.use(element.address(), where_);
    Value address = state_.wrap(
        mlir::LLVM::PtrToIntOp::create(builder, loc, i64, pointer), Type::i64);
    Value before = cast(at(address), Type::i32) & at(kWordBytes - 1);
    Value aligned = address - at(cast(at(before), Type::i64));
    mlir::Value word = mlir::LLVM::IntToPtrOp::create(
        builder, loc, pointer.getType(), state_.use(aligned, where_));
    return {state_.wrap(word, Type::u64), before * at(8)};
  }

  /// `count` rows of a panel, from the thread's own row after `row` on.
  void copyRows(int column, int row, int count) {
    Value thread = opaque(thread_, where_);
    Value lane = thread % at(words_);
    Value first = lane * at(each_) + at(column);
    Value ownRow = thread / at(words_) + at(row);
    auto [base, shift] = wordOf(from_(at(ownRow), at(first)));
    // Strides are whole words: canCopyWords.
    auto words = Make::a<Tensor>(
        base, Type::u32, from_.argument(), std::vector<Dim>{count, words_ + 1},
        std::vector<Dim>{from_.strides()[0] * (apart_ / each_), 1});
    Value before = shift / at(8 * size()); // elements
    Value isTaken = first - at(before) < at(columns_);
    Value last = rows_ - at(1); // comes by itself
    Values low(count);
    for (int i = 0; i < count; ++i)
      predicated(at(isTaken && ownRow + at(i * apart_) < at(last)),
                 [&] { low[i] = words(at(i), at(0)); });
    Value behind;
    if (!isAligned_)
      behind = wordsBehind(words, lane, ownRow, count,
                           before > at(0) &&
                               endOf(column) - at(before) < at(columns_));
    Value kept = keptBits(max(columns_ - at(first), at(0)));
    std::vector<Element> places =
        firstPlaces(ownRow, lane + at(column / each_));
    for (int i = 0; i < count; ++i) {
      Value word = low[i];
      if (!isAligned_) {
        ShuffleOptions lanes{.width = words_};
        Value high = select(at(lane == at(words_ - 1)),
                            at(shuffle_from(at(behind), at(i), lanes)),
                            at(shuffle_down(at(word), at(1), lanes)));
        word = shifted(word, high, shift);
      }
      predicated(at(ownRow + at(i * apart_) != at(last)),
                 [&] { placeOf(places, i) = at(word & at(kept)); });
    }
  }

  /// The first column behind the panel that begins there.
  Value endOf(int column) const {
    return constant(i32, at(column + layout_.panel_columns()));
  }

  /// The words behind the panel, where `isTaken`: each lane has that of one of
  /// the `count` rows.
  Value wordsBehind(const Tensor &words, const Value &lane, const Value &ownRow,
                    int count, const Value &isTaken) const {
    Value row = ownRow + at(lane * at(apart_)), loaded;
    Value column = constant(i32, at(words_)) - at(lane);
    predicated(at(isTaken && lane < at(count) && row < at(rows_ - at(1))),
               [&] { loaded = words(at(lane), at(column)); });
    return loaded;
  }

  Value shifted(const Value &low, const Value &high, const Value &shift) const {
    return inline_ptx(
        "shf.r.wrap.b32 {0}, {1}, {2}, {3};",
        {out(u32), in(at(low)), in(at(high)), in(at(cast(at(shift), u32)))},
        {.is_pure = true}, where_)[0];
  }

  int size() const { return size_bytes(layout_.type); }

  /// A word with ones where its elements are inside.
  Value keptBits(const Value &inside) const {
    Value kept = constant(u32, at(0));
    std::int64_t ones = 0;
    for (int i = 0; i < each_; ++i) {
      ones |= ((std::int64_t{1} << (8 * size())) - 1) << (8 * size() * i);
      kept = select(at(inside > at(i)), At(ones, where_), at(kept));
    }
    return kept;
  }

  /// Where the words of the thread's first rows go; after those the swizzle
  /// repeats itself.
  std::vector<Element> firstPlaces(const Value &ownRow,
                                   const Value &column) const {
    TileLayout layout = layout_; // the same in words
    layout.type = Type::u32;
    layout.columns /= each_;
    layout.panel /= each_;
    auto tile = Make::a<SharedTile>(to_.address(where_), layout);
    std::vector<Element> places;
    for (int i = 0; i * apart_ < std::max(kSwizzleRows, apart_); ++i)
      places.push_back(tile(at(ownRow + at(i * apart_)), at(column)));
    return places;
  }
  /// Of the i-th row: a constant behind one of them.
  Element placeOf(const std::vector<Element> &first, int i) const {
    int count = static_cast<int>(first.size());
    const Element &place = first[i % count];
    mlir::Value bytes = state_.constant(
        Type::i32, i / count * count * apart_ * layout_.row_bytes(), where_);
    mlir::Value address =
        state_.offset(state_.use(place.address(), where_), bytes, where_);
    return Make::a<Element>(state_.wrap(address, Type::u64), Type::u32, -1,
                            where_);
  }

  /// The elements of the last row that this thread takes.
  template <typename Body> void lastRow(Body &&body) const {
    for (int i = 0; i * threads_ < layout_.columns; ++i)
      body(i, thread_ + at(i * threads_));
  }
  Values loadLastRow() const {
    Values values;
    lastRow([&](int, const Value &column) {
      predicated(at(rows_ > at(0) && column < at(columns_)), [&] {
        values.push_back(from_(at(rows_ - at(1)), at(column)));
      });
    });
    return values;
  }
  void storeLastRow(const Values &values) const {
    lastRow([&](int i, const Value &column) {
      predicated(at(rows_ > at(0) && column < at(layout_.columns)),
                 [&] { to_(at(rows_ - at(1)), at(column)) = at(values[i]); });
    });
  }

  KernelBuilder::State &state_;
  const Where where_;
  const TileLayout layout_;
  const Tensor from_;
  const SharedTile to_;
  const int each_;  ///< elements of a word
  const int words_; ///< of a panel's row, and lanes
  const int apart_; ///< rows of one thread
  const int threads_;
  const bool isAligned_; ///< every row begins with a word
  const Value thread_;
  const Value rows_, columns_; ///< inside
};

} // namespace

void copyWords(const SharedTile &to, const Tensor &from, bool isAligned,
               int threads, const Value &thread, const Where &where) {
  WordCopy(to, from, isAligned, threads, thread, where).run();
}

} // namespace kiln
