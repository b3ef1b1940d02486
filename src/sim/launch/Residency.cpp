// Residency: the occupancy rules of the hardware, from its description.
#include "sim/launch/Residency.h"
#include "sim/machine/SpecialRegisters.h"
#include "sim/program/Effect.h"
#include "sim/program/flow/SpinLoop.h"

#include <algorithm>
#include <unordered_set>

namespace kiln::sim {

static std::uint64_t count(const Dim3 &size) {
  return std::uint64_t(size[0]) * size[1] * size[2];
}

/// CTAs of so many warps that the registers of a multiprocessor are enough for.
/// Each of its parts has registers of its own, which whole warps are given.
static int ctasByRegisters(const DeviceDescription &device, int registers,
                           int warps) {
  int unit = device.register_granularity_warp;
  int perWarp = (registers * kLanes + unit - 1) / unit * unit;
  int ofPart = device.registers_per_sm / device.parts_per_sm / perWarp;
  return ofPart * device.parts_per_sm / warps;
}

static int warpsOf(const LaunchConfig &config) {
  return static_cast<int>((count(config.block) + kLanes - 1) / kLanes);
}

Residency residencyOf(const LaunchConfig &config,
                      std::uint32_t staticSharedBytes) {
  const DeviceDescription &device = config.device;
  Residency result;
  int warps = warpsOf(config);
  result.smemBytes =
      static_cast<int>(staticSharedBytes + config.dynamicSmemBytes) +
      device.reserved_smem_per_cta_bytes;
  result.byCtas = device.max_ctas_per_sm;
  result.byThreads = device.max_threads_per_sm / (warps * kLanes);
  result.byShared = device.smem_per_sm_bytes / std::max(result.smemBytes, 1);
  result.perSm = result.byCtas;
  result.limit = "CTAs";
  auto limitTo = [&](int most, const char *why) {
    if (most >= result.perSm)
      return;
    result.perSm = most;
    result.limit = why;
  };
  limitTo(result.byThreads, "threads");
  limitTo(result.byShared, "shared memory");
  if (config.registers_at_entry > 0) {
    result.byRegisters =
        ctasByRegisters(device, config.registers_at_entry, warps);
    limitTo(result.byRegisters, "registers");
  }
  std::uint64_t slots = std::uint64_t(device.sms) * std::max(result.perSm, 0);
  std::uint64_t perCluster = count(config.cluster);
  result.ctas = slots / perCluster * perCluster;
  return result;
}

ProfiledOccupancy occupancyOf(const LaunchConfig &config,
                              std::uint32_t staticSharedBytes) {
  LaunchConfig asked = config;
  asked.registers_at_entry = config.profiledRegisters;
  Residency residency = residencyOf(asked, staticSharedBytes);
  return {.by_threads = residency.byThreads,
          .by_shared = residency.byShared,
          .by_registers = residency.byRegisters,
          .by_ctas = residency.byCtas,
          .ctas_per_sm = residency.perSm,
          .limit = residency.limit,
          .registers = config.profiledRegisters,
          .registers_from = config.profiledRegistersFrom,
          .shared_bytes = static_cast<std::uint32_t>(residency.smemBytes),
          .warps_per_cta = warpsOf(config),
          .max_warps_per_sm = config.device.max_threads_per_sm / kLanes,
          .ctas = count(config.grid),
          .resident = residency.ctas};
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

bool isRepeatable(const Code &code) {
  auto readsClock = [](const Op &op) {
    const auto &operands = op.origin->operands;
    return std::any_of(operands.begin(), operands.end(),
                       [](const ptx::Operand &operand) {
                         return operand.kind == ptx::Operand::Kind::special &&
                                isClock(operand.name);
                       });
  };
  return !code.hasTrigger && !code.hasPrimaryWait &&
         std::none_of(code.ops.begin(), code.ops.end(), readsClock);
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
