// finding.h: something that a check found: what, where, and the other access it
// collides with. `kiln explain ID` and explain() say what an id means.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// Something a check found; only the simulator has any.
struct Finding {
  enum class Grade : std::uint8_t { note, warning, error };

  std::string id; ///< `kiln explain ID` and explain() say what it means
  Grade grade = Grade::error;
  std::string message = {};
  SourceLine where = {}; ///< from .loc, else the line of the PTX
  int ptx_line = 0;
  // What it is about, where that applies.
  std::optional<std::array<std::uint32_t, 3>> cta = std::nullopt;
  int thread = -1;                                     ///< in its CTA; -1: none
  std::string space = {};                              ///< "global", "shared"
  std::optional<std::uint64_t> address = std::nullopt; ///< in that space
  std::string buffer = {}; ///< the name of what lies there, or nearest
  std::uint32_t bytes = 0; ///< from the address on; 0: not known

  std::string instruction = {}; ///< of the PTX, as it is written
  std::uint64_t count = 1;      ///< how often it was found at these places

  /// Where a line is of a function that was inlined: from there out to the
  /// kernel, each with its line.
  struct Frame {
    std::string function = {};
    SourceLine where = {};
  };
  /// `where` is the innermost of the kernel's own file.
  std::vector<Frame> stack = {};

  /// The access that it collides with, where there is one.
  struct Other {
    std::string who = {}; ///< "thread 32 of CTA (0, 0, 0)"
    SourceLine where = {};
    int ptx_line = 0;
    bool is_write = false;
    std::vector<Frame> stack = {};
    std::optional<std::array<std::uint32_t, 3>> cta = std::nullopt;
    /// The unit that makes it: "warp", "tma", "cp.async", "wgmma", "tcgen05".
    std::string unit = {};
    int number = 0; ///< of the warp; of the warpgroup, for wgmma
    std::optional<std::uint64_t> time = std::nullopt; ///< as Finding::time
  };
  std::optional<Other> other = std::nullopt;
  /// What would have ordered the two: "a barrier of the CTA (bar.sync)".
  std::string missing = {};
  /// When the instruction was executed, in units of timeline.h; nothing where
  /// nobody asked for details (SimOptions::detail).
  std::optional<std::uint64_t> time = std::nullopt;

  /// Lanes that wait, one warp after another, when a launch was ended.
  struct Waiting {
    std::array<std::uint32_t, 3> cta{};
    int first = 0, last = 0; ///< threads
    /// "mbarrier", "memory", "barrier", "cluster", "lanes", "registers",
    /// "wgmma", "launch", "tensor-memory", "loop"; "running": they do not wait.
    std::string kind = {};
    std::string what = {};   ///< "barrier 1: 32 of 64 threads have arrived"
    std::string source = {}; ///< who has sent, who could have; may be empty
    SourceLine where = {};
    int ptx_line = 0;
    std::string object = {}; ///< the name of what they wait for
    std::optional<std::uint64_t> address = std::nullopt; ///< of it
    /// Those of the list that could let them go on: threads that the barrier
    /// still waits for, or that have signalled it before.
    std::vector<std::size_t> on = {};
  };
  std::vector<Waiting> waits = {}; ///< of a deadlock and of what was stopped

  // Where it was found, in a Report.
  std::string kernel = {};                   ///< as the program calls it
  std::vector<std::uint64_t> launches = {};  ///< numbers, from 1
  std::vector<std::string> interleavings = {}; ///< that show it: "lazy"

  /// "error out-of-bounds at gemm.cpp:12: a load of 4 bytes ..."
  std::string to_string() const;
  /// What makes two findings the same one: the id and both places, by the lines
  /// of the source, or where it has none by those of the PTX. An instruction of
  /// an unrolled loop is many instructions and one defect.
  std::string identity() const;
};

/// "17 more findings were found and left out (--max-findings)"
std::string findings_left_out_text(std::uint64_t count);

/// "note", "warning", "error"
const char *name(Finding::Grade grade);

} // namespace kiln
