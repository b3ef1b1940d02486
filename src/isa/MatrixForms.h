// MatrixForms: the shapes and types of the tensor core's instructions.
//
// A row has the shapes that an instruction has for some types of its operands;
// whoever parses, builds or executes one asks here.
#pragma once

#include "kiln/base/types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace KILN_API kiln {
namespace isa {

struct MatrixForm {
  /// "mma", "mma.sp", "wmma", "wgmma", "wgmma.sp", "tcgen05"
  std::string_view instruction;
  /// Behind `.kind::`; empty: the instruction names none.
  std::string_view kind;
  /// "m16n8k8 m16n8k16". Of wgmma "m64k16", whose N is a multiple of 8 up to
  /// 256, and of tcgen05 "k16", whose M and N the descriptor says.
  std::string_view shapes;
  std::string_view operands; ///< types of A and B: "e4m3 e5m2"
  /// A and B may be of different types of the row.
  bool isMixed;
  std::string_view sums; ///< types of C and D
  /// What the kinds with block scales take: type and scales of a row,
  /// "ue8m0:2 ue4m3:4".
  std::string_view scales = {};

  bool hasShape(std::string_view shape) const;
  bool hasOperands(std::string_view a, std::string_view b) const;
  bool hasSum(std::string_view type) const;
  /// Whether a row of A has so many scales of that type.
  bool hasScales(std::string_view type, int count) const;
};

std::span<const MatrixForm> matrixForms();

/// The row of an instruction with operands of those types, whatever the shape.
/// Null: there is none.
const MatrixForm *findMatrixForm(std::string_view instruction,
                                 std::string_view kind, std::string_view a,
                                 std::string_view b);

/// How the instruction descriptor of tcgen05.mma says an operand's type.
struct TensorOperand {
  std::string_view kind, type;
  std::uint32_t code;
};
/// Null: the kind has no such type, or no such code.
const TensorOperand *findTensorOperand(std::string_view kind,
                                       std::string_view type);
const TensorOperand *findTensorOperand(std::string_view kind,
                                       std::uint32_t code);

/// A type's name in PTX: i8 is s8 there, and i32 is s32.
std::string_view ptxName(Type type);
/// "f16, bf16, tf32, e4m3, e5m2, i8 and u8": the operands of an instruction
/// that are types of the language.
std::string matrixOperands(std::string_view instruction);

/// M, N and K of "m16n8k16"; 0 of what is not named. Nothing: it is no shape.
struct MatrixSizes {
  int m = 0, n = 0, k = 0;
};
std::optional<MatrixSizes> readMatrixSizes(std::string_view shape);

/// Whether wgmma has that many columns.
bool isWgmmaWidth(int columns, bool isInteger);

} // namespace isa
} // namespace kiln
