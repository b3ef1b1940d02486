// Effect: what an instruction does outside the registers of its lanes, in the
// few words that the scheduler, the deadlock's ledger, the timeline and the
// statistics need.
//
// Handlers know everything about their instruction and nobody else does; this
// is the part of it that others may ask for.
#pragma once

#include "sim/program/InstructionSet.h"

namespace kiln::sim {

enum class EffectKind : std::uint8_t {
  none, ///< registers alone, or nothing
  sleep,
  load,
  store,
  atomic,
  barrierInit,   ///< mbarrier
  barrierArrive, ///< mbarrier: arrivals and bytes that are expected
  barrierWait,   ///< mbarrier: test_wait, try_wait
  copyIn,        ///< to shared memory, signals an mbarrier where it has one
  copyOut,       ///< from shared to global memory
  copyCommit,
  copyWait,
  product,       ///< wgmma
  tensorProduct, ///< tcgen05.mma
  productCommit,
  productWait,
  ctaBarrier,
  warpBarrier,
  clusterArrive,
  clusterWait,
  registers, ///< setmaxnreg
  mapCopy,   ///< tensormap.cp_fenceproxy
  other,     ///< anything else that others may notice
};

/// Where the time of a run goes.
enum class CostClass : std::uint8_t { scalar, memory, tma, wgmma, barrier };
inline constexpr int kCostClasses = 5;

struct Effect {
  EffectKind kind = EffectKind::none;
  CostClass cost = CostClass::scalar;
  bool isAligned = false;        ///< for whole warps
  bool isStrong = false;         ///< ordered, volatile or atomic
  bool isTensor = false;         ///< a copy of a tensor map's box
  bool isMulticast = false;      ///< to several CTAs
  bool isReduction = false;      ///< a copy that adds, a barrier that votes
  bool isSwap = false;           ///< an atomic that writes where it compares
  bool isGivingUp = false;       ///< setmaxnreg.dec
  bool isClusterRequest = false; ///< clusterlaunchcontrol.try_cancel
  bool isArrival = false;        ///< at a barrier of the CTA, without waiting
  bool isTrigger = false;        ///< griddepcontrol.launch_dependents
  bool isPrimaryWait = false;    ///< griddepcontrol.wait
  bool isCommit = false; ///< an arrival when the thread's products are over
  Space space = Space::generic;
  int bytes = 0; ///< of a load, store or atomic
  /// The memory, the mbarrier, the destination of a copy, descriptor A.
  Reg address;
  std::int64_t offset = 0;
  /// A parity, the tensor map, descriptor B.
  Reg operand;
  std::int64_t operandOffset = 0;
  /// The mbarrier of a copy.
  Reg barrier;
  std::int64_t barrierOffset = 0;
  /// Tell the order of accesses to some elements of a load behind it
  /// (Op::isMasked).
  void (*tellOrder)(Warp &warp, const Op &op, LaneMask lanes,
                    std::uint32_t elements) = nullptr;
  Reg size;  ///< bytes of a bulk copy without a tensor map
  Reg shape; ///< the instruction descriptor of a tcgen05.mma
  Reg mask;  ///< CTAs that a tcgen05.commit tells; not valid: one
  /// Groups that may stay in flight; columns of a wgmma; CTAs of a tcgen05.mma.
  std::int64_t count = 0;

  /// Nobody but the executing lanes can tell whether it was executed; an atomic
  /// that changes nothing is quiet too, which only its handler knows.
  bool isQuiet() const {
    return kind == EffectKind::none || kind == EffectKind::sleep ||
           kind == EffectKind::load || kind == EffectKind::atomic ||
           kind == EffectKind::barrierWait || kind == EffectKind::warpBarrier;
  }
  /// A wait's loop reads so what it waits for.
  bool isPoll() const {
    return (kind == EffectKind::load && space != Space::param &&
            space != Space::local) ||
           kind == EffectKind::atomic || kind == EffectKind::barrierWait;
  }
};

// For those who describe effects.

/// The first number among the operands; 0 where there is none.
std::int64_t firstImmediate(const ptx::Instruction &instruction);
/// The address operand number `n` (from 0); false where there is none.
bool takeAddress(Decoder &decoder, const ptx::Instruction &instruction, int n,
                 Reg &reg, std::int64_t &offset);

/// What the row says, with the registers of the instruction.
Effect effectOf(Decoder &decoder, const ptx::Instruction &instruction,
                const Instruction &row);

} // namespace kiln::sim
