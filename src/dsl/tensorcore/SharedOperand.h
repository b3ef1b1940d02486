// SharedOperand: an operand of a product in shared memory, as the descriptors
// of wgmma and tcgen05 say it (PTX, "Matrix Descriptor Format").
#pragma once

#include "dsl/kernel/State.h"

namespace kiln {

/// Bytes of K that one instruction of either tensor core takes, of every type
/// of 8 bits and more.
inline constexpr int kInstructionKBytes = 32;

/// K-major (the K extent is contiguous): rows of one swizzle width, eight rows
/// form an atom, `stride` bytes from one atom to the next.
/// MN-major: the M or N extent is contiguous; an atom is one swizzle width of
/// it by eight k; `stride` bytes to the next eight k, `leading` bytes to the
/// next width.
/// Without a swizzle the atom is a core matrix of 8 rows by 16 bytes: `leading`
/// bytes from one to the next along K, `stride` bytes along M or N.
struct SharedOperand {
  const SharedTile &tile;
  bool isKMajor;

  const TileLayout &layout() const { return tile.layout(); }
  Type type() const { return layout().type; }
  int leadingBytes() const;
  int strideBytes() const;
  /// Bytes from the start of the tile to element (mn, k), both multiples of
  /// what an instruction covers.
  int offsetBytes(int mn, int k) const;

  /// All fields but the address, for each tensor core.
  std::uint64_t wgmmaFields() const;
  std::uint64_t tcgen05Fields() const;
};

/// Refuse an operand that no descriptor can describe.
void checkOperand(const SharedOperand &operand, const char *which,
                  const Where &where);

/// The descriptor of an operand's first element.
mlir::Value descriptorOf(KernelBuilder::State &state,
                         const SharedOperand &operand, std::uint64_t fields,
                         const Where &where);

/// A descriptor moved on by `bytes`.
mlir::Value stepped(KernelBuilder::State &state, mlir::Value descriptor,
                    int bytes, const Where &where);

} // namespace kiln
