// WgmmaInstruction: wgmma.mma_async: what it takes, and its text.
//
// The steps along K are inline assembly whose accumulator registers are tied in
// and out, so that LLVM sees one chain of values and ptxas one set of
// registers.
#pragma once

#include "dsl/tensorcore/SharedOperand.h"
#include "kiln/language/tensorcore/wgmma.h"

namespace kiln {

inline constexpr int kInstructionRows = 64;

/// Everything about the instructions of one product but their operands.
struct WgmmaShape {
  Type accumulator, a, b;
  int columns; ///< N of one instruction
  bool isAInRegisters = false;
  bool isAKMajor = true, isBKMajor = true;
  MmaOptions options = {};

  /// K of one instruction.
  int k() const { return kInstructionKBytes / size_bytes(a); }
  /// 32-bit registers of the accumulator of one instruction.
  int accumulatorRegisters() const {
    return columns * size_bytes(accumulator) / 8;
  }
  /// Operands of A (4 registers or 1 descriptor) and the descriptor of B.
  int operandsOfAStep() const { return isAInRegisters ? 5 : 2; }
  /// The text of `steps` instructions along K: the accumulator first, then the
  /// operands of each, whether the first adds and, of more than one, a 1.
  std::string text(int steps) const;
  /// The constraints of what follows the accumulator.
  std::string constraints(int steps) const;
};

/// Refuse a pair of types, an accumulator type, an N or a major the instruction
/// does not have.
void checkWgmma(const WgmmaShape &shape, const Where &where);

/// Refuse an N the instruction does not have for operands of `type`.
void checkWgmmaColumns(Type type, int columns, const Where &where);

/// Inline assembly over tied registers of one type: `registers` is replaced by
/// what comes out.
void tiedAsm(KernelBuilder::State &state, const std::string &text,
             const std::string &moreConstraints,
             llvm::MutableArrayRef<mlir::Value> registers,
             llvm::ArrayRef<mlir::Value> moreOperands, const Where &where);

} // namespace kiln
