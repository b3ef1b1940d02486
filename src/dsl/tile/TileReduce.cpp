// TileReduce: one value per row or column of a register tile.
//
// A row is spread over the registers of a thread, over lanes of a warp, and
// over warps, each by modes of the layout that step along the columns. They are
// combined in that order: in the thread, by shuffles, through shared memory.
#include "dsl/kernel/State.h"
#include "dsl/tile/TileWalk.h"
#include "kiln/language/value/control.h"
#include "kiln/language/tile/tile_math.h"
#include "kiln/language/threads/warp.h"
#include "support/Error.h"

#include <bit>

namespace kiln {

static constexpr int kReducedLanes = 32;

static Value combined(Reduction reduction, const Value &a, const Value &b,
                      const Where &where) {
  switch (reduction) {
  case Reduction::add:
    return a + At(b, where);
  case Reduction::min:
    return min(a, At(b, where));
  case Reduction::max:
    return max(a, At(b, where));
  default:
    userErrorAt(where, "the elements of a tile are reduced by add, min or max");
  }
}

namespace {
/// How the rows of a layout are spread over threads.
struct RowSpread {
  std::vector<int> laneDistances; ///< for shuffles, powers of two
  int warps = 1;                  ///< that hold parts of one row
  Value warp;                     ///< which of these the caller is
  Value isFirstLane; ///< an i1: of the lanes that hold one part, the first
};
} // namespace

static RowSpread spreadOf(const RegisterLayout &layout, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  RowSpread spread;
  spread.warp = state.wrap(state.constant(Type::i32, 0, where), Type::i32);
  spread.isFirstLane = state.wrap(state.constant(Type::i1, 1, where), Type::i1);
  std::vector<Value> digits = threadDigits(layout, where);
  int faster = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const LayoutMode &mode = layout.thread_modes()[i];
    int next = faster * mode.extent;
    if (mode.row != 0) {
      faster = next;
      continue;
    }
    // The part of the mode inside a warp, and the rest.
    int lanes = std::min(next, kReducedLanes) / std::min(faster, kReducedLanes);
    bool isWhole =
        std::has_single_bit(unsigned(faster)) || faster >= kReducedLanes;
    if (!isWhole || !std::has_single_bit(unsigned(lanes)) ||
        mode.extent % lanes != 0)
      userErrorAt(where,
                  "the rows of {} lie in {} threads, {} apart; a reduction "
                  "takes powers of two inside a warp",
                  layout.to_string(), mode.extent, faster);
    for (int distance = faster; mode.column && distance < faster * lanes;
         distance *= 2)
      spread.laneDistances.push_back(distance);
    if (lanes > 1) {
      Value lane = digits[i] % At(lanes, where);
      spread.isFirstLane =
          spread.isFirstLane && At(lane == At(0, where), where);
    }
    if (mode.column && mode.extent > lanes) {
      Value warp = digits[i] / At(lanes, where);
      spread.warp = spread.warp + At(warp * At(spread.warps, where), where);
      spread.warps *= mode.extent / lanes;
    } else if (mode.extent > lanes) {
      Value copy = digits[i] / At(lanes, where);
      spread.isFirstLane =
          spread.isFirstLane && At(copy == At(0, where), where);
    }
    faster = next;
  }
  return spread;
}

/// Refuse a scratch tile through which the warps of a row cannot meet.
static void checkScratch(const KernelBuilder::State &state,
                         const RegisterTile &tile, const RowSpread &spread,
                         const ReduceOptions &options, const Where &where) {
  const RegisterLayout &layout = tile.layout();
  if (!options.scratch)
    userErrorAt(where,
                "the rows of {} lie in {} warps each, which meet in shared "
                "memory: give ReduceOptions::scratch, a tile of {}x{} {}",
                layout.to_string(), spread.warps, layout.rows(), spread.warps,
                name(tile.type()));
  const SharedTile &scratch = *options.scratch;
  if (scratch.layout().type != tile.type() || scratch.rows() < layout.rows() ||
      scratch.columns() < spread.warps)
    userErrorAt(where,
                "the scratch tile is {}x{} {}; {} rows of {} in {} warps each "
                "take {}x{} {}",
                scratch.rows(), scratch.columns(), name(scratch.layout().type),
                layout.rows(), name(tile.type()), spread.warps, layout.rows(),
                spread.warps, name(tile.type()));
  if (!options.barrier && layout.threads() != state.contract.threads())
    userErrorAt(where,
                "{} of the {} threads of kernel {} reduce rows that lie in "
                "several warps; they meet at a named barrier: give "
                "ReduceOptions::barrier",
                layout.threads(), state.contract.threads(), state.name);
  if (options.barrier && options.barrier->threads() != layout.threads())
    userErrorAt(where,
                "{} threads reduce rows and meet at a named barrier of {}; "
                "make it for {}",
                layout.threads(), options.barrier->threads(), layout.threads());
}

/// Combine what the warps have of each row, through the scratch tile.
static void reduceAcrossWarps(const RegisterLayout &rows,
                              const RowSpread &spread, Reduction reduction,
                              const ReduceOptions &options,
                              std::vector<Value> &partial, const Where &where) {
  const SharedTile &scratch = *options.scratch;
  auto meet = [&] {
    options.barrier ? options.barrier->sync(where) : sync_threads(where);
  };
  TileWalk walk(rows, where);
  if_(At(spread.isFirstLane, where), [&] {
    for (int reg = 0; reg < rows.registers(); ++reg)
      scratch(At(walk.row(reg), where), At(spread.warp, where)) =
          At(partial[reg], where);
  });
  meet();
  for (int reg = 0; reg < rows.registers(); ++reg)
    for (int warp = 0; warp < spread.warps; ++warp) {
      Value part = scratch(At(walk.row(reg), where), At(warp, where));
      partial[reg] =
          warp ? combined(reduction, partial[reg], part, where) : part;
    }
  // The scratch tile serves again.
  meet();
}

RegisterTile reduce_rows(const RegisterTile &tile, Reduction reduction,
                         const ReduceOptions &options, Where where) {
  auto &state = KernelBuilder::State::current(where);
  LocationScope scope(where);
  RegisterLayout rows = tile.layout().per_row(where);
  std::vector<int> rowOf = rows.registers_for(tile.layout());
  std::vector<Value> partial(rows.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    Value &row = partial[rowOf[reg]];
    Value element = tile.element(reg, where);
    row = row.is_valid() ? combined(reduction, row, element, where) : element;
  }
  RowSpread spread = spreadOf(tile.layout(), where);
  if (!spread.laneDistances.empty() &&
      state.contract.threads() % kReducedLanes != 0)
    userErrorAt(where,
                "a reduction shuffles among the 32 lanes of whole warps, and "
                "kernel {} has {} threads",
                state.name, state.contract.threads());
  for (Value &value : partial)
    for (int distance : spread.laneDistances)
      value =
          combined(reduction, value,
                   shuffle_xor(At(value, where), At(distance, where)), where);
  if (spread.warps > 1) {
    checkScratch(state, tile, spread, options, where);
    reduceAcrossWarps(rows, spread, reduction, options, partial, where);
  }
  return RegisterTile(rows, partial, where);
}

RegisterTile reduce_columns(const RegisterTile &tile, Reduction reduction,
                            const ReduceOptions &options, Where where) {
  return reduce_rows(tile.transpose(where), reduction, options, where)
      .transpose(where);
}

} // namespace kiln
