// SpecialRegisters: %tid, %ctaid, %laneid and their like.
#include "sim/machine/SpecialRegisters.h"
#include "sim/machine/Machine.h"

namespace kiln::sim {

namespace {
struct Special {
  const char *name;
  int bytes;
  std::uint64_t (*value)(const Warp &warp, int lane);
  bool isUniform = true; ///< the same in all lanes of a warp
  void (*fill)(const Warp &warp, std::uint32_t *lanes) = nullptr;
};
} // namespace

/// Coordinate `axis` of the thread in its CTA.
static std::uint64_t threadCoordinate(const Warp &warp, int lane, int axis) {
  const Dim3 &block = warp.cta().machine().config().block;
  std::uint32_t linear = warp.thread(lane);
  if (axis == 0)
    return linear % block[0];
  if (axis == 1)
    return linear / block[0] % block[1];
  return linear / block[0] / block[1];
}

template <int Axis> static std::uint64_t tid(const Warp &warp, int lane) {
  return threadCoordinate(warp, lane, Axis);
}
/// The same of all lanes, with no division for each.
template <int Axis>
static void fillTid(const Warp &warp, std::uint32_t *lanes) {
  const Dim3 &block = warp.cta().machine().config().block;
  Dim3 at;
  for (int axis = 0; axis < 3; ++axis)
    at[axis] = static_cast<std::uint32_t>(threadCoordinate(warp, 0, axis));
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes[lane] = at[Axis];
    if (++at[0] == block[0]) {
      at[0] = 0;
      if (++at[1] == block[1]) {
        at[1] = 0;
        ++at[2];
      }
    }
  }
}
template <int Axis> static std::uint64_t ntid(const Warp &warp, int) {
  return warp.cta().machine().config().block[Axis];
}
template <int Axis> static std::uint64_t ctaid(const Warp &warp, int) {
  return warp.cta().index()[Axis];
}
template <int Axis> static std::uint64_t nctaid(const Warp &warp, int) {
  return warp.cta().machine().config().grid[Axis];
}
template <int Axis> static std::uint64_t clusterid(const Warp &warp, int) {
  return warp.cta().index()[Axis] / warp.cta().machine().config().cluster[Axis];
}
template <int Axis> static std::uint64_t nclusterid(const Warp &warp, int) {
  const LaunchConfig &config = warp.cta().machine().config();
  return config.grid[Axis] / config.cluster[Axis];
}
template <int Axis> static std::uint64_t ctaidInCluster(const Warp &warp, int) {
  return warp.cta().index()[Axis] % warp.cta().machine().config().cluster[Axis];
}
template <int Axis>
static std::uint64_t nctaidInCluster(const Warp &warp, int) {
  return warp.cta().machine().config().cluster[Axis];
}

/// Registers that mean nothing here read as zero.
static std::uint64_t nothing(const Warp &, int) { return 0; }
static std::uint64_t isExplicitCluster(const Warp &warp, int) {
  const Dim3 &cluster = warp.cta().machine().config().cluster;
  return cluster[0] * cluster[1] * cluster[2] > 1;
}

