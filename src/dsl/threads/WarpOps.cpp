// WarpOps: shuffles, votes and reductions of the lanes of a warp.
#include "dsl/kernel/State.h"
#include "kiln/language/threads/warp.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <bit>

namespace kiln {

namespace arith = mlir::arith;
using mlir::NVVM::ShflKind;

namespace {
/// A shuffle, ready but for the value.
struct Shuffle {
  KernelBuilder::State &state;
  mlir::Location loc;
  ShflKind kind;
  mlir::Value members, lane, clamp;

  /// One shfl.sync.
  mlir::Value move(mlir::Value word) const {
    return mlir::NVVM::ShflOp::create(state.builder, loc,
                                      state.builder.getI32Type(), members, word,
                                      lane, clamp, kind, mlir::UnitAttr());
  }
};
} // namespace

/// A shuffle whose options and literal lane are checked.
static Shuffle prepareShuffle(const char *what, ShflKind kind, const At &lane,
                              const ShuffleOptions &options) {
  const Where &where = lane.where();
  auto &state = KernelBuilder::State::current(where);
  if (options.width < 1 || options.width > 32 ||
      !std::has_single_bit(static_cast<unsigned>(options.width)))
    userErrorAt(where,
                "{} in groups of {} lanes; groups have 1, 2, 4, 8, 16 "
                "or 32",
                what, options.width);
  auto *literal = std::get_if<std::int64_t>(&lane.operand());
  if (literal && (*literal < 0 || *literal >= options.width))
    userErrorAt(where,
                "{} by {} leaves its group of {} lanes; 0 to {} stay "
                "inside",
                what, *literal, options.width, options.width - 1);
  // PTX, "shfl.sync": the segment's mask above the lane to stop at.
  int clamp = (32 - options.width) << 8 | (kind == ShflKind::up ? 0 : 31);
  return {state,
          state.at(where),
          kind,
          state.constant(Type::i32, static_cast<int>(options.members), where),
          state.use(lane, Type::i32),
          state.constant(Type::i32, clamp, where)};
}

/// The bits of `value` as an integer of its size.
static mlir::Value toBits(const Shuffle &shuffle, mlir::Value value, int bits) {
  mlir::Type integer = shuffle.state.builder.getIntegerType(bits);
  if (value.getType() == integer)
    return value;
  return mlir::LLVM::BitcastOp::create(shuffle.state.builder, shuffle.loc,
                                       integer, value);
}

/// Both halves of 64 bits, one after the other.
static mlir::Value moveWide(const Shuffle &shuffle, mlir::Value bits) {
  mlir::OpBuilder &builder = shuffle.state.builder;
  mlir::Type word = builder.getI32Type(), wide = builder.getI64Type();
  mlir::Value by = arith::ConstantOp::create(builder, shuffle.loc,
                                             builder.getI64IntegerAttr(32));
  mlir::Value upper = arith::ShRUIOp::create(builder, shuffle.loc, bits, by);
  mlir::Value halves[] = {bits, upper};
  for (mlir::Value &half : halves) {
    half = arith::TruncIOp::create(builder, shuffle.loc, word, half);
    half =
        arith::ExtUIOp::create(builder, shuffle.loc, wide, shuffle.move(half));
  }
  upper = arith::ShLIOp::create(builder, shuffle.loc, halves[1], by);
  return arith::OrIOp::create(builder, shuffle.loc, halves[0], upper);
}

/// Fewer bits than a word travel in its low ones.
static mlir::Value moveNarrow(const Shuffle &shuffle, mlir::Value bits) {
  mlir::OpBuilder &builder = shuffle.state.builder;
  mlir::Value word =
      arith::ExtUIOp::create(builder, shuffle.loc, builder.getI32Type(), bits);
  return arith::TruncIOp::create(builder, shuffle.loc, bits.getType(),
                                 shuffle.move(word));
}

static Value shuffled(const char *what, ShflKind kind, const At &operand,
                      const At &lane, const ShuffleOptions &options) {
  Shuffle shuffle = prepareShuffle(what, kind, lane, options);
  KernelBuilder::State &state = shuffle.state;
  Value value = value_of(operand);
  mlir::Value own = state.use(value, operand.where());
  checkArithmetic(value, own, what, operand.where());
  int size = size_bits(value.type());
  mlir::Value bits = toBits(shuffle, own, size);
  bits = size == 64   ? moveWide(shuffle, bits)
         : size == 32 ? shuffle.move(bits)
                      : moveNarrow(shuffle, bits);
  if (bits.getType() != own.getType())
    bits = mlir::LLVM::BitcastOp::create(state.builder, shuffle.loc,
                                         own.getType(), bits);
  return state.wrap(bits, value.type());
}

Value shuffle_xor(At value, At mask, const ShuffleOptions &options) {
  return shuffled("shuffle_xor", ShflKind::bfly, value, mask, options);
}
Value shuffle_up(At value, At delta, const ShuffleOptions &options) {
  return shuffled("shuffle_up", ShflKind::up, value, delta, options);
}
Value shuffle_down(At value, At delta, const ShuffleOptions &options) {
  return shuffled("shuffle_down", ShflKind::down, value, delta, options);
}
Value shuffle_from(At value, At lane, const ShuffleOptions &options) {
  return shuffled("shuffle_from", ShflKind::idx, value, lane, options);
}

static Value voted(mlir::NVVM::VoteSyncKind kind, const At &predicate,
                   std::uint32_t members, Type type) {
  const Where &where = predicate.where();
  auto &state = KernelBuilder::State::current(where);
  mlir::Value mask =
      state.constant(Type::i32, static_cast<int>(members), where);
  mlir::Value own = state.use(predicate, Type::i1);
  return state.wrap(
      mlir::NVVM::VoteSyncOp::create(state.builder, state.at(where),
                                     state.lower(type), mask, own, kind),
      type);
}

Value vote_all(At predicate, std::uint32_t members) {
  return voted(mlir::NVVM::VoteSyncKind::all, predicate, members, Type::i1);
}
Value vote_any(At predicate, std::uint32_t members) {
  return voted(mlir::NVVM::VoteSyncKind::any, predicate, members, Type::i1);
}
Value ballot(At predicate, std::uint32_t members) {
  return voted(mlir::NVVM::VoteSyncKind::ballot, predicate, members, Type::u32);
}

void warp_sync(std::uint32_t members, Where where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::NVVM::SyncWarpOp::create(
      state.builder, state.at(where),
      state.constant(Type::i32, static_cast<int>(members), where));
}

/// redux.sync has it of 32 bits.
static mlir::NVVM::ReduxKind reduxKind(Reduction reduction, bool isSigned,
                                       const Where &where) {
  using mlir::NVVM::ReduxKind;
  switch (reduction) {
  case Reduction::add:
    return ReduxKind::ADD;
  case Reduction::min:
    return isSigned ? ReduxKind::MIN : ReduxKind::UMIN;
  case Reduction::max:
    return isSigned ? ReduxKind::MAX : ReduxKind::UMAX;
  case Reduction::bit_and:
    return ReduxKind::AND;
  case Reduction::bit_or:
    return ReduxKind::OR;
  case Reduction::bit_xor:
    return ReduxKind::XOR;
  default:
    userErrorAt(where, "the lanes of a warp are reduced by add, min, max, "
                       "bit_and, bit_or or bit_xor");
  }
}

static Value combined(Reduction reduction, const Value &a, const At &b) {
  switch (reduction) {
  case Reduction::add:
    return a + b;
  case Reduction::min:
    return min(a, b);
  case Reduction::max:
    return max(a, b);
  default:
    userErrorAt(b.where(),
                "values of {} are reduced by add, min or max; bits of i32 and "
                "u32 alone",
                name(a.type()));
  }
}

Value warp_reduce(At operand, Reduction reduction) {
  const Where &where = operand.where();
  auto &state = KernelBuilder::State::current(where);
  Value value = value_of(operand);
  mlir::Value own = state.use(value, where);
  checkArithmetic(value, own, "warp_reduce", where);
  if (value.type() == Type::i1)
    userErrorAt(where, "warp_reduce takes numbers, not i1; vote_all, vote_any "
                       "and ballot take conditions");
  if (value.type() == Type::i32 || value.type() == Type::u32)
    return state.wrap(
        mlir::NVVM::ReduxOp::create(
            state.builder, state.at(where), own.getType(), own,
            reduxKind(reduction, value.type() == Type::i32, where),
            state.constant(Type::i32, -1, where)),
        value.type());
  LocationScope scope(where);
  for (int distance = 1; distance < 32; distance *= 2)
    value =
        combined(reduction, value,
                 At(shuffle_xor(At(value, where), At(distance, where)), where));
  return value;
}

} // namespace kiln
