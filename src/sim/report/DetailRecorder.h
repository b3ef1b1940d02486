// DetailRecorder: what a report page shows of a cluster, noted while it runs.
//
// It watches beside the checks and is told after them: what they have just found
// gets its time on the timeline, and the other access of a race the time at
// which it was made.
#pragma once

#include "kiln/check/detail.h"
#include "sim/machine/events/Watchers.h"
#include "sim/report/Recorder.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace kiln::sim {

class RaceDetector;

/// How often each instruction was executed, by its index.
struct InstructionCounts {
  std::vector<std::uint64_t> executions, lanes, divergent;

  void add(const InstructionCounts &other);
};

/// What the clusters of a launch left, joined in the order of their numbers.
struct ClusterDetail {
  InstructionCounts counts;
  LaunchDetail kept; ///< of clusters that are shown; without counts

  void add(ClusterDetail &&other);
};

class DetailRecorder final : public Watcher {
public:
  /// `races` that are found meanwhile; null: nothing is checked.
  DetailRecorder(Cluster &cluster, Recorder &recorder, RaceDetector *races);

  EventMask interests() const override;
  using Watcher::on;
  void on(const InstructionBegin &event) override;
  void on(const InstructionEnd &event) override;
  void on(const ThreadAccess &event) override;
  void on(const AsyncAccess &event) override;
  void on(const CopyArrival &event) override;
  void on(const TensorArrival &event) override;
  void on(const MbarrierEvent &event) override;
  void on(const MbarrierPhase &event) override;

  /// A warp of the cluster.
  using WarpKey = std::pair<const Cta *, int>;
  using Senders = std::map<WarpKey, LaneMask>;
  /// The lanes that have signalled an mbarrier; null: nobody has.
  const Senders *sendersOf(const Cta &cta, std::uint32_t address) const;
  /// Put a time to a finding that ends the launch.
  void stamp(Finding &finding) const;
  /// `isKept`: with all that it has seen; else counts alone.
  ClusterDetail take(bool isKept);

private:
  using Time = std::uint64_t;
  using Key = std::pair<Cta *, std::uint32_t>; ///< an mbarrier
  struct Touch {
    std::uint32_t op = kNone, time = 0;
    std::int16_t warp = -1;
    static constexpr std::uint32_t kNone = ~std::uint32_t(0);
  };
  /// What happened last to 16 bytes of shared memory.
  struct Cell {
    Touch write, read;
    std::uint8_t swizzle = 0;
    std::int32_t flight = -1; ///< of `flights_`
  };
  /// A write that an mbarrier tells of.
  struct Flight {
    Key barrier;
    std::uint32_t phase = 0;
  };
  struct History {
    std::vector<LaunchDetail::BarrierEvent> first, last;
    std::uint64_t leftOut = 0;
    std::uint32_t expected = 0;
    Senders senders;
  };

  Time timeOf(const Warp &warp) const;
  std::uint32_t indexOf(const Op &op) const;
  std::vector<Cell> &cellsOf(Cta &cta);
  void note(Cta &owner, std::uint64_t begin, std::size_t bytes, bool isWrite,
            const Touch &touch, int swizzle, std::int32_t flight);
  LaunchDetail::BarrierEvent &note(const Key &key,
                                   LaunchDetail::BarrierEvent::What what,
                                   const Warp *warp, int lanes, const Op *op);
  void fill(LaunchDetail::BarrierEvent &event, const Key &key) const;
  Key keyOf(const MbarrierState &barrier);
  /// Give what the checks have found since then its times.
  void stampFresh(const Warp &warp);
  bool isMine(const Finding &finding) const;
  void stampOther(Finding &finding, Time now) const;
  SourceLine placeOf(const Op &op) const;
  LaunchDetail::SharedMap mapOf(Cta &cta);
  void addTensor(Cta &cta, LaunchDetail &detail) const;
  void addBarriers(LaunchDetail &detail) const;
  void addRoles(LaunchDetail &detail) const;

  Cluster &cluster_;
  Recorder &recorder_;
  RaceDetector *races_;
  std::size_t racesTold_ = 0, findingsTold_ = 0;
  InstructionCounts counts_;
  bool isApart_ = false; ///< the group that executes, from others of its warp
  /// When each warp has executed each instruction last.
  std::map<WarpKey, std::vector<std::uint32_t>> executed_;
  std::map<Cta *, std::vector<Cell>> cells_;
  std::vector<Flight> flights_;
  std::map<Key, History> barriers_;
  /// Of the instruction that is executed: what its barriers are afterwards.
  std::vector<Key> changed_;
  std::set<WarpKey> producers_, consumers_;
};

/// What is shown of a launch.
LaunchDetail detailOf(const Machine &machine, ClusterDetail &&clusters);

} // namespace kiln::sim
