// MmaShapes: the shapes and types of mma.sync, and where its elements live.
//
// A fragment is a matrix spread over the registers of 32 lanes. With g = lane /
// 4, t = lane % 4 and E elements in a register, register i of a lane holds
//
//     A   row g + 8 * (i % 2),  columns E * t ... of block i / 2 of 4 E columns
//     B   rows E * t ... of block i of 4 E rows,  column g
//     C   row g + 8 * (i / 2),  column 2 * t + i % 2     (i: an element)
//
// for every type; where A has 8 rows there is no row g + 8.
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
};
/// The element of a fragment that is number `index` of a lane: registers in
/// order, each from its low bits up.
MatrixElement elementA(const MmaShape &shape, int lane, int index);
MatrixElement elementB(const MmaShape &shape, int lane, int index);
MatrixElement elementC(int lane, int index);

} // namespace kiln::sim
