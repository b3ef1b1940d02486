// profile.h: what each instruction and each line of a kernel costs, counted by
// the simulator.
//
//     auto device = open_sim({.checks = false, .profile = true});
//     LaunchResult result = run(*device, kernel, a, b, d);
//     for (const ProfiledInstruction &one : result.profile->instructions)
//       std::cout << one.where.line << one.counts[Count::shared_wavefronts];
//
// Counts are exact and the same every time. They are of PTX instructions, and of
// what warps ask of memory; caches, and who comes first where several want
// something, are not simulated. docs/profile.md has each count beside the metric
// of Nsight Compute, and docs/profile.schema.json the form of the JSON.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/check/finding.h>
#include <kiln/run/device_description.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// Of JSON profiles; grows with every change that a reader could notice.
inline constexpr int kProfileVersion = 1;

/// What is counted of an instruction. profile_counters() has a row for each.
enum class Count : std::uint8_t {
  executions,
  threads,
  threads_on,
  branches,
  divergent_branches,
  global_requests,
  global_bytes,
  global_sectors,
  global_sectors_ideal,
  local_requests,
  local_bytes,
  local_sectors,
  local_sectors_ideal,
  shared_requests,
  shared_bytes,
  shared_wavefronts,
  shared_wavefronts_ideal,
  cluster_requests,
  cluster_bytes,
  atomic_lanes,
  atomic_collisions,
  copies,
  copy_bytes,
  copy_sectors,
  copy_targets,
  operand_bytes,
  operations,
  tensor_operations,
  waits,
  wait_time,
};
inline constexpr std::size_t kCounts = 30;

struct ProfileCounter {
  Count count;
  const char *name;   ///< as JSON and --sort call it
  const char *metric; ///< of Nsight Compute; empty: it has none
  const char *help;   ///< what is counted, and where Nsight Compute's differs
};
/// In the order of Count.
std::span<const ProfileCounter> profile_counters();

struct ProfileCounts {
  std::array<std::uint64_t, kCounts> values{};

  std::uint64_t &operator[](Count count) {
    return values[static_cast<std::size_t>(count)];
  }
  std::uint64_t operator[](Count count) const {
    return values[static_cast<std::size_t>(count)];
  }
  void add(const ProfileCounts &more) {
    for (std::size_t i = 0; i < kCounts; ++i)
      values[i] += more.values[i];
  }
  bool operator==(const ProfileCounts &) const = default;
};

/// What an access does.
enum class AccessKind : std::uint8_t { none, load, store, atomic };

/// What holds for every access of an instruction; see AccessShape::stride.
struct AccessShape {
  AccessKind kind = AccessKind::none;
  std::uint32_t bytes = 0; ///< of a lane; 0: they differ
  /// Of the first byte of each request: the largest power of two, up to 128,
  /// that divides all of them; 0: there were no requests.
  std::uint32_t alignment = 0;
  /// Bytes from a lane to the next one, where that is the same for all lanes of
  /// all requests; of ldmatrix and stmatrix from row to row.
  std::optional<std::int64_t> stride;
  /// Wavefronts of the worst request of shared memory, and what it would need
  /// without conflicts.
  std::uint32_t worst_wavefronts = 0, worst_ideal = 0;
  std::uint32_t most_collisions = 0; ///< lanes of a request at one address
  bool is_matrix = false;            ///< ldmatrix, stmatrix
};

struct ProfiledInstruction {
  int ptx_line = 0;
  SourceLine where = {}; ///< from .loc, else the line of the PTX
  std::vector<Finding::Frame> stack = {}; ///< as Finding::stack
  std::string text = {};                  ///< of the PTX, as it is written
  ProfileCounts counts;
  AccessShape access;
  /// How many tensor-core operations of each shape and type there were:
  /// "m64n128k16.f32.bf16.bf16". A wgmma of four warps is one.
  std::map<std::string, std::uint64_t> tensor;
};

/// How many CTAs a multiprocessor holds by each of its limits; 0: it does not
/// limit, or nobody knows.
struct ProfiledOccupancy {
  int by_threads = 0, by_shared = 0, by_registers = 0, by_ctas = 0;
  int ctas_per_sm = 0;
  std::string limit; ///< "registers", "shared memory", "threads", "CTAs"
  int registers = 0; ///< per thread
  std::string registers_from; ///< "ptxas", ".maxnreg"; empty: nobody says
  std::uint32_t shared_bytes = 0; ///< of a CTA, with what the system takes
  int warps_per_cta = 0, max_warps_per_sm = 0;
  std::uint64_t ctas = 0;     ///< of the grid
  std::uint64_t resident = 0; ///< that the device holds at once

  /// Warps of a multiprocessor over the most it could have.
  double occupancy() const;
  /// Times that the device is filled; the last one may be a part.
  double waves() const;
  /// The part of the device that the last wave leaves idle.
  double tail() const;
};

/// Bytes of global memory, in sectors of 32 bytes.
struct ProfiledTraffic {
  std::uint64_t requested_read = 0, requested_written = 0; ///< by all requests
  /// Of sectors that one request has read, and of those that more have.
  std::uint64_t read_once = 0, read_again = 0;
  std::uint64_t written = 0; ///< each sector once

  /// What has to come from memory and go there, if caches keep everything else.
  std::uint64_t compulsory() const { return read_once + read_again + written; }
  std::uint64_t requested() const {
    return requested_read + requested_written;
  }
};

/// A launch, or several of one kernel and one shape.
struct Profile {
  std::string kernel;
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1},
                               cluster = {1, 1, 1};
  std::vector<std::uint64_t> launches; ///< their numbers, from 1
  bool is_finished = true;             ///< no finding ended it
  DeviceDescription device;
  ProfiledOccupancy occupancy;
  ProfiledTraffic traffic;
  /// Those that were executed, in the order of the program.
  std::vector<ProfiledInstruction> instructions;

  ProfileCounts total() const;
  std::map<std::string, std::uint64_t> tensor() const;
  /// Floating-point operations, those of the tensor core included.
  std::uint64_t operations() const;
  /// Another launch of the same kernel and shape.
  void add(const Profile &more);
};

/// Lines, instructions or kernels.
enum class ProfileBy : std::uint8_t { line, instruction, kernel };
ProfileBy parse_profile_by(std::string_view word);

/// What is certain to cost more than it has to, and what would help.
struct ProfileHint {
  SourceLine where;
  int ptx_line = 0;
  std::string message; ///< "32-way bank conflict: ..."

  std::string to_string() const;
};
std::vector<ProfileHint> hints(const Profile &profile);

struct ProfileTable {
  ProfileBy by = ProfileBy::line;
  std::string sort; ///< a counter's name; empty: executions
  std::size_t rows = 20; ///< 0: all
};
/// Profiles as people read them: the launch, the table, the hints. Throws
/// UserError where there is no counter of that name.
std::string to_table(std::span<const Profile> profiles,
                     const ProfileTable &table = {});
/// One object (docs/profile.schema.json).
std::string to_json(std::span<const Profile> profiles);
/// For speedscope.app: a flame graph for each of a few counters.
std::string to_speedscope(std::span<const Profile> profiles);
/// The roofline of the device, with a point for each profile, as SVG.
std::string to_roofline(std::span<const Profile> profiles);
/// As its name ends: .svg, .speedscope.json, .txt, else JSON. Throws
/// RuntimeError where the file cannot be written.
void save_profile(std::span<const Profile> profiles, const std::string &path);

/// Take a profile in: to one of the same kernel and shape, else to the end.
void add_profile(std::vector<Profile> &profiles, Profile profile);

} // namespace kiln
