// timeline.h: what the warps and the asynchronous units of a launch did, and
// when.
//
//     auto device = open_sim({.timeline = true});
//     LaunchResult result = run(*device, kernel, a, b, d);
//     std::cout << result.timeline.to_table();
//
// Time is logical and the same in every order of events. Its unit is one warp
// instruction: a warp that does not wait takes one unit for each. A copy into
// or out of shared memory takes one unit for 32 bytes, a wgmma or tcgen05.mma
// of n columns n / 2 units, about the rates of an H200 and a B200. Each CTA has
// one copy engine and one tensor core for tcgen05, and each warpgroup one for
// wgmma; each of them does one thing after another. A wait ends
// when the last thing it waits for has happened. It is a picture of who waits
// for whom, and no forecast of microseconds.
#pragma once

#include <kiln/base/export.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace KILN_API kiln {

struct Timeline {
  enum class Kind : std::uint8_t { wait, load, mma, store };
  /// Who does something: a warp, or a unit that works beside the warps.
  enum class Agent : std::uint8_t { warp, tma, cp_async, wgmma, tcgen05 };
  /// What a wait waits for. `full` and `empty` are mbarriers of a pipeline:
  /// copies fill a slot, and whoever has read it hands it back.
  enum class Awaited : std::uint8_t {
    mbarrier,
    full,
    empty,
    copies,
    wgmma,
    cta_barrier,
    cluster_barrier,
  };

  /// The events of one agent follow one another.
  struct Row {
    Agent agent = Agent::warp;
    int number = 0; ///< of the warp; of the warpgroup, for wgmma

    auto operator<=>(const Row &) const = default;
    /// "warp 4", "tma", "cp.async", "wgmma 0", "tcgen05"
    std::string to_string() const;
  };

  struct Event {
    std::array<std::uint32_t, 3> cta{};
    Row row;
    Kind kind = Kind::wait;
    Awaited awaited = Awaited::mbarrier; ///< by a wait
    int slot = -1; ///< of the pipeline, from the mbarrier; -1: none
    std::uint64_t start = 0, end = 0;
    /// Loads that an mbarrier tells of: its phase was complete in the end.
    bool is_complete = true;
    int ptx_line = 0;
    std::string file = {}; ///< of the source, where the PTX tells its lines
    int line = 0;
    /// The mbarrier that it waits for or tells: "v_empty[1]" where the kernel
    /// has named it, else its variable; empty where neither is known.
    std::string object = {};

    /// "wait full", "tma load", "wgmma", "tcgen05.mma"
    std::string name() const;
  };

  std::vector<Event> events; ///< by CTA, then by start

  /// The events as Chrome and Perfetto read them (chrome://tracing,
  /// ui.perfetto.dev); microseconds there are units here.
  std::string to_trace() const;
  /// The first CTA as a table: the thread that loads, each slot, the
  /// warpgroups that multiply, or else the first warps; a row where something
  /// changes, at most `rows`. Below it, where in the source each word comes
  /// from, and which barriers it waits for or tells. A slot whose barrier was
  /// never complete is not shown as full.
  std::string to_table(int rows = 48) const;
};

} // namespace kiln
