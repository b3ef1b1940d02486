// WgmmaProtocol: fence, commit and wait, and what they mean for accumulators.
//
// Between the first mma and the wait that covers it LLVM must not touch the
// registers: a wait takes those of every accumulator that lands by it and gives
// them back, and nothing that uses one can be scheduled above it.
#include "dsl/tensorcore/AccumulatorState.h"
#include "dsl/tensorcore/WgmmaInstruction.h"
#include "kiln/language/value/math.h"
#include "kiln/language/tile/tile_math.h"
#include "support/Error.h"

namespace kiln {

KernelBuilder::State &kernelOf(const Accumulator::State &accumulator,
                               const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (accumulator.kernel != state.token)
    userErrorAt(where, "this Accumulator belongs to another kernel than {}",
                state.name);
  return state;
}

llvm::SmallVector<mlir::Value>
loadRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, int first, int count,
              const Where &where) {
  mlir::Type word = accumulator.type == Type::f16
                        ? state.builder.getI32Type()
                        : state.lower(accumulator.type);
  llvm::SmallVector<mlir::Value> values;
  for (int i = first; i < first + count; ++i)
    values.push_back(mlir::LLVM::LoadOp::create(
        state.builder, state.at(where), word,
        mlir::Value::getFromOpaquePointer(accumulator.slots[i])));
  return values;
}

llvm::SmallVector<mlir::Value>
loadRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, const Where &where) {
  return loadRegisters(state, accumulator, 0,
                       static_cast<int>(accumulator.slots.size()), where);
}

void storeRegisters(KernelBuilder::State &state,
                    const Accumulator::State &accumulator,
                    llvm::ArrayRef<mlir::Value> values, const Where &where) {
  for (auto [slot, value] : llvm::zip_equal(accumulator.slots, values))
    mlir::LLVM::StoreOp::create(state.builder, state.at(where), value,
                                mlir::Value::getFromOpaquePointer(slot));
}

llvm::SmallVector<mlir::Value> wordsOf(KernelBuilder::State &state,
                                       const RegisterTile &tile,
                                       const Where &where) {
  int perWord = 4 / size_bytes(tile.type());
  Values values = tile.values(where);
  llvm::SmallVector<mlir::Value> words;
  for (std::size_t i = 0; i < values.size(); i += perWord) {
    Value word =
        perWord == 1
            ? bitcast(At(values[i], where), u32)
            : pack(Values(values.begin() + i, values.begin() + i + perWord),
                   where);
    words.push_back(state.use(word, where));
  }
  return words;
}

void checkLanded(const Accumulator::State &accumulator, const Where &where) {
  auto &state = kernelOf(accumulator, where);
  int newer = state.wgmma.newer(accumulator.id);
  if (newer == WgmmaGroups::kOpen)
    userErrorAt(where,
                "an accumulator of {}x{} is used while its multiplication is "
                "in flight and in no group yet; call wgmma_commit, then "
                "wait(0)",
                accumulator.rows, accumulator.columns);
  if (newer != WgmmaGroups::kLanded)
    userErrorAt(where,
                "an accumulator of {}x{} is used while its multiplication is "
                "in flight; call wait({}) first",
                accumulator.rows, accumulator.columns, newer);
  state.wgmma.use(accumulator.id, collectiveLine.value_or(where));
}

void checkTurns(KernelBuilder::State &state, const WgmmaGroups::Loop &loop) {
  std::optional<WgmmaGroups::Conflict> conflict = loop.conflict();
  if (!conflict)
    return;
  auto accumulator = state.accumulators[conflict->id].lock();
  userErrorAt(
      conflict->use,
      "an accumulator{} is used while the multiplication of the loop's "
      "previous turn ({}:{}) may be in flight; {}wait({}) at the end of the "
      "loop or before the use",
      accumulator
          ? fmt::format(" of {}x{}", accumulator->rows, accumulator->columns)
          : "",
      conflict->product.file, conflict->product.line,
      conflict->newer == WgmmaGroups::kOpen ? "wgmma_commit it and " : "",
      std::max(conflict->newer, 0));
}

/// A word of the protocol without operands.
static void plainAsm(KernelBuilder::State &state, const std::string &text,
                     const Where &where) {
  state.inlineAsm(text, "~{memory}", {}, nullptr, where);
}

// The products of warps are finished when they are issued: the protocol is
// followed all the same, so that one source suits both, and nothing is written.

void wgmma_fence(Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (!state.multipliesByWarps())
    plainAsm(state, "wgmma.fence.sync.aligned;", where);
}

void wgmma_commit(Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (!state.multipliesByWarps())
    plainAsm(state, "wgmma.commit_group.sync.aligned;", where);
  if (!state.predicate)
    state.wgmma.commit();
}

/// Pass the registers of an accumulator through an instruction, or through
/// nothing.
static void passThrough(KernelBuilder::State &state,
                        const Accumulator::State &accumulator,
                        const std::string &text, const Where &where) {
  llvm::SmallVector<mlir::Value> registers =
      loadRegisters(state, accumulator, where);
  tiedAsm(state, text, "~{memory}", registers, {}, where);
  storeRegisters(state, accumulator, registers, where);
}

/// A branch that is never taken and depends on every register of `tile`: the
/// assembler moves no wait across it. It is the same for a whole warp, so that
/// nothing diverges while products are in flight.
static void standBehind(const RegisterTile &tile, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (size_bytes(tile.type()) > 4)
    userErrorAt(where,
                "WaitOptions::after is a tile of {}; elements of 4 bytes or "
                "less can be",
                name(tile.type()));
  bool isWhole = tile.registers() * size_bytes(tile.type()) % 4 == 0;
  llvm::SmallVector<mlir::Value> words =
      isWhole
          ? wordsOf(state, tile, where)
          : wordsOf(state, cast(tile, is_float(tile.type()) ? f32 : i32, where),
                    where);
  std::string text = "{\n.reg .pred none;\n.reg .b32 all;\n"
                     "mov.b32 all, $0;\n";
  std::string constraints;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += fmt::format("and.b32 all, all, ${};\n", i);
    constraints += "r,";
  }
  text += "setp.eq.b32 none, all, -1;\n"
          "vote.sync.any.pred none, none, -1;\n"
          "@!none bra stays;\nnanosleep.u32 0;\nstays:\n}";
  state.inlineAsm(text, constraints + "~{memory}", words, nullptr, where);
}

/// Wait, with the registers of `own` where one waits for itself, landed or not.
static void waitFor(KernelBuilder::State &state, int groups,
                    const WaitOptions &options, const Accumulator::State *own,
                    const Where &where) {
  if (groups < 0 || groups > 7)
    userErrorAt(where, "wgmma.wait_group takes 0 to 7 groups, not {}", groups);
  if (state.multipliesByWarps()) {
    if (!state.predicate)
      state.wgmma.wait(groups);
    return;
  }
  if (options.after)
    standBehind(*options.after, where);
  std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", groups);
  own ? passThrough(state, *own, text, where) : plainAsm(state, text, where);
  if (state.predicate)
    return;
  for (WgmmaGroups::Id id : state.wgmma.wait(groups))
    if (auto landed = state.accumulators[id].lock(); landed.get() != own)
      if (landed)
        passThrough(state, *landed, "", where);
}

void wgmma_wait(int groups, const WaitOptions &options, Where where) {
  waitFor(KernelBuilder::State::current(where), groups, options, nullptr,
          where);
}

void Accumulator::wait(int groups, const WaitOptions &options, Where where) {
  waitFor(kernelOf(*state_, where), groups, options, state_.get(), where);
}

} // namespace kiln
