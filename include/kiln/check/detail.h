// detail.h: what a report page shows of a launch beside its findings: how often
// each instruction was executed, who did what when, what became of each
// mbarrier, and who wrote what lies in shared memory.
//
//     auto device = open_sim({.detail = true});
//     LaunchResult result = run(*device, kernel, a, b, d);
//     for (const LaunchDetail::Barrier &barrier : result.detail->barriers) ...
//
// It is collected where somebody asks for it alone (SimOptions::detail). Counts
// are of the whole launch. Of a few clusters there is more: of the first one and
// of those with findings, and of a long one its beginning and its end.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/check/finding.h>
#include <kiln/check/timeline.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// The instructions of a kernel, in the order of the program.
struct Listing {
  struct Line {
    int ptx_line = 0;
    std::string text = {};  ///< of the PTX, as it is written
    SourceLine where = {};  ///< from .loc, of the kernel's own file
    std::vector<Finding::Frame> stack = {}; ///< as Finding::stack
    bool operator==(const Line &other) const;
  };
  std::string kernel; ///< the entry
  std::vector<Line> lines;
};

struct LaunchDetail {
  Listing listing;
  /// Figures of the instructions, a value for each line of the listing:
  /// "executions" (by warps), "lanes" (that were active in them, added up) and
  /// "divergent" (executions in which lanes of the warp were elsewhere). A page
  /// shows a column for each.
  std::map<std::string, std::vector<double>> figures;

  /// What happened in the clusters that were kept.
  Timeline timeline;
  std::uint64_t events_left_out = 0; ///< from the middle of it

  /// What a warp does in its role.
  struct Role {
    std::array<std::uint32_t, 3> cta{};
    int warp = 0;
    std::string role; ///< "producer", "consumer", "producer and consumer"
  };
  std::vector<Role> roles; ///< of warps that have one

  struct BarrierEvent {
    enum class What : std::uint8_t { init, arrive, copy, phase, wait, inval };
    What what = What::init;
    std::uint64_t time = 0;
    int warp = -1;       ///< of the barrier's CTA or of `cta`; -1: a unit
    int lanes = 0;       ///< that did it
    int ptx_line = 0;    ///< 0: no instruction
    SourceLine where = {};
    std::array<std::uint32_t, 3> cta{}; ///< who did it
    // The barrier afterwards.
    std::uint32_t phase = 0, pending = 0;
    std::int64_t bytes = 0; ///< announced and not written yet
  };
  /// An mbarrier and what became of it.
  struct Barrier {
    std::array<std::uint32_t, 3> cta{};
    std::uint32_t address = 0;
    std::string name;
    std::uint32_t expected = 0; ///< arrivals per phase
    std::vector<BarrierEvent> events;
    std::uint64_t left_out = 0; ///< events, from the middle
  };
  std::vector<Barrier> barriers;

  /// Shared memory of a CTA as it was left.
  struct SharedMap {
    enum class State : std::uint8_t { unwritten, written, in_flight };
    /// Bytes that were written last by one instruction of one warp.
    struct Run {
      std::uint32_t begin = 0, end = 0; ///< shared addresses
      State state = State::unwritten;
      std::string unit = {}; ///< as Finding::Other::unit
      int warp = -1;         ///< that issued it
      int ptx_line = 0;
      SourceLine where = {};
    };
    struct Object {
      std::string name;
      std::uint32_t begin = 0, end = 0;
      int swizzle = 0; ///< bytes of the pattern that a copy wrote it in; 0: none
    };
    std::array<std::uint32_t, 3> cta{};
    std::uint32_t begin = 0, end = 0;
    std::vector<Object> objects; ///< that have names, by address
    std::vector<Run> runs;       ///< by address
    bool is_coarse = false;      ///< warps were joined: there were too many runs
  };
  std::vector<SharedMap> shared;

  /// Tensor memory of a CTA as it was left.
  struct TensorColumns {
    struct Columns {
      std::uint32_t begin = 0, end = 0;
      bool is_written = false; ///< some lane of each
      int ptx_line = 0;        ///< that allocated them
      SourceLine where = {};
    };
    std::array<std::uint32_t, 3> cta{};
    std::vector<Columns> columns; ///< that are allocated
  };
  std::vector<TensorColumns> tensor;
};

/// "init", "arrive", "copy", "phase", "wait", "inval"
const char *name(LaunchDetail::BarrierEvent::What what);
/// "unwritten", "written", "in flight"
const char *name(LaunchDetail::SharedMap::State state);

} // namespace kiln
