// Float: what the float instructions share: rounding modes, flushing, clamping.
#pragma once

#include "sim/units/Execute.h"
#include "support/Half.h"

#include <cfenv>

namespace kiln::sim {

/// While it lives, the host rounds in one of its modes. Loads and stores of
/// registers, which the compiler moves over neither end, keep the arithmetic
/// between them.
template <int mode> class HostRounding {
public:
  HostRounding() { set(mode); }
  HostRounding(const HostRounding &) = delete;
  ~HostRounding() { set(FE_TONEAREST); }

private:
  static void set(int to) {
#if defined(__x86_64__)
    // Vector arithmetic has a register of its own, and what the library
    // emulates where there is no fused multiplication asks for the other one
    // too.
    if (hasFusedMultiply()) {
      constexpr unsigned kModes = 0x6000, kAboveOther = 3;
      asm volatile("" ::: "memory");
      _mm_setcsr((_mm_getcsr() & ~kModes) | static_cast<unsigned>(to)
                                                << kAboveOther);
      asm volatile("" ::: "memory");
      return;
    }
#endif
    std::fesetround(to);
  }
};

/// Run `inner` in a rounding mode of the host.
template <Handler inner, int mode>
Step roundedBy(Warp &warp, const Op &op, LaneMask active) {
  HostRounding<mode> rounding;
  return inner(warp, op, active);
}

/// `inner` in the rounding mode that the instruction names; rn where none.
/// `isWide`: compiled for wide vectors where the host has them.
template <Handler inner, bool isWide = true>
Handler roundedHandler(const ptx::Instruction &instruction) {
  if (instruction.has("rz"))
    return roundedBy<inner, FE_TOWARDZERO>;
  if (instruction.has("rm"))
    return roundedBy<inner, FE_DOWNWARD>;
  if (instruction.has("rp"))
    return roundedBy<inner, FE_UPWARD>;
  return isWide ? widest<inner>() : inner;
}

/// .sat: within 0 and 1; NaN and -0 become +0.
template <typename T> inline T saturate(T value) {
  T positive = value > T(0) ? value : T(0);
  return positive < T(1) ? positive : T(1);
}

/// .relu: negative values become +0; NaN stays.
template <typename T> inline T rectify(T value) {
  return value > T(0) || value != value ? value : T(0);
}

/// Apply `F`, from 16 bits to 16 bits, to both halves of its operands.
template <typename F, typename... Bits>
inline std::uint32_t onHalves(F function, Bits... bits) {
  std::uint32_t low = function(std::uint16_t(bits)...);
  std::uint32_t high = function(std::uint16_t(bits >> 16)...);
  return high << 16 | low;
}

/// Read and write one of the two 16-bit types.
template <bool isBfloat> inline float widen(std::uint16_t bits) {
  return isBfloat ? bfloatToFloat(bits) : halfToFloat(bits);
}
template <bool isBfloat> inline std::uint16_t narrow(float value) {
  return isBfloat ? floatToBfloat(value) : floatToHalf(value);
}

/// Decode a function of 16-bit values for f16 and bf16, or of their pairs.
template <typename F>
void decodeHalves1(Decoder &decoder, const ptx::Instruction &instruction,
                   Op &op, bool isPair, F) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  if (isPair)
    return decodeLanewise<U32, U32>(decoder, instruction, op,
                                    [](U32 a) { return onHalves(F{}, a); });
  decodeLanewise<U16, U16>(decoder, instruction, op,
                           [](U16 a) { return F{}(a); });
}

template <typename F>
void decodeHalves2(Decoder &decoder, const ptx::Instruction &instruction,
                   Op &op, bool isPair, F) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  if (isPair)
    return decodeLanewise<U32, U32, U32>(
        decoder, instruction, op,
        [](U32 a, U32 b) { return onHalves(F{}, a, b); });
  decodeLanewise<U16, U16, U16>(decoder, instruction, op,
                                [](U16 a, U16 b) { return F{}(a, b); });
}

template <typename F>
void decodeHalves3(Decoder &decoder, const ptx::Instruction &instruction,
                   Op &op, bool isPair, F) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  if (isPair)
    return decodeLanewise<U32, U32, U32, U32>(
        decoder, instruction, op,
        [](U32 a, U32 b, U32 c) { return onHalves(F{}, a, b, c); });
  decodeLanewise<U16, U16, U16, U16>(
      decoder, instruction, op,
      [](U16 a, U16 b, U16 c) { return F{}(a, b, c); });
}

inline bool isPairType(ptx::ScalarType type) {
  return type == ptx::ScalarType::f16x2 || type == ptx::ScalarType::bf16x2;
}
inline bool isBfloatType(ptx::ScalarType type) {
  return type == ptx::ScalarType::bf16 || type == ptx::ScalarType::bf16x2;
}
inline bool isHalfType(ptx::ScalarType type) {
  return type == ptx::ScalarType::f16 || type == ptx::ScalarType::f16x2 ||
         isBfloatType(type);
}

std::vector<Instruction> floatApproxInstructions();
std::vector<Instruction> floatSignInstructions();

} // namespace kiln::sim
