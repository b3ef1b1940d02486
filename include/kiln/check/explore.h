// explore.h: launches in several interleavings, each from the memory they began
// with.
//
//     Exploration seen = explore(*device, {launch}, {});
//     for (const ExploredRun &run : seen.runs) ...
//
// What one interleaving hides another shows: a barrier that is missing behind an
// asynchronous copy does no harm where the copy takes effect at once. When
// explore returns, memory is as the first interleaving left it, so that a program
// goes on as if the others had not been.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/interleaving.h>
#include <kiln/check/sim_options.h>
#include <kiln/run/device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// One interleaving.
struct SeededInterleaving {
  Interleaving kind = Interleaving::eager;
  std::uint64_t seed = 0; ///< of a random one

  /// "eager", "random, seed 3"
  std::string to_string() const;
  bool operator==(const SeededInterleaving &) const = default;
};

/// Which interleavings a launch runs in. As it comes: eager, lazy and one random
/// one, which is what every command, program and binding does unless it is told
/// otherwise.
struct Interleavings {
  std::optional<Interleaving> only; ///< these alone
  /// How many; 0: three, or one where `only` names a kind. Those behind eager
  /// and lazy are random.
  std::uint64_t count = 0;
  std::uint64_t seed = 0; ///< of the first random one; the next has the next

  /// Throws UserError where there are not so many: eager and lazy are one each.
  std::vector<SeededInterleaving> list() const;
  /// "eager", "lazy", "random" or "all".
  void set(std::string_view word);
  std::string word() const;
};

/// Most interleavings of one exploration.
inline constexpr std::uint64_t kMaxInterleavings = 1'000'000;

struct ExploreOptions {
  Interleavings interleavings;
  /// For every launch; its interleaving and seed are those of the exploration.
  SimOptions sim;
};

/// What came of the launches in one interleaving.
struct ExploredRun {
  SeededInterleaving interleaving;
  std::vector<LaunchResult> launches; ///< as many as were begun
  std::string printed;                ///< by the kernels
  bool is_finished = true;            ///< no finding ended one of them
};

struct Exploration {
  std::vector<ExploredRun> runs;
  /// Why there is one alone where more were asked for: "nothing in it can be
  /// reordered"; empty otherwise.
  std::string single_because;
};

/// Told of each run while memory is as it left it, before it is kept.
using AfterRun = std::function<void(ExploredRun &)>;

/// Run the launches in the order of the list, in each interleaving, until a
/// finding ends one of them: that one is to be mended first. What the
/// kernels print in the first one goes where SimOptions::print says; on a device
/// that is no simulator they run once. Throws UserError, before anything runs,
/// where one of them is refused.
Exploration explore(Device &device, std::span<const LaunchDescription> launches,
                    const ExploreOptions &options, const AfterRun &after = {});

/// The same for launches behind what is in a stream, of which all but the first
/// are dependent: `finished` is told when they are over, which may be after
/// this returns. Launches that wait for the host or for another stream run in
/// one interleaving.
void explore_in_stream(Device &device,
                       std::span<const LaunchDescription> launches,
                       const Stream &stream, const ExploreOptions &options,
                       std::function<void(Exploration)> finished);
inline void explore_in_stream(Device &device, const LaunchDescription &launch,
                              const Stream &stream,
                              const ExploreOptions &options,
                              std::function<void(Exploration)> finished) {
  explore_in_stream(device, std::span(&launch, 1), stream, options,
                    std::move(finished));
}

} // namespace kiln
