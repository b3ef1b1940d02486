// Tcgen05Descriptor: what the descriptors of tcgen05 say: the instruction's
// shape and types, and how an operand lies in shared memory.
#pragma once

#include "sim/units/matrix/MatrixProduct.h"

namespace kiln::sim {

/// The `.kind` of a tcgen05.mma.
enum class TensorKind : std::uint8_t {
  f16,
  tf32,
  f8f6f4,
  i8,
  mxf8f6f4,
  mxf4,
  mxf4nvf4,
};

/// What an instruction says by its modifiers.
struct TensorForm {
  TensorKind kind = TensorKind::f16;
  int group = 1;
  bool isWeightStationary = false; ///< .ws
  bool isAInTensor = false;
  bool isSparse = false;  ///< of A half the elements are there, and where
  bool isShifted = false; ///< row r of A is what lane r + 1 has
  int blockElements = 0; ///< of K with one scale; 0: no scales

  bool isBlockScaled() const { return blockElements != 0; }
};

/// An instruction descriptor, read by the rules of its form.
struct TensorShape {
  int m = 0, n = 0, k = 0;
  OperandType typeA = OperandType::f16, typeB = OperandType::f16;
  AccumulatorType typeD = AccumulatorType::f32;
  bool isANegated = false, isBNegated = false;
  bool isATransposed = false, isBTransposed = false; ///< MN-major
  bool isSaturated = false;                          ///< s32: no wrapping
  bool isPacked = false;      ///< operands of 4 bits, two in a byte
  bool hasPowers = false;     ///< scales are ue8m0, else ue4m3
  int scaleA = 0, scaleB = 0; ///< the first byte of their scales
  int selector = 0; ///< of a sparse A: which column has its metadata

  /// Columns of A that are there.
  int columnsA(const TensorForm &form) const {
    return form.isSparse ? k / 2 : k;
  }
  /// Bytes that an element of A takes of those 32 that a row has.
  int elementBits() const { return 8 * bytesOf(typeA) / (isPacked ? 2 : 1); }

  /// Rows that each CTA of the group holds.
  int rows(const TensorForm &form) const { return m / form.group; }
};

/// Columns of D that an instruction descriptor says.
inline int columnsOf(std::uint32_t bits) {
  return static_cast<int>(bits >> 17 & 0x3f) * 8;
}

/// False with the reason where a field is not one that the form has.
bool readInstruction(std::uint32_t bits, const TensorForm &form,
                     TensorShape &shape, std::string &why);

/// How a tcgen05 descriptor of shared memory says an operand lies; without its
/// rows and columns. False with the reason where it says what there is not.
bool readLayout(std::uint64_t descriptor, OperandView &view, std::string &why);

} // namespace kiln::sim
