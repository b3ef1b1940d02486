// Residency: the occupancy rules of the hardware, from its description.
#include "sim/launch/Residency.h"
#include "sim/program/Effect.h"
#include "sim/program/flow/SpinLoop.h"

#include <algorithm>
#include <unordered_set>

namespace kiln::sim {

static std::uint64_t count(const Dim3 &size) {
  return std::uint64_t(size[0]) * size[1] * size[2];
}

Residency residencyOf(const LaunchConfig &config,
                      std::uint32_t staticSharedBytes) {
  const DeviceDescription &device = config.device;
  Residency result;
  auto threads = static_cast<int>(count(config.block));
  int warps = (threads + kLanes - 1) / kLanes;
  result.smemBytes =
      static_cast<int>(staticSharedBytes + config.dynamicSmemBytes) +
      device.reserved_smem_per_cta_bytes;
  result.perSm = device.max_ctas_per_sm;
  result.limit = "CTAs";
  auto limitTo = [&](int most, const char *why) {
    if (most >= result.perSm)
      return;
    result.perSm = most;
    result.limit = why;
  };
  limitTo(device.max_threads_per_sm / (warps * kLanes), "threads");
  limitTo(device.smem_per_sm_bytes / std::max(result.smemBytes, 1),
          "shared memory");
  if (config.registers_at_entry > 0) {
    int unit = device.register_granularity_warp;
    int perWarp = (config.registers_at_entry * kLanes + unit - 1) / unit * unit;
    limitTo(device.registers_per_sm / (perWarp * warps), "registers");
  }
  std::uint64_t slots = std::uint64_t(device.sms) * std::max(result.perSm, 0);
  std::uint64_t perCluster = count(config.cluster);
  result.ctas = slots / perCluster * perCluster;
  return result;
}

bool canReorder(const Code &code) {
  auto isPlain = [](const Op &op) {
    if (op.row && op.row->traits.flow == Flow::leave)
      return true;
    switch (op.effect->kind) {
    case EffectKind::none:
    case EffectKind::sleep:
    case EffectKind::ctaBarrier:
    case EffectKind::warpBarrier:
    case EffectKind::registers:
      return true;
    case EffectKind::load:
    case EffectKind::store:
      return !op.effect->isStrong;
    default:
      return false;
    }
  };
  return std::any_of(code.ops.begin(), code.ops.end(), [&](const Op &op) {
    return !isPlain(op) || op.spin;
  });
}

bool talksThroughGlobal(const Code &code) {
  auto isGlobal = [](const Op &op) {
    return op.effect->space == Space::global ||
           op.effect->space == Space::generic;
  };
  for (std::size_t i = 0; i < code.ops.size(); ++i) {
    const Op &op = code.ops[i];
    if ((op.effect->isStrong && isGlobal(op)) || op.effect->isClusterRequest)
      return true;
    if (op.effect->kind == EffectKind::copyOut && op.effect->isReduction)
      return true;
    if (!op.spin)
      continue;
    // A loop without effects whose loads stay where they are.
    std::unordered_set<std::uint32_t> moving;
    for (const Reg &reg : op.spin->registers)
      moving.insert(reg.index);
    bool isQuiet = true, isPolling = false;
    for (std::size_t j = i - static_cast<std::size_t>(op.spin->length); j <= i;
         ++j) {
      const Op &inside = code.ops[j];
      isQuiet &= inside.isQuiet;
      bool isMoving = moving.contains(inside.effect->address.index);
      isPolling |= inside.effect->kind == EffectKind::load &&
                   isGlobal(inside) && !isMoving;
    }
    if (isQuiet && isPolling)
      return true;
  }
  return false;
}

} // namespace kiln::sim
