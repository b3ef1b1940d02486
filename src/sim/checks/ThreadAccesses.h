// ThreadAccesses: what the lanes of an instruction touch, cell by cell.
//
// Lanes that share a cell in a row are one access to the race detector.
#pragma once

#include "sim/checks/RaceDetector.h"
#include "sim/machine/events/Events.h"

namespace kiln::sim {

class ThreadAccesses {
public:
  explicit ThreadAccesses(RaceDetector &races) : races_(races) {}

  void take(const ThreadAccess &told);
  /// Put one that had waited into the shadow (RaceDeferred).
  /// `owner`: of shared memory; null: global memory.
  void restore(const LoggedAccess &logged, const Op &op,
               const std::uint64_t *addresses, Cta *owner);

private:
  Access made(bool isWrite) const;
  /// Lanes whose addresses lie in a few runs. False: in too many, and nothing is
  /// done.
  bool takeAlike(const ThreadAccess *told, const AlikeLanes &alike);
  /// Lanes that touch the same bytes, or theirs in turn.
  void takeRun(const ThreadAccess *told, const AlikeLanes &alike,
               Access &access, LaneMask lanes, bool isInTurn);
  /// What they write to those bytes.
  void keepRun(const ThreadAccess &told, const AlikeLanes &alike,
               LaneMask lanes, ShadowedMemory &memory, std::uint64_t begin,
               std::uint64_t end);
  /// Alike cells of one page.
  void touchPart(Access &access, const AlikeLanes &alike,
                 ShadowedMemory &memory, std::uint64_t page,
                 const Layer &layer);
  /// `value`: what is written, where it is kept.
  void add(const LaneAccess &one, const std::uint8_t *value);
  void flush();
  /// Those lanes of a strong access hand over, and take what others have.
  void synchronise();
  /// The value of the run's bytes from `first` on; what lies behind them comes
  /// later.
  void keep(std::uint32_t first, const std::uint8_t *value) {
    std::memcpy(&value_[first], value, Shadow::kCellBytes);
  }

  RaceDetector &races_;
  Warp *warp_ = nullptr;
  const Op *op_ = nullptr;
  bool isKept_ = false; ///< values are told
  const LoggedAccess *logged_ = nullptr; ///< one that is restored

  /// Lanes that touch one cell, not told yet.
  struct Run {
    ShadowedMemory *memory = nullptr; ///< null: none
    std::uint64_t cell = 0;
    std::uint32_t first = 0, end = 0; ///< bytes of it
    std::uint32_t bytes = 0;          ///< of each lane
    int lane = 0;                     ///< the last one
    LaneMask lanes = 0;
    bool isSplit = false; ///< the lanes took the bytes in turn
    bool isWrite = false;
    bool isSame = false; ///< all of them write what stands there
  };
  Run run_;
  /// Of the run, where it is kept; copies of a whole cell may begin anywhere.
  std::array<std::uint8_t, 2 * Shadow::kCellBytes> value_;
  Access reads_, writes_; ///< of the instruction, made when first needed
};

} // namespace kiln::sim
