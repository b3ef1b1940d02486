// WgmmaInstruction: one wgmma.mma_async: what it takes, and its text.
//
// The instruction is inline assembly whose accumulator registers are tied in
// and out, so that LLVM sees one chain of values and ptxas one set of
// registers.
#pragma once

#include "dsl/State.h"
#include "kiln/wgmma.h"

namespace kiln {

/// Bytes of K that one instruction consumes, for every type.
inline constexpr int kInstructionKBytes = 32;
inline constexpr int kInstructionRows = 64;

/// One operand in shared memory, as the instruction's descriptor says it (PTX,
/// "Matrix Descriptor Format").
///
/// K-major (the K extent is contiguous): rows of one swizzle width, eight rows
/// form an atom, `stride` bytes from one atom to the next.
/// MN-major: the M or N extent is contiguous; an atom is one swizzle width of
/// it by eight k; `stride` bytes to the next eight k, `leading` bytes to the
/// next width.
/// Without a swizzle the atom is a core matrix of 8 rows by 16 bytes: `leading`
/// bytes from one to the next along K, `stride` bytes along M or N.
struct WgmmaOperand {
  const SharedTile &tile;
  bool isKMajor;

  const TileLayout &layout() const { return tile.layout(); }
  Type type() const { return layout().type; }
  int k() const { return isKMajor ? layout().columns : layout().rows; }
  int mn() const { return isKMajor ? layout().rows : layout().columns; }
  int leadingBytes() const;
  int strideBytes() const;
  /// Bytes from the start of the tile to element (mn, k), both multiples of
  /// what an instruction covers.
  int offsetBytes(int mn, int k) const;
  /// All fields but the address.
  std::uint64_t constantFields() const;
};

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
  /// The text, the accumulator first, then the operands of A (4 registers or 1
  /// descriptor), the descriptor of B and whether to add.
  std::string text() const;
  /// The constraints of what follows the accumulator.
  std::string constraints() const;
};

/// Refuse a pair of types, an accumulator type, an N or a major the instruction
/// does not have.
void checkWgmma(const WgmmaShape &shape, const Where &where);

/// Refuse an N the instruction does not have for operands of `type`.
void checkWgmmaColumns(Type type, int columns, const Where &where);

/// The descriptor of an operand's first element.
mlir::Value wgmmaDescriptor(KernelBuilder::State &state,
                            const WgmmaOperand &operand, const Where &where);

/// Inline assembly over tied registers of one type: `registers` is replaced by
/// what comes out.
void tiedAsm(KernelBuilder::State &state, const std::string &text,
             const std::string &moreConstraints,
             llvm::MutableArrayRef<mlir::Value> registers,
             llvm::ArrayRef<mlir::Value> moreOperands, const Where &where);

} // namespace kiln
