// Execute: how a lane-wise instruction is decoded and run.
//
// Most PTX instructions compute each lane from the same lane of their sources.
// Such an instruction is one function of values here; the loop over 32 lanes,
// the reading of registers and the blending of inactive lanes are written once,
// in a form that the compiler vectorises.
#pragma once

#include "sim/machine/Machine.h"
#include "sim/program/ReferenceHandlers.h"
#include "sim/units/Units.h"
#include "support/HostProcessor.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <type_traits>

namespace kiln::sim {

/// What a lane of type T is stored as. Registers are only ever read and written
/// as these two, so that no two handlers disagree on the type of memory.
template <typename T>
using Storage =
    std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T> inline T fromLane(Storage<T> bits) {
  if constexpr (sizeof(T) == sizeof(Storage<T>))
    return std::bit_cast<T>(bits);
  else
    return static_cast<T>(bits);
}

/// Zero-extended: the bits above the value are zero in every register.
template <typename T> inline Storage<T> toLane(T value) {
  if constexpr (sizeof(T) == sizeof(Storage<T>))
    return std::bit_cast<Storage<T>>(value);
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}

/// Copy all lanes in pieces as wide as those in which handlers read them: the
/// host hands a value that has just been stored on to no load that is wider.
template <typename S>
[[gnu::always_inline]] inline void copyLanes(S *to, const void *from) {
  using Piece = std::uint8_t __attribute__((vector_size(32), aligned(4)));
  const auto *bytes = static_cast<const std::uint8_t *>(from);
  auto *target = reinterpret_cast<std::uint8_t *>(to);
#pragma GCC unroll 8
  for (std::size_t at = 0; at < sizeof(S) * kLanes; at += sizeof(Piece)) {
    Piece piece;
    std::memcpy(&piece, bytes + at, sizeof(piece));
    std::memcpy(target + at, &piece, sizeof(piece));
  }
}

/// Copy the lanes of `active` from `from` to `to`.
template <typename S>
[[gnu::always_inline]] inline void blendLanes(S *to, const S *from,
                                              LaneMask active) {
  if (active == kAllLanes)
    return copyLanes(to, from);
  for (int lane = 0; lane < kLanes; ++lane) {
    S taken = (active & kLaneBits[lane]) ? ~S(0) : S(0);
    to[lane] = (from[lane] & taken) | (to[lane] & ~taken);
  }
}

/// Set the active lanes of `reg` to `value(lane)`, which is asked for all lanes
/// and before any of them is written.
template <typename T, typename F>
[[gnu::always_inline]] inline void storeLanes(Warp &warp, Reg reg, LaneMask active, F &&value) {
  alignas(64) Storage<T> result[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    result[lane] = toLane<T>(value(lane));
  blendLanes(warp.lanes<Storage<T>>(reg), result, active);
}

/// The same handler, compiled for the wide vectors of the host.
template <Handler body>
[[gnu::flatten]] KILN_WIDE_LANES Step widened(Warp &warp, const Op &op,
                                              LaneMask active) {
  return body(warp, op, active);
}

/// Of two that do the same, the faster one here.
template <Handler body> Handler widest() {
  return hasWideLanes() ? withReference(widened<body>, body) : body;
}

/// The handler of an instruction whose lanes are F(source lanes).
template <typename F, typename D, typename A>
Step lanewise1(Warp &warp, const Op &op, LaneMask active) {
  const auto *a = warp.lanes<Storage<A>>(op.src[0]);
  storeLanes<D>(warp, op.dst, active,
                [=](int lane) { return F{}(fromLane<A>(a[lane])); });
  return Step::next;
}

template <typename F, typename D, typename A, typename B>
Step lanewise2(Warp &warp, const Op &op, LaneMask active) {
  const auto *a = warp.lanes<Storage<A>>(op.src[0]);
  const auto *b = warp.lanes<Storage<B>>(op.src[1]);
  storeLanes<D>(warp, op.dst, active, [=](int lane) {
    return F{}(fromLane<A>(a[lane]), fromLane<B>(b[lane]));
  });
  return Step::next;
}

template <typename F, typename D, typename A, typename B, typename C>
Step lanewise3(Warp &warp, const Op &op, LaneMask active) {
  const auto *a = warp.lanes<Storage<A>>(op.src[0]);
  const auto *b = warp.lanes<Storage<B>>(op.src[1]);
  const auto *c = warp.lanes<Storage<C>>(op.src[2]);
  storeLanes<D>(warp, op.dst, active, [=](int lane) {
    return F{}(fromLane<A>(a[lane]), fromLane<B>(b[lane]),
               fromLane<C>(c[lane]));
  });
  return Step::next;
}

/// Refuse the instruction unless `reg` has lanes for values of `bytes`: a
/// handler would read or write past them.
inline Reg expectWidth(const Decoder &decoder,
                       const ptx::Instruction &instruction, Reg reg,
                       int bytes) {
  int width = bytes == 8 ? 8 : 4;
  if (reg.width != width)
    decoder.refuse(instruction,
                   fmt::format("a register of {} bytes stands where a value of "
                               "{} bytes is expected",
                               reg.bytes, bytes));
  return reg;
}

/// A source operand of type T. Literals with a point become T's bits.
template <typename T>
Reg source(Decoder &decoder, const ptx::Instruction &instruction,
           const ptx::Operand &operand) {
  if constexpr (std::is_floating_point_v<T>) {
    if (operand.kind == ptx::Operand::Kind::real) {
      T value = operand.isSingle
                    ? T(std::bit_cast<float>(std::uint32_t(operand.bits)))
                    : T(std::bit_cast<double>(operand.bits));
      // A float keeps the very bits that were written, those of a NaN too.
      if (sizeof(T) == 4 && operand.isSingle)
        return decoder.constant(std::uint32_t(operand.bits), sizeof(T));
      return decoder.constant(toLane<T>(value), sizeof(T));
    }
  }
  return expectWidth(decoder, instruction, decoder.reg(operand, sizeof(T)),
                     sizeof(T));
}

/// A destination of `bytes`; `_` gets a register that nobody reads.
inline Reg destination(Decoder &decoder, const ptx::Instruction &instruction,
                       const ptx::Operand &operand, int bytes) {
  if (operand.kind == ptx::Operand::Kind::sink)
    return decoder.scratch(bytes);
  return expectWidth(decoder, instruction, decoder.reg(operand, bytes), bytes);
}

/// A predicate destination; `_` gets none.
inline Pred predDestination(Decoder &decoder, const ptx::Operand &operand) {
  if (operand.kind == ptx::Operand::Kind::sink || operand.reg < 0)
    return {};
  ptx::Operand alone = operand;
  alone.pairedReg = -1;
  return decoder.pred(alone);
}

/// The %p2 of `%p1|%p2`; invalid where there is none.
inline Pred pairedPred(Decoder &decoder, const ptx::Operand &operand) {
  if (operand.pairedReg < 0)
    return {};
  ptx::Operand paired;
  paired.kind = ptx::Operand::Kind::reg;
  paired.reg = operand.pairedReg;
  return decoder.pred(paired);
}

/// Decode `d, a, b, ...` with `function` as the meaning: a lambda without
/// captures from the sources' types to D.
template <typename D, typename... S, typename F>
void decodeLanewise(Decoder &decoder, const ptx::Instruction &instruction,
                    Op &op, F) {
  op.dst =
      destination(decoder, instruction, instruction.operands[0], sizeof(D));
  int index = 0;
  ((op.src[index] =
        source<S>(decoder, instruction, instruction.operands[index + 1]),
    ++index),
   ...);
  if constexpr (sizeof...(S) == 1)
    op.handler = widest<lanewise1<F, D, S...>>();
  else if constexpr (sizeof...(S) == 2)
    op.handler = widest<lanewise2<F, D, S...>>();
  else
    op.handler = widest<lanewise3<F, D, S...>>();
}

/// Every type modifier in order.
inline std::vector<ptx::ScalarType>
allTypes(const ptx::Instruction &instruction) {
  std::vector<ptx::ScalarType> types;
  ptx::ScalarType type;
  for (const std::string &modifier : instruction.modifiers)
    if (ptx::parseScalarType(modifier, type))
      types.push_back(type);
  return types;
}

/// The last of them.
inline ptx::ScalarType lastType(const Decoder &decoder,
                                const ptx::Instruction &instruction) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.empty())
    decoder.refuse(instruction, "it names no type that is known here");
  return types.back();
}

