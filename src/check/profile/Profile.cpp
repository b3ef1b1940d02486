// Profile: the table of counters, and sums of instructions and of launches.
#include "kiln/check/profile.h"
#include "kiln/base/file.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <tuple>

namespace kiln {

static constexpr ProfileCounter kCounters[kCounts] = {
    {Count::executions, "executions", "inst_executed",
     "times that a warp executed it, also where its predicate held for no lane; "
     "of PTX, where Nsight Compute counts SASS"},
    {Count::threads, "threads", "thread_inst_executed",
     "lanes that came to it, added up"},
    {Count::threads_on, "threads_on", "thread_inst_executed_true",
     "those of them for which its predicate held"},
    {Count::branches, "branches", "smsp__inst_executed_op_branch",
     "times that a warp executed a branch; ptxas makes predicates of short ones"},
    {Count::divergent_branches, "divergent_branches",
     "smsp__sass_branch_targets_threads_divergent",
     "branches at which the lanes of a warp parted; Nsight Compute counts each "
     "target"},
    {Count::global_requests, "global_requests",
     "l1tex__t_requests_pipe_lsu_mem_global",
     "warp instructions that accessed global memory with a lane at least, "
     "cp.async included"},
    {Count::global_bytes, "global_bytes", "",
     "bytes that their lanes asked for"},
    {Count::global_sectors, "global_sectors",
     "memory_l2_theoretical_sectors_global",
     "sectors of 32 bytes that they touched, each once in a request"},
    {Count::global_sectors_ideal, "global_sectors_ideal",
     "memory_l2_theoretical_sectors_global_ideal",
     "sectors if the bytes of a request lay side by side"},
    {Count::local_requests, "local_requests",
     "l1tex__t_requests_pipe_lsu_mem_local",
     "the same of local memory; ptxas keeps much of it in registers"},
    {Count::local_bytes, "local_bytes", "", "bytes that their lanes asked for"},
    {Count::local_sectors, "local_sectors",
     "memory_l2_theoretical_sectors_local",
     "sectors that they touched, the words of lanes side by side"},
    {Count::local_sectors_ideal, "local_sectors_ideal", "",
     "sectors if the bytes of a request lay side by side"},
    {Count::shared_requests, "shared_requests", "",
     "warp instructions that accessed the shared memory of their CTA"},
    {Count::shared_bytes, "shared_bytes", "sm__sass_data_bytes_mem_shared",
     "bytes that their lanes asked for"},
    {Count::shared_wavefronts, "shared_wavefronts",
     "memory_l1_wavefronts_shared",
     "wavefronts that they and the operands of wgmma took; not of cp.async and "
     "wmma"},
    {Count::shared_wavefronts_ideal, "shared_wavefronts_ideal",
     "memory_l1_wavefronts_shared_ideal",
     "wavefronts without bank conflicts"},
    {Count::cluster_requests, "cluster_requests",
     "l1tex__t_requests_pipe_lsu_mem_dshared",
     "warp instructions that accessed the shared memory of another CTA"},
    {Count::cluster_bytes, "cluster_bytes", "",
     "bytes that their lanes asked for"},
    {Count::atomic_lanes, "atomic_lanes", "",
     "lanes of atomics and reductions"},
    {Count::atomic_collisions, "atomic_collisions", "",
     "those whose address another lane of the same request has too"},
    {Count::copies, "copies", "",
     "boxes of tensor maps and other bulk copies"},
    {Count::copy_bytes, "copy_bytes", "",
     "bytes that they read from global memory or wrote there"},
    {Count::copy_sectors, "copy_sectors", "",
     "sectors of global memory that they touched, each once in a copy"},
    {Count::copy_targets, "copy_targets", "",
     "CTAs that they were delivered to: more than one each with multicast"},
    {Count::operand_bytes, "operand_bytes", "",
     "bytes of shared memory that wgmma and tcgen05 read as operands, each once "
     "in an instruction"},
    {Count::operations, "operations", "",
     "floating-point operations: add, sub, mul one, fma two, those of the tensor "
     "core"},
    {Count::tensor_operations, "tensor_operations", "sm__ops_path_tensor",
     "of the tensor core: 2 m n k, a sparse product like a dense one"},
    {Count::waits, "waits", "",
     "waits for mbarriers, barriers, copies and products that took time"},
    {Count::wait_time, "wait_time", "",
     "their logical time, in units of kiln/check/timeline.h"},
};

std::span<const ProfileCounter> profile_counters() { return kCounters; }

double ProfiledOccupancy::occupancy() const {
  return max_warps_per_sm
             ? double(ctas_per_sm) * warps_per_cta / max_warps_per_sm
             : 0;
}

double ProfiledOccupancy::waves() const {
  return resident ? double(ctas) / double(resident) : 0;
}

double ProfiledOccupancy::tail() const {
  std::uint64_t last = resident ? ctas % resident : 0;
  return last ? 1 - double(last) / double(resident) : 0;
}

ProfileCounts Profile::total() const {
  ProfileCounts sum;
  for (const ProfiledInstruction &one : instructions)
    sum.add(one.counts);
  return sum;
}

std::map<std::string, std::uint64_t> Profile::tensor() const {
  std::map<std::string, std::uint64_t> all;
  for (const ProfiledInstruction &one : instructions)
    for (const auto &[shape, count] : one.tensor)
      all[shape] += count;
  return all;
}

std::uint64_t Profile::operations() const {
  return total()[Count::operations];
}

/// What holds for the accesses of both.
static void joinShape(AccessShape &all, const AccessShape &more) {
  if (!more.alignment)
    return;
  if (!all.alignment) {
    all = more;
    return;
  }
  all.alignment = std::min(all.alignment, more.alignment);
  if (all.stride != more.stride)
    all.stride.reset();
  if (all.bytes != more.bytes)
    all.bytes = 0;
  if (more.worst_wavefronts > all.worst_wavefronts) {
    all.worst_wavefronts = more.worst_wavefronts;
    all.worst_ideal = more.worst_ideal;
  }
  all.most_collisions = std::max(all.most_collisions, more.most_collisions);
}

static void addTraffic(ProfiledTraffic &sum, const ProfiledTraffic &more) {
  sum.requested_read += more.requested_read;
  sum.requested_written += more.requested_written;
  sum.read_once += more.read_once;
  sum.read_again += more.read_again;
  sum.written += more.written;
}

static auto placeInProgram(const ProfiledInstruction &one) {
  return std::tie(one.ptx_line, one.text, one.where.file, one.where.line);
}

void Profile::add(const Profile &more) {
  launches.insert(launches.end(), more.launches.begin(), more.launches.end());
  is_finished &= more.is_finished;
  addTraffic(traffic, more.traffic);
  for (const ProfiledInstruction &one : more.instructions) {
    auto known = std::find_if(
        instructions.begin(), instructions.end(), [&](const auto &other) {
          return placeInProgram(other) == placeInProgram(one);
        });
    if (known == instructions.end()) {
      instructions.push_back(one);
      continue;
    }
    known->counts.add(one.counts);
    joinShape(known->access, one.access);
    for (const auto &[shape, count] : one.tensor)
      known->tensor[shape] += count;
  }
}

void add_profile(std::vector<Profile> &profiles, Profile profile) {
  auto known = std::find_if(
      profiles.begin(), profiles.end(), [&](const Profile &other) {
        return other.kernel == profile.kernel && other.grid == profile.grid &&
               other.block == profile.block &&
               other.cluster == profile.cluster &&
               other.occupancy.shared_bytes == profile.occupancy.shared_bytes;
      });
  if (known == profiles.end())
    profiles.push_back(std::move(profile));
  else
    known->add(profile);
}

ProfileBy parse_profile_by(std::string_view word) {
  if (word == "line")
    return ProfileBy::line;
  if (word == "instruction")
    return ProfileBy::instruction;
  if (word == "kernel")
    return ProfileBy::kernel;
  userError("'{}' is no way to divide a profile; use line, instruction or "
            "kernel",
            word);
}

void save_profile(std::span<const Profile> profiles, const std::string &path) {
  write_file(path,
             {path.ends_with(".svg")               ? to_roofline(profiles)
              : path.ends_with(".speedscope.json") ? to_speedscope(profiles)
              : path.ends_with(".txt") ? to_table(profiles, {.rows = 0})
                                       : to_json(profiles)});
}

} // namespace kiln
