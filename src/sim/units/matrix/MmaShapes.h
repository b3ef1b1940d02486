// MmaShapes: the shapes and types of mma.sync, and where its elements live.
//
// A fragment is a matrix spread over the registers of 32 lanes. With g = lane /
// 4, t = lane % 4 and E elements in a register, register i of a lane holds
//
//     A   row g + 8 * (i % 2),  columns E * t ... of block i / 2 of 4 E columns
//     B   rows E * t ... of block i of 4 E rows,  column g
//     C   row g + 8 * (i / 2),  column 2 * t + i % 2     (i: an element)
//
// for every type; where A has 8 rows there is no row g + 8. Of a sparse product
// A has half the columns, those that are there. m8n8k4 of f16 is four products,
// each of the lanes 4 * q to 4 * q + 3 and the same of the upper half-warp.
#pragma once

#include "ptx/Ast.h"

#include <string>
#include <vector>

namespace kiln::sim {

/// One multiplication D = A * B + C: A is m x k, B is k x n.
struct MmaShape {
  int m = 0, n = 0, k = 0;
  ptx::ScalarType typeA = ptx::ScalarType::f16, typeB = ptx::ScalarType::f16;
  ptx::ScalarType typeC = ptx::ScalarType::f32, typeD = ptx::ScalarType::f32;
  bool isSaturated = false; ///< integers are clamped and do not wrap
  bool isSparse = false;    ///< of A half the elements are there, and where
  bool isExclusive = false; ///< of bits: .xor, else .and
  bool isQuarters = false;  ///< m8n8k4 of f16
  bool isARowMajor = true, isBColumnMajor = true; ///< of quarters
  int scales = 0; ///< of a row of A and of a column of B; 0: it has none
  ptx::ScalarType scaleType = ptx::ScalarType::ue8m0;
  /// Bits that an element of A or B takes: those of 6 and 4 bits a byte, but
  /// where all operands have 4.
  int elementBits = 16;

  /// Columns of A that are there.
  int columnsA() const { return isSparse ? k / 2 : k; }
  /// Columns of A among which half are there: 2 of 4, or of 8, or 1 of 2.
  int groupColumns() const {
    return elementBits == 32 ? 2 : elementBits == 4 ? 8 : 4;
  }
  /// The largest selector of the lanes whose metadata count.
  int lastSelector() const;
  /// Its operands are whole, and of types that have a byte or more.
  bool isPlain() const;
  /// Elements in one register of A or B, and of an accumulator.
  int packed() const;
  static int packedAccumulators(ptx::ScalarType type);
  /// Bytes of a register: 8 for f64.
  int registerBytes() const;
  int registersA() const;
  int registersB() const;
  int registersOf(ptx::ScalarType accumulator) const;
};

/// Read ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"; false with the reason
/// where it is not supported.
bool parseMma(const std::vector<std::string> &modifiers, MmaShape &shape,
              std::string &why);

struct MatrixElement {
  int row, column;
  int quarter = 0;
};
/// The element of a fragment that is number `index` of a lane: registers in
/// order, each from its low bits up.
MatrixElement elementA(const MmaShape &shape, int lane, int index);
MatrixElement elementB(const MmaShape &shape, int lane, int index);
MatrixElement elementC(int lane, int index);
MatrixElement elementC(const MmaShape &shape, int lane, int index);

} // namespace kiln::sim
