// Profiler: counts what the instructions of a cluster cost.
//
// It listens to instructions and accesses. What an instruction touches is told
// while it is executed, and taken in when it has been: one that is blocked will
// be executed again, and counts once.
#pragma once

#include "sim/machine/events/Watchers.h"
#include "sim/profile/InstructionCost.h"
#include "sim/program/InstructionSet.h"
#include "sim/report/Recorder.h"

namespace kiln::sim {

class Profiler final : public Watcher {
public:
  /// `operations`: of each instruction of the program.
  Profiler(const Code &code, const std::vector<Operations> &operations);

  EventMask interests() const override {
    return maskOf(EventKind::instruction, EventKind::skip, EventKind::access);
  }
  using Watcher::on;
  void on(const InstructionBegin &event) override;
  void on(const InstructionSkip &event) override;
  void on(const InstructionEnd &event) override;
  void on(const ThreadAccess &event) override;
  void on(const AsyncAccess &event) override;

  /// Everything, when the cluster has ended or was stopped.
  LaunchCost take();

private:
  /// What the instruction that is executed has touched so far.
  struct Touched {
    std::vector<LaneAccess> global, shared, remote, local;
    // Of bulk copies, which are counted as copies.
    std::uint64_t sources = 0, targets = 0, bytes = 0, sectors = 0;
    std::uint64_t operandBytes = 0;
    bool isProduct = false; ///< a wgmma that its last warp has issued
  };

  InstructionCost &costOf(const Op &op);
  void touch(const Warp &warp, const LaneAccess &access);
  /// Accesses that nobody tells of: of local memory, and of masked loads.
  void touchUntold(Warp &warp, const Op &op, LaneMask lanes);
  void touchCopy(const AsyncAccess &event);
  void countBranch(InstructionCost &cost, const Op &op, LaneMask lanes,
                   LaneMask together);
  void countGlobal(InstructionCost &cost, AccessShape shape);
  void countLocal(InstructionCost &cost, AccessShape shape);
  void countShared(InstructionCost &cost, const Op &op, AccessShape shape);
  void countCopies(InstructionCost &cost);
  void countOperands(InstructionCost &cost, const Op &op);
  void countOperations(InstructionCost &cost, Warp &warp, const Op &op,
                       LaneMask lanes);

  const Code &code_;
  const std::vector<Operations> &operations_;
  LaunchCost cost_;
  const Op *current_ = nullptr; ///< that is executed; null: none
  LaneMask together_ = 0;       ///< lanes that came to it
  Touched touched_;
  Recorder recorder_; ///< for the time that warps wait
};

} // namespace kiln::sim
