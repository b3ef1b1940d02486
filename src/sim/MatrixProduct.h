// MatrixProduct: the arithmetic of wgmma: operands from shared memory, the
// fragment layout, and the product itself.
#pragma once

#include "sim/Memory.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::sim {

/// Element types of the operands.
enum class OperandType : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8 };

struct ProductShape {
  int n = 0, k = 0;
  OperandType typeA = OperandType::f16, typeB = OperandType::f16;
  int scaleA = 1, scaleB = 1;                        ///< 1 or -1
  bool isATransposed = false, isBTransposed = false; ///< MN-major
  bool isInteger = false;                            ///< s32 accumulators
};

/// Read ".m64n128k16.f32.f16.f16"; false with the reason where it is not
/// supported.
bool parseShape(const std::vector<std::string> &modifiers, ProductShape &shape,
                std::string &why);

/// An operand as its descriptor says it.
struct OperandView {
  std::uint32_t start = 0; ///< shared address
  std::uint32_t leading = 0, stride = 0;
  int swizzleBytes = 0; ///< 0, 32, 64, 128
  bool isKMajor = true;
  int elementBytes = 2;
  int rows = 0, k = 0;

  /// The shared address of element (row, k), swizzled.
  std::uint32_t address(int row, int k) const;
  /// One past the largest address of the operand.
  std::uint32_t lastByte() const;
};
OperandView viewOf(std::uint64_t descriptor, const ProductShape &shape,
                   bool isA);

/// Rows [first, first + count) of an operand as floats: A as [row][k], B as
/// [k][row]. False where some byte was never written.
bool loadOperand(const std::vector<std::uint8_t> &shared,
                 const ValidBits &valid, const OperandView &view,
                 const ProductShape &shape, int first, int count, float *out);

/// One warp's 16 rows: registers (n / 2 of them, 32 lanes each) = a * b
/// (+ registers). `a` is [16][k], `b` is [k][n].
void multiplyWarp(const ProductShape &shape, const float *a, const float *b,
                  float *const *registers, bool isAdded);

} // namespace kiln::sim
