// ScalarBits: bit fields, counting bits, and dot products of bytes.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"

namespace kiln::sim {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S32 = std::int32_t;

/// bfe: position and length are taken modulo 256; bits above the value are its
/// sign for a signed type, the field's sign being that of its top bit.
template <typename T> static T extractField(T a, U32 b, U32 c) {
  constexpr int bits = 8 * sizeof(T);
  int position = b & 0xff, length = c & 0xff;
  if (length == 0)
    return 0;
  if constexpr (std::is_signed_v<T>) {
    int last = std::min(position + length - 1, bits - 1);
    if (position >= bits)
      return a < 0 ? T(-1) : T(0);
    // Move the last bit of the field to the top, then down as a signed value.
    using U = Storage<T>;
    T top = T(U(a) << (bits - 1 - last));
    return T(top >> (bits - 1 - (last - position)));
  } else {
    if (position >= bits)
      return 0;
    T moved = a >> position;
    return length >= bits ? moved : moved & ((T(1) << length) - 1);
  }
}

/// bfi: what does not fit is cut off; nothing is inserted past the top.
template <typename T> static T insertField(T a, T b, U32 c, U32 d) {
  constexpr int bits = 8 * sizeof(T);
  int position = c & 0xff, length = d & 0xff;
  if (position >= bits || length == 0)
    return b;
  T mask = length >= bits ? ~T(0) : (T(1) << length) - 1;
  mask <<= position;
  return (b & ~mask) | ((a << position) & mask);
}

static void decodeBfe(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  withWideInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        decodeLanewise<T, T, U32, U32>(
            decoder, instruction, op,
            [](T a, U32 b, U32 c) { return extractField(a, b, c); });
      });
}

template <typename T>
static Step executeBfi(Warp &warp, const Op &op, LaneMask active) {
  const T *a = warp.lanes<T>(op.src[0]), *b = warp.lanes<T>(op.src[1]);
  const U32 *c = warp.lanes<U32>(op.src[2]), *d = warp.lanes<U32>(op.src[3]);
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    return insertField<T>(a[lane], b[lane], c[lane], d[lane]);
  });
  return Step::next;
}

static void decodeBfi(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  withWideInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        op.dst = destination(decoder, instruction, operands[0], sizeof(T));
        op.src[0] = source<T>(decoder, instruction, operands[1]);
        op.src[1] = source<T>(decoder, instruction, operands[2]);
        op.src[2] = source<U32>(decoder, instruction, operands[3]);
        op.src[3] = source<U32>(decoder, instruction, operands[4]);
        op.handler = executeBfi<Storage<T>>;
      });
}

/// bfind: the highest bit that differs from the sign; all ones where none does.
template <typename T, bool isAmount> static U32 findTop(T a) {
  using U = Storage<T>;
  constexpr int bits = 8 * sizeof(T);
  U magnitude = std::is_signed_v<T> && a < 0 ? ~U(a) : U(a);
  if (magnitude == 0)
    return ~U32(0);
  U32 position = bits - 1 - std::countl_zero(magnitude);
  return isAmount ? bits - 1 - position : position;
}

static void decodeBfind(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  withWideInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        if (instruction.has("shiftamt"))
          return decodeLanewise<U32, T>(decoder, instruction, op, [](T a) {
            return findTop<T, true>(a);
          });
        decodeLanewise<U32, T>(decoder, instruction, op,
                               [](T a) { return findTop<T, false>(a); });
      });
}

template <typename T> static T reverseBits(T a) {
  constexpr T fives = T(0x5555555555555555u), threes = T(0x3333333333333333u);
  constexpr T nibbles = T(0x0f0f0f0f0f0f0f0fu);
  a = (a >> 1 & fives) | (a & fives) << 1;
  a = (a >> 2 & threes) | (a & threes) << 2;
  a = (a >> 4 & nibbles) | (a & nibbles) << 4;
  if constexpr (sizeof(T) == 8)
    return __builtin_bswap64(a);
  else
    return __builtin_bswap32(a);
}

/// brev, clz and popc: of one operand of 32 or 64 bits.
static void decodeCount(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  withWideInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        using U = Storage<T>;
        if (instruction.opcode == "brev")
          return decodeLanewise<U, U>(decoder, instruction, op,
                                      [](U a) { return reverseBits(a); });
        if (instruction.opcode == "clz")
          return decodeLanewise<U32, U>(decoder, instruction, op, [](U a) {
            return U32(std::countl_zero(a));
          });
        decodeLanewise<U32, U>(decoder, instruction, op,
                               [](U a) { return U32(std::popcount(a)); });
      });
}

/// fns: the position of the n-th set bit from `base`, upwards for n > 0 and
/// downwards for n < 0; with n = 0 `base` itself where it is set.
static U32 findSet(U32 mask, U32 base, S32 offset) {
  if (base > 31)
    return ~U32(0);
  if (offset == 0)
    return mask >> base & 1 ? base : ~U32(0);
  int step = offset > 0 ? 1 : -1, left = std::abs(offset);
  for (int position = base; position >= 0 && position < 32; position += step)
    if ((mask >> position & 1) && --left == 0)
      return position;
  return ~U32(0);
}

static void decodeFns(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  decodeLanewise<U32, U32, U32, S32>(decoder, instruction, op,
                                     [](U32 mask, U32 base, S32 offset) {
                                       return findSet(mask, base, offset);
                                     });
}

