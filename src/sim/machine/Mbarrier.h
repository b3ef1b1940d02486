// Mbarrier: the state of one barrier, exactly as PTX describes it.
//
// The hardware keeps this state apart from the bytes it lies on, and so do we.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kiln::sim {

struct MbarrierHistory;
struct Op;

struct MbarrierState {
  std::uint32_t expected = 0;         ///< arrivals per phase
  std::uint32_t pending = 0;          ///< arrivals still missing in this phase
  std::int64_t txCount = 0;           ///< bytes announced and not yet written
  std::uint32_t phase = 0;            ///< completed phases
  MbarrierHistory *history = nullptr; ///< null where nothing is checked

  /// Nobody has arrived in this phase, and no bytes are announced.
  bool isAtRest() const { return pending == expected && txCount == 0; }

  /// Instructions that have arrived or brought bytes; for the ledger of a
  /// deadlock.
  std::vector<const Op *> senders = {};
  void note(const Op &op) {
    if (std::find(senders.begin(), senders.end(), &op) == senders.end())
      senders.push_back(&op);
  }

  /// Whether the phase of that parity has completed: true for the phase before
  /// the current one.
  bool isComplete(std::uint32_t parity) const {
    return (phase & 1) != (parity & 1);
  }
};

class Cluster;

/// Begin the next phase if this one has all its arrivals and bytes.
void settlePhase(MbarrierState &barrier, Cluster &cluster);

} // namespace kiln::sim
