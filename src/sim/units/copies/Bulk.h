// Bulk: what copies that run by themselves share: addresses, mbarriers, groups.
//
// A copy is a piece of work of its cluster (Cluster::enqueue). One that leaves
// shared memory is two: the reading of its source and the writing of its
// destination, because cp.async.bulk.wait_group.read waits for the first alone.
#pragma once

#include "sim/units/Execute.h"
#include "sim/units/memory/Access.h"
#include "sim/units/memory/Reduction.h"

namespace kiln::sim {

/// An address operand of a copy: a register and what is added to it.
struct AddressOperand {
  Reg base;
  std::int64_t offset = 0;

  static AddressOperand decode(Decoder &decoder, const ptx::Operand &operand);
  /// The address of a lane; ends the launch where it depends on bytes that
  /// nobody wrote.
  std::uint64_t read(Warp &warp, const Op &op, int lane) const;
};

/// Shared memory of one CTA, checked for its whole length.
struct SharedRange {
  Cta *owner = nullptr;
  std::uint32_t address = 0; ///< in the owner
  std::uint32_t bytes = 0;

  /// The same addresses of `cta`.
  ByteRange in(Cta &cta) const;
};

/// The `bytes` of shared memory that an operand means, generic or not.
SharedRange sharedRange(Warp &warp, const Op &op, const AddressOperand &operand,
                        std::uint64_t bytes, std::size_t alignment, int lane);

/// Copy, with the knowledge of which bytes were ever written.
/// Unwritten ones were read first where `from` says, else at `origin`.
void copyBytes(const ByteRange &to, const ByteRange &from, std::size_t bytes,
               std::uint32_t origin = 0);
/// The same, read first by `op` where nobody has before.
void copyBytes(Warp &warp, const Op &op, const ByteRange &to,
               const ByteRange &from, std::size_t bytes);

/// A copy has taken unwritten bytes to global memory.
void reportUnwritten(Warp &warp, const Op &op, int lane, std::uint32_t origin);

/// How a copy touches memory.
struct CopyAccess {
  bool isWrite = false;
  bool isThroughProxy = true;
  std::optional<Scope> atomic = std::nullopt; ///< of a reduction
};
/// Tell who watches what a copy of a lane reads or writes: shared memory of
/// `owner`, or global memory.
void tellCopy(Warp &warp, const Op &op, int lane, const Completion &over,
              Cta *owner, const ByteRun &run, const CopyAccess &how = {});
/// The same of a copy that counts on an mbarrier's current phase.
inline Completion onBarrier(Cta &cta, std::uint32_t barrier) {
  return {Completion::By::mbarrier, &cta, barrier};
}
/// A lane begins a copy that counts on it.
void tellCopyBegin(Warp &warp, const Op &op, int lane, Cta &cta,
                   std::uint32_t barrier);

/// Tell an mbarrier that bytes have arrived.
void completeTx(Warp &warp, const Op &op, int lane, Cta &cta,
                std::uint32_t barrier, std::uint32_t bytes);

/// The CTAs that a copy goes to: those of the mask, or the owner alone where
/// `mask` is no register.
std::uint32_t multicastMask(Warp &warp, const Op &op, Reg mask,
                            const Cta &owner, int lane);

/// Call `body(cta)` for each CTA of the mask.
template <typename Body>
void forEachCta(Cluster &cluster, std::uint32_t mask, Body &&body) {
  for (; mask; mask &= mask - 1)
    body(cluster.cta(std::countr_zero(mask)));
}

/// Work in two parts, for wait_group.read: `read`, and then `write`.
std::shared_ptr<Pending> enqueueStore(Cluster &cluster, const Op &op,
                                      std::function<void()> read,
                                      std::function<void()> write);

/// Add a copy to the open group.
void addToGroup(Cluster &cluster, BulkGroups &groups,
                std::shared_ptr<Pending> work);
/// Close the open group.
void commitGroup(Cluster &cluster, BulkGroups &groups);
/// Do all but the last `keep` groups.
void waitGroups(Cluster &cluster, BulkGroups &groups, std::size_t keep);
/// Read the sources of all but the last `keep` groups.
void waitReads(Cluster &cluster, BulkGroups &groups, std::size_t keep);

/// Reduce into global memory, one cluster at a time: the hardware's element is
/// atomic, and clusters run on host threads of their own.
void reduceGlobal(const Reduction &reduction, const ByteRange &to,
                  const std::uint8_t *from, std::size_t bytes);

/// st.async
void decodeAsyncStore(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op);
/// red.async
void decodeAsyncReduction(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op);
/// cp.async
void decodeAsyncCopy(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op);
/// cp.async.bulk and cp.reduce.async.bulk without a tensor map, and the groups
/// of all of them.
void decodeBulkCopy(Decoder &decoder, const ptx::Instruction &instruction,
                    Op &op);

} // namespace kiln::sim
