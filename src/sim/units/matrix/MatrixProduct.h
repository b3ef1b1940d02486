// MatrixProduct: the arithmetic of wgmma and tcgen05: operands from shared
// memory, the fragment layout, and the product itself.
#pragma once

#include "sim/machine/memory/Memory.h"
#include "sim/units/copies/Swizzled.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::sim {

/// Element types of the operands. Those of 6 and 4 bits are tcgen05's; sixteen
/// of them lie in the first bytes of 16, or 4-bit ones packed in all of them.
enum class OperandType : std::uint8_t {
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  s8,
  u8,
};

/// Types of the accumulator; f16 ones lie in pairs in a register.
enum class AccumulatorType : std::uint8_t { f32, f16, s32 };

struct ProductShape {
  int n = 0, k = 0;
  OperandType typeA = OperandType::f16, typeB = OperandType::f16;
  AccumulatorType typeD = AccumulatorType::f32;
  int scaleA = 1, scaleB = 1;                        ///< 1 or -1
  bool isATransposed = false, isBTransposed = false; ///< MN-major
  bool isSaturated = false;                          ///< s32: no wrapping
  bool isSparse = false; ///< of A half the elements are there, and where

  /// f16 and bf16, the types that may be MN-major.
  bool hasHalves() const { return typeA <= OperandType::bf16; }
  bool hasIntegers() const { return typeA >= OperandType::s8; }
  /// Registers of the accumulator.
  int registersD() const {
    return typeD == AccumulatorType::f16 ? n / 4 : n / 2;
  }
};

/// 32-bit registers of A where it is not in shared memory.
inline constexpr int kFragmentRegisters = 4;
/// Rows of A and of the accumulator that a warp holds.
inline constexpr int kWarpRows = 16;

int bytesOf(OperandType type);
/// Of "f16"; nothing where it is none.
std::optional<OperandType> operandType(std::string_view name);

/// Read ".m64n128k16.f32.f16.f16"; false with the reason where it is not
/// supported.
bool parseShape(std::vector<std::string> modifiers, ProductShape &shape,
                std::string &why);

/// An operand as its descriptor says it.
struct OperandView {
  std::uint32_t start = 0; ///< shared address
  std::uint32_t leading = 0, stride = 0;
  int swizzleBytes = 0;         ///< 0, 32, 64, 128
  bool hasWideAtoms = false;    ///< 128 bytes are swizzled in chunks of 32
  bool isPacked = false;        ///< two elements of 4 bits in a byte
  std::uint32_t baseOffset = 0; ///< where the pattern starts, in 128 bytes
  bool isA = false;
  bool isKMajor = true;
  int elementBytes = 2;
  int rows = 0, k = 0;

  /// The shared address of element (row, k), swizzled.
  std::uint32_t address(int row, int k) const;
  /// One past the largest address of the operand.
  std::uint32_t lastByte() const;
};
inline std::uint32_t OperandView::address(int row, int column) const {
  std::uint32_t offset;
  if (isKMajor) {
    std::uint32_t byte = static_cast<std::uint32_t>(column * elementBytes);
    if (swizzleBytes == 0)
      offset =
          row % 8 * 16 + row / 8 * stride + byte % 16 + byte / 16 * leading;
    else
      offset = row % 8 * swizzleBytes + row / 8 * stride + byte;
  } else {
    std::uint32_t perChunk = 16 / elementBytes;
    if (swizzleBytes == 0) {
      offset = row % perChunk * elementBytes + row / perChunk * stride +
               column % 8 * 16 + column / 8 * leading;
    } else {
      std::uint32_t perRow = swizzleBytes / elementBytes;
      int lines = hasWideAtoms ? 4 : 8; // of the pattern
      offset = row % perRow * elementBytes + row / perRow * leading +
               column % lines * swizzleBytes + column / lines * stride;
    }
  }
  // The pattern is counted from where the descriptor says it starts.
  std::uint32_t base = baseOffset << 7;
  if (hasWideAtoms)
    return swizzledWide(start + offset - base) + base;
  return swizzled(start + offset - base,
                  static_cast<std::uint32_t>(swizzleBytes)) +
         base;
}

OperandView viewOf(std::uint64_t descriptor, const ProductShape &shape,
                   bool isA);

/// Rows [first, first + count) of an operand as floats, [k][row]. False where
/// some byte was never written.
bool loadOperand(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 const ProductShape &shape, int first, int count, float *out);

/// B of a sparse product, as loadOperand gives it.
void loadColumns(const std::vector<std::uint8_t> &shared,
                 const OperandView &view, const ProductShape &shape,
                 float *out);
/// 16 rows of a sparse A with 0 for what is not there, from the elements that
/// are; both as loadOperand gives them. `metadata` has the register of the 32
/// lanes, of which `selector` tells those that count. `isAbsent` is [row][k].
void expandRows(const ProductShape &shape, const float *there,
                const std::uint32_t *metadata, int selector, float *out,
                std::uint8_t *isAbsent);
/// All rows of an operand as floats times `sign`: out[k * pitch + row].
/// `unwritten[row]` is set where some byte of a row was never written.
void loadColumns(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 OperandType type, float sign, float *out, int pitch,
                 std::vector<bool> &unwritten);
/// Element `i` of bytes that elements fill from the first one on.
float elementOf(const std::uint8_t *bytes, int i, OperandType type);
/// A scale of 8 bits: ue8m0 or ue4m3.
float scaleOf(std::uint8_t bits, bool isPower);

/// sums[column * pitch + lane] (+)= a[k * pitchA + lane] * b[k * pitchB +
/// column], as bits of floats; `lanes` is a multiple of 32, `columns` of 4.
void addOuterProducts(int columns, int lanes, int k, const float *a, int pitchA,
                      const float *b, int pitchB, std::uint32_t *sums,
                      int pitch, bool isAdded);

/// The same 16 rows of A from registers, 32 lanes each.
void loadFragment(const std::uint32_t *const *registers,
                  const ProductShape &shape, float *out);

/// One warp's 16 rows: registers (registersD() of them, 32 lanes each) = a * b
/// (+ registers), of operands as they were loaded; `isAbsent` is that of a
/// sparse A.
void multiplyWarp(const ProductShape &shape, bool isFast, const float *a,
                  const float *b, std::uint32_t *const *registers, bool isAdded,
                  const std::uint8_t *isAbsent = nullptr);

} // namespace kiln::sim