/// szext: the low b bits of a, extended; .wrap takes b modulo 32.
template <bool isSigned, bool isWrapping> static U32 extend(U32 a, U32 b) {
  U32 length = isWrapping ? b & 31 : b;
  if (length == 0)
    return 0;
  if (length >= 32)
    return a;
  U32 moved = a << (32 - length);
  return isSigned ? U32(S32(moved) >> (32 - length)) : moved >> (32 - length);
}

static void decodeSzext(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  bool isSigned = lastType(decoder, instruction) == ptx::ScalarType::s32;
  auto decode = [&](auto function) {
    decodeLanewise<U32, U32, U32>(decoder, instruction, op, function);
  };
  if (instruction.has("wrap")) {
    if (isSigned)
      return decode([](U32 a, U32 b) { return extend<true, true>(a, b); });
    return decode([](U32 a, U32 b) { return extend<false, true>(a, b); });
  }
  if (isSigned)
    return decode([](U32 a, U32 b) { return extend<true, false>(a, b); });
  decode([](U32 a, U32 b) { return extend<false, false>(a, b); });
}

/// bmsk: b ones from bit a upwards.
template <bool isWrapping> static U32 bitMask(U32 a, U32 b) {
  U32 start = isWrapping ? a & 31 : a, length = isWrapping ? b & 31 : b;
  if (start >= 32 || length == 0)
    return 0;
  U32 ones = length >= 32 ? ~U32(0) : (U32(1) << length) - 1;
  return ones << start;
}

static void decodeBmsk(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  if (instruction.has("wrap"))
    return decodeLanewise<U32, U32, U32>(
        decoder, instruction, op,
        [](U32 a, U32 b) { return bitMask<true>(a, b); });
  decodeLanewise<U32, U32, U32>(decoder, instruction, op, [](U32 a, U32 b) {
    return bitMask<false>(a, b);
  });
}

/// Element `i` of 8 or 16 bits, as a signed or an unsigned value.
template <int bits, bool isSigned> static S32 element(U32 word, int i) {
  U32 moved = word << (32 - bits - bits * i);
  return isSigned ? S32(moved) >> (32 - bits) : S32(moved >> (32 - bits));
}

template <bool isASigned, bool isBSigned> static U32 dot4(U32 a, U32 b, U32 c) {
  for (int i = 0; i < 4; ++i)
    c += U32(element<8, isASigned>(a, i) * element<8, isBSigned>(b, i));
  return c;
}

template <bool isASigned, bool isBSigned, bool isHigh>
static U32 dot2(U32 a, U32 b, U32 c) {
  for (int i = 0; i < 2; ++i)
    c += U32(element<16, isASigned>(a, i) *
             element<8, isBSigned>(b, i + (isHigh ? 2 : 0)));
  return c;
}

template <bool isASigned, bool isBSigned>
static void decodeDotAs(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  auto decode = [&](auto function) {
    decodeLanewise<U32, U32, U32, U32>(decoder, instruction, op, function);
  };
  if (instruction.opcode == "dp4a")
    return decode([](U32 a, U32 b, U32 c) {
      return dot4<isASigned, isBSigned>(a, b, c);
    });
  if (instruction.has("hi"))
    return decode([](U32 a, U32 b, U32 c) {
      return dot2<isASigned, isBSigned, true>(a, b, c);
    });
  decode([](U32 a, U32 b, U32 c) {
    return dot2<isASigned, isBSigned, false>(a, b, c);
  });
}

static void decodeDot(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  bool isASigned = types[0] == ptx::ScalarType::s32;
  bool isBSigned = types[1] == ptx::ScalarType::s32;
  if (isASigned)
    return isBSigned ? decodeDotAs<true, true>(decoder, instruction, op)
                     : decodeDotAs<true, false>(decoder, instruction, op);
  return isBSigned ? decodeDotAs<false, true>(decoder, instruction, op)
                   : decodeDotAs<false, false>(decoder, instruction, op);
}

std::vector<Instruction> scalarBitInstructions() {
  return {
      {"bfe",
       decodeBfe,
       Unit::scalar,
       "32 and 64 bits, signed and unsigned",
       ", u32 s32 u64 s64 -> =t t u32 u32",
       {.poison = bitsPoison<0b110>}},
      {"bfi",
       decodeBfi,
       Unit::scalar,
       "b32 b64",
       ", b32 b64 -> =t t t u32 u32",
       {.poison = bitsPoison<0b1100>}},
      {"bfind", decodeBfind, Unit::scalar, "32 and 64 bits, .shiftamt",
       ", u32 s32 u64 s64 shiftamt -> =u32 t"},
      {"brev",
       decodeCount,
       Unit::scalar,
       "b32 b64",
       ", b32 b64 -> =t t",
       {.poison = bitsPoison<>}},
      {"clz", decodeCount, Unit::scalar, "b32 b64", ", b32 b64 -> =u32 t"},
      {"popc", decodeCount, Unit::scalar, "b32 b64", ", b32 b64 -> =u32 t"},
      {"fns", decodeFns, Unit::scalar, "b32", ", b32 -> =b32 b32 b32 s32"},
      {"szext", decodeSzext, Unit::scalar, ".wrap .clamp of u32 and s32",
       "wrap|clamp, u32 s32 -> =t t u32"},
      {"bmsk", decodeBmsk, Unit::scalar, ".wrap .clamp",
       "wrap|clamp, b32 -> =b32 u32 u32"},
      {"dp4a", decodeDot, Unit::scalar, "u32 and s32",
       ", u32 s32 -> =u32 t1 t2 u32"},
      {"dp2a", decodeDot, Unit::scalar, ".lo .hi of u32 and s32",
       "lo|hi, u32 s32 -> =u32 t1 t2 u32"},
  };
}

} // namespace kiln::sim