inline bool isFloatType(ptx::ScalarType type) {
  return type >= ptx::ScalarType::f16;
}

/// Call `body.operator()<T>()` with the integer type that `type` names, bits
/// counting as unsigned; refuse where it is none of 16 bits or more.
template <typename Body>
void withInteger(const Decoder &decoder, const ptx::Instruction &instruction,
                 ptx::ScalarType type, Body &&body) {
  using enum ptx::ScalarType;
  switch (type) {
  case b16:
  case u16:
    return body.template operator()<std::uint16_t>();
  case s16:
    return body.template operator()<std::int16_t>();
  case b32:
  case u32:
    return body.template operator()<std::uint32_t>();
  case s32:
    return body.template operator()<std::int32_t>();
  case b64:
  case u64:
    return body.template operator()<std::uint64_t>();
  case s64:
    return body.template operator()<std::int64_t>();
  default:
    decoder.refuse(instruction, "its type is no integer of 16, 32 or 64 bits");
  }
}

/// The same for 32 and 64 bits alone.
template <typename Body>
void withWideInteger(const Decoder &decoder,
                     const ptx::Instruction &instruction, ptx::ScalarType type,
                     Body &&body) {
  using enum ptx::ScalarType;
  if (type == b16 || type == u16 || type == s16)
    decoder.refuse(instruction, "its type is no integer of 32 or 64 bits");
  withInteger(decoder, instruction, type, body);
}

} // namespace kiln::sim
