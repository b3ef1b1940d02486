// FindingQuota: how many findings are kept; the rest are counted.
//
// A cluster has one, and so have the races of a cluster and those between
// clusters: what is kept does not depend on which host thread was first. What
// of it a launch shows is cut again, in the order of clusters. Errors do not
// compete with warnings, so that no verdict changes.
#pragma once

#include "kiln/check/finding.h"

#include <functional>
#include <set>
#include <string>

namespace kiln::sim {

class FindingQuota {
public:
  /// 0: as many as there are.
  explicit FindingQuota(std::uint64_t most) : most_(most) {}

  /// Whether one more of that grade is kept; else it is counted, once for each
  /// key.
  template <typename... Parts>
  bool admit(Finding::Grade grade, const Parts &...parts) {
    std::uint64_t &kept = kept_[grade == Finding::Grade::error];
    if (!most_ || kept < most_) {
      ++kept;
      return true;
    }
    leaveOut(parts...);
    return false;
  }
  template <typename... Parts> void leaveOut(const Parts &...parts) {
    std::size_t key = 0;
    ((key = key * 0x9e3779b97f4a7c15 + std::hash<Parts>()(parts)), ...);
    if (leftOut_.size() < kMostCounted)
      leftOut_.insert(key);
  }
  /// What another one has left out.
  void take(const FindingQuota &other) {
    for (std::size_t key : other.leftOut_)
      if (leftOut_.size() < kMostCounted)
        leftOut_.insert(key);
  }
  std::uint64_t leftOut() const { return leftOut_.size(); }

private:
  static constexpr std::size_t kMostCounted = 1'000'000;

  std::uint64_t most_, kept_[2] = {0, 0};
  std::set<std::size_t> leftOut_;
};

} // namespace kiln::sim
