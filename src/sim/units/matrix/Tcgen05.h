// Tcgen05: what the instructions of tensor memory share.
//
// Handlers are in a file for each kind: Tcgen05Allocation, Tcgen05Move (ld and
// st), Tcgen05Product (mma), Tcgen05Copy (cp and shift), Tcgen05Commit (commit,
// fences and waits). Tcgen05Instructions has the row of the registry.
#pragma once

#include "sim/units/copies/Bulk.h"

namespace kiln::sim {

/// An address of tensor memory that all active lanes give alike; ends the
/// launch where they do not, or where it comes from bytes that nobody wrote.
TensorAddress tensorAddress(Warp &warp, const Op &op,
                            const AddressOperand &operand, LaneMask active);

/// End the launch where lanes or columns are not there, or nobody has
/// allocated them in that CTA. `what`: "operand A".
void checkTensorRange(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
                      const TensorRange &range, const char *what);

/// The CTAs of a cta_group, the even one first; one for cta_group::1. Ends the
/// launch where there is no pair, or where the kernel has used the other
/// cta_group.
std::vector<Cta *> ctasOf(Warp &warp, const Op &op, LaneMask lanes, int group);

/// Where a word of tensor memory that nobody has written was read first; by
/// `op`, where nobody has before.
std::uint32_t originOf(Warp &warp, const Op &op, const TensorMemory &memory,
                       std::uint32_t lane, std::uint32_t column);

/// 1 or 2, as the instruction says.
int ctaGroupOf(const ptx::Instruction &instruction);

/// Tell who watches what an operation of lanes reads or writes: operands in
/// shared memory, and tensor memory.
void tellOperands(Warp &warp, const Op &op, LaneMask lanes, Cta &cta,
                  const std::vector<PageCells> &cells);
void tellTensorAccess(Warp &warp, const Op &op, LaneMask lanes,
                      Completion::By by, bool isWrite, Cta &cta,
                      std::span<const TensorRange> ranges);

/// Put an operation behind those that the warp's threads have issued.
void enqueueOperation(Warp &warp, std::function<void()> work);

void decodeTensorAlloc(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);
void decodeTensorDealloc(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op);
void decodeTensorRelinquish(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op);
void decodeTensorMove(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op);
/// tcgen05.ld.red: the smallest or largest of the columns that a lane loads.
struct TensorReduction {
  ptx::ScalarType type = ptx::ScalarType::f32;
  bool isMax = false, isAbsolute = false;
  bool isNan = false; ///< a NaN is the result, where there is one
};
TensorReduction decodeTensorReduction(const Decoder &decoder,
                                      const ptx::Instruction &instruction);
/// Of the registers of the op's list into its dst.
void reduceRegisters(Warp &warp, const Op &op,
                     const TensorReduction &reduction);
void decodeTensorWait(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op);
void decodeTensorProduct(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op);
void decodeTensorCopy(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op);
void decodeTensorShift(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);
void decodeTensorCommit(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op);
void decodeTensorFence(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);

} // namespace kiln::sim
