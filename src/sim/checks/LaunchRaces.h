// LaunchRaces: races between clusters that cannot talk to each other.
//
// Nothing orders such clusters, so that each byte of global memory that one of
// them writes belongs to it alone. They run on several host threads; what each
// touched is added in the order of their numbers, so that a launch has one
// report whoever was first.
#pragma once

#include "sim/checks/LaunchChecks.h"

namespace kiln::sim {

class LaunchRaces {
public:
  explicit LaunchRaces(Machine &machine);

  /// What a cluster did that has ended; in the order of their numbers.
  void take(std::unique_ptr<LaunchChecks> checks);
  /// What all of them did that share a detector, which stays where it is.
  void takeCommon(RaceDetector &races);
  /// Compare what was done too early with what another launch did that this one
  /// may have overlapped.
  void compareWith(LaunchRaces &earlier);
  /// Everything that was found, in order.
  std::vector<Finding> findings() const;
  const FindingQuota &quota() const { return told_.quota; }
  /// Memory that this takes.
  std::uint64_t bytes() const;

private:
  using Early = EarlyAccesses::Access;
  struct Touch {
    std::uint32_t cta; ///< number in the launch, plus one; 0: nobody
    std::uint32_t op;  ///< index of the instruction
    std::uint32_t isStrong : 1, thread : 31;
    std::uint16_t bytes; ///< of the cell
    std::uint16_t kept;  ///< those of which the values are known
  };
  struct Touches {
    Touch write, read;
  };
  struct PageTouches {
    CellSet written = 0, read = 0; ///< cells that were
    std::array<Touches, Shadow::kPageCells> cells{};
    std::unique_ptr<std::uint8_t[]> values; ///< as Shadow::Page has them
  };
  void takeFindings(RaceDetector &races);
  /// What is in the shadow, which is empty then.
  void takePages(RaceDetector &races);
  void takePage(RaceDetector &races, std::uint64_t first, Shadow::Page &page);
  /// Put what is deferred where it would have been put at once: that of
  /// instructions that have fallen, or everything.
  void restoreFallen();
  void restoreAll();
  /// Add an access to cells of a page; `values`: what it has written there.
  static void add(const RaceDetector &races, const Record &record,
                  std::uint16_t bytes, CellSet cells, PageTouches &page,
                  const std::uint8_t *values);
  /// `values`: of the cell, here and where the cluster has written them.
  void compare(const RaceDetector &races, std::uint64_t cell,
               const Record &record, std::uint16_t bytes,
               const Touches &touches, const std::uint8_t *earlierValues,
               const std::uint8_t *values);
  void report(const RaceDetector &races, FindingId id, std::uint64_t cell,
              const Record &record, std::uint16_t overlap, const Touch &earlier,
              bool isEarlierWrite);
  /// The bytes of an access that an earlier launch's may collide with.
  static std::uint16_t overlapOf(const Touch &touch, const Early &access) {
    bool isMorallyStrong = touch.isStrong && access.isStrong;
    return static_cast<std::uint16_t>(
        touch.cta && !isMorallyStrong ? touch.bytes & access.bytes : 0);
  }
  /// Whether a load of this launch waits for a flag that the other sets: nobody
  /// knows what that orders.
  bool isFlagged(const LaunchRaces &earlier) const;
  void reportEarly(const LaunchRaces &earlier, std::uint64_t cell,
                   const Early &access, std::uint16_t overlap,
                   const Touch &other, bool isOtherWrite);
  const Touches *find(std::uint64_t cell) const;

  Machine &machine_;
  std::unordered_map<std::uint64_t, PageTouches> pages_;
  /// Clusters some accesses of which collide with nothing yet, in the order of
  /// their numbers, and what they take.
  std::vector<std::unique_ptr<LaunchChecks>> deferred_;
  std::size_t deferredBytes_ = 0;
  AccessExtents extents_;
  RaceDetector *common_ = nullptr; ///< not looked at yet; null: there is none
  EarlyAccesses early_;
  ToldRaces told_;
};

} // namespace kiln::sim