static constexpr Special kSpecials[] = {
    {"%tid.x", 4, tid<0>, false, fillTid<0>},
    {"%tid.y", 4, tid<1>, false, fillTid<1>},
    {"%tid.z", 4, tid<2>, false, fillTid<2>},
    {"%ntid.x", 4, ntid<0>},
    {"%ntid.y", 4, ntid<1>},
    {"%ntid.z", 4, ntid<2>},
    {"%ctaid.x", 4, ctaid<0>},
    {"%ctaid.y", 4, ctaid<1>},
    {"%ctaid.z", 4, ctaid<2>},
    {"%nctaid.x", 4, nctaid<0>},
    {"%nctaid.y", 4, nctaid<1>},
    {"%nctaid.z", 4, nctaid<2>},
    {"%clusterid.x", 4, clusterid<0>},
    {"%clusterid.y", 4, clusterid<1>},
    {"%clusterid.z", 4, clusterid<2>},
    {"%nclusterid.x", 4, nclusterid<0>},
    {"%nclusterid.y", 4, nclusterid<1>},
    {"%nclusterid.z", 4, nclusterid<2>},
    {"%cluster_ctaid.x", 4, ctaidInCluster<0>},
    {"%cluster_ctaid.y", 4, ctaidInCluster<1>},
    {"%cluster_ctaid.z", 4, ctaidInCluster<2>},
    {"%cluster_nctaid.x", 4, nctaidInCluster<0>},
    {"%cluster_nctaid.y", 4, nctaidInCluster<1>},
    {"%cluster_nctaid.z", 4, nctaidInCluster<2>},
    {"%cluster_ctarank", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().rankInCluster());
     }},
    {"%cluster_nctarank", 4,
     [](const Warp &warp, int) {
       const Dim3 &cluster = warp.cta().machine().config().cluster;
       return std::uint64_t(cluster[0]) * cluster[1] * cluster[2];
     }},
    {"%laneid", 4, [](const Warp &, int lane) { return std::uint64_t(lane); },
     false},
    {"%warpid", 4,
     [](const Warp &warp, int) { return std::uint64_t(warp.index()); }},
    {"%nwarpid", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().warps().size());
     }},
    {"%lanemask_eq", 4,
     [](const Warp &, int lane) { return std::uint64_t(1) << lane; }, false},
    {"%lanemask_lt", 4,
     [](const Warp &, int lane) { return (std::uint64_t(1) << lane) - 1; },
     false},
    {"%lanemask_le", 4,
     [](const Warp &, int lane) { return (std::uint64_t(2) << lane) - 1; },
     false},
    {"%lanemask_gt", 4,
     [](const Warp &, int lane) {
       return std::uint64_t(~((std::uint32_t)((std::uint64_t(2) << lane) - 1)));
     },
     false},
    {"%lanemask_ge", 4,
     [](const Warp &, int lane) {
       return std::uint64_t(~((std::uint32_t)((std::uint64_t(1) << lane) - 1)));
     },
     false},
    {"%smid", 4,
     [](const Warp &warp, int) { return std::uint64_t(warp.cta().sm()); }},
    {"%nsmid", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().machine().config().device.sms);
     }},
    {"%gridid", 8, nothing},
    {"%current_graph_exec", 8, nothing},
    {"%is_explicit_cluster", 4, isExplicitCluster},
    {"%aggr_smem_size", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().sharedBytes());
     }},
    // The system's part of shared memory, as sm_90 has it.
    {"%reserved_smem_offset_begin", 4, nothing},
    {"%reserved_smem_offset_end", 4,
     [](const Warp &, int) { return std::uint64_t(kFirstSharedAddress); }},
    {"%reserved_smem_offset_cap", 4,
     [](const Warp &, int) { return std::uint64_t(kFirstSharedAddress); }},
    {"%reserved_smem_offset_0", 4, nothing},
    {"%reserved_smem_offset_1", 4, nothing},
    {"%dynamic_smem_size", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().machine().config().dynamicSmemBytes);
     }},
    {"%total_smem_size", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().sharedBytes());
     }},
    // Halves of the address of a cooperative launch's workspace.
    {"%envreg1", 4,
     [](const Warp &warp, int) {
       return warp.cta().machine().gridWorkspace() >> 32;
     }},
    {"%envreg2", 4,
     [](const Warp &warp, int) {
       return warp.cta().machine().gridWorkspace() & 0xffffffff;
     }},
    {"WARP_SZ", 4, [](const Warp &, int) { return std::uint64_t(32); }},
};

std::optional<SpecialRegister> findSpecialRegister(std::string_view name) {
  for (const Special &special : kSpecials)
    if (name == special.name)
      return SpecialRegister{special.bytes, special.value, special.isUniform,
                             special.fill};
  if (name.starts_with("%envreg") || name.starts_with("%pm"))
    return SpecialRegister{name.ends_with("_64") ? 8 : 4, nothing, true,
                           nullptr};
  return std::nullopt;
}

} // namespace kiln::sim
