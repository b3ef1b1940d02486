// AccessPattern: what the hardware makes of the addresses of one request.
//
// Global memory moves in sectors of 32 bytes: a request moves those that its
// lanes touch. Shared memory has 32 banks of 4 bytes, each of which gives one
// word in a wavefront:
//
//     bytes of a lane    lanes that go together (a phase)
//     1, 2, 4            32
//     8                  16
//     16, ldmatrix        8
//
// A phase takes as many wavefronts as the bank with most words has words; one
// word for several lanes counts once. Two phases of a load become one where each
// lane reads what its neighbour reads (the lane whose number differs in the last
// bit), or where each reads what the lane two further reads. Atomics count lanes
// and not words. tests/golden has what an H200 answers.
#pragma once

#include "kiln/check/profile.h"
#include "sim/machine/events/Events.h"

#include <optional>
#include <span>
#include <vector>

namespace kiln::sim {

inline constexpr std::uint32_t kSectorBytes = 32;
inline constexpr std::uint64_t kWavefrontBytes = 128; ///< at most

/// That the lanes ask for.
std::uint64_t bytesOf(std::span<const LaneAccess> accesses);

/// The sectors that accesses touch, each once, ascending.
std::vector<std::uint64_t> sectorsOf(std::span<const LaneAccess> accesses);
std::vector<std::uint64_t> sectorsOf(std::span<const ByteRun> runs);

/// Sectors that the same lanes would need if their bytes lay side by side; no
/// more than they do need.
std::uint64_t idealSectors(std::span<const LaneAccess> accesses,
                           std::uint64_t sectors);

struct Wavefronts {
  std::uint32_t count = 0;
  /// Of the same lanes without conflicts; no more than `count`.
  std::uint32_t ideal = 0;
};
/// `isMatrix`: of ldmatrix or stmatrix, whose lanes bring rows.
Wavefronts wavefrontsOf(std::span<const LaneAccess> accesses, AccessKind kind,
                        bool isMatrix);

/// Lanes whose address another lane of the request has before them.
std::uint32_t collisionsOf(std::span<const LaneAccess> accesses);
/// Lanes at the address that most have.
std::uint32_t mostAtOneAddress(std::span<const LaneAccess> accesses);

/// Bytes from each lane to the next one, where that is the same for all; of
/// rows of matrices within each matrix. Nothing where there is one lane.
std::optional<std::int64_t> strideOf(std::span<const LaneAccess> accesses,
                                     bool isMatrix);

/// Sectors of the local memory of lanes: word by word, lane beside lane.
std::vector<std::uint64_t> localSectors(std::span<const LaneAccess> accesses);

} // namespace kiln::sim
