// Access: bounds, alignment and windows of every address.
#include "sim/Access.h"
#include "support/Error.h"

namespace kiln::sim {

Space spaceOf(const ptx::Instruction &instruction) {
  for (const std::string &modifier : instruction.modifiers) {
    if (modifier == "global" || modifier == "const")
      return Space::global;
    if (modifier == "shared" || modifier == "shared::cta" ||
        modifier == "shared::cluster")
      return Space::shared;
    if (modifier == "local")
      return Space::local;
    if (modifier == "param" || modifier == "param::entry" ||
        modifier == "param::func")
      return Space::param;
  }
  return Space::generic;
}

void checkAligned(Warp &warp, const Op &op, LaneMask active) {
  if (active == warp.live())
    return;
  warp.machine().fault(
      "divergent-aligned", warp, op, active,
      fmt::format("{} is for whole warps and {} of {} lanes reached it",
                  op.origin->fullOpcode(), countLanes(active),
                  countLanes(warp.live())));
}

void checkWholeWarp(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  if (active == kAllLanes)
    return;
  warp.machine().fault(
      "divergent-aligned", warp, op, active,
      fmt::format("{} is for whole warps and this one has {} lanes",
                  op.origin->fullOpcode(), countLanes(active)));
}

Cta *sharedOwner(Cta &cta, std::uint64_t address, std::uint32_t &plain) {
  plain = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  std::uint64_t rank = address >> kRankShift;
  if (rank == 0)
    return &cta;
  if (rank > cta.cluster().size())
    return nullptr;
  return &cta.cluster().cta(static_cast<int>(rank) - 1);
}

void Accessor::fault(const char *id, int lane, const std::string &message) {
  warp_.machine().fault(id, warp_, op_, LaneMask(1) << lane, message);
}

Place Accessor::locateShared(std::uint64_t address, std::size_t bytes,
                             std::size_t alignment, int lane, Cta **owner) {
  std::uint32_t plain;
  Cta *cta = sharedOwner(warp_.cta(), address, plain);
  if (!cta)
    fault("out-of-bounds", lane,
          fmt::format("shared address {:#x} names CTA {} of a cluster of {}",
                      address, (address >> kRankShift) - 1,
                      warp_.cta().cluster().size()));
  if (owner)
    *owner = cta;
  if (plain < kFirstSharedAddress ||
      plain - kFirstSharedAddress + bytes > cta->shared.size())
    fault("out-of-bounds", lane,
          fmt::format("{} of {} bytes at shared address {}; the CTA has {} "
                      "bytes from address {} on",
                      verb_, bytes, plain, cta->shared.size(),
                      kFirstSharedAddress));
  if (plain % alignment)
    fault("misaligned", lane,
          fmt::format("{} of {} bytes at shared address {}, which is not a "
                      "multiple of {}",
                      verb_, bytes, plain, alignment));
  std::size_t offset = plain - kFirstSharedAddress;
  return {cta->shared.data() + offset, &cta->sharedValid, offset, cta};
}

Place Accessor::locateGlobal(std::uint64_t address, std::size_t bytes,
                             std::size_t alignment, int lane, bool isWrite) {
  bool isInside = last_ && address >= last_->base &&
                  address - last_->base + bytes <= last_->bytes;
  if (!isInside) {
    last_ = warp_.machine().memory().find(address);
    if (!last_ || address - last_->base + bytes > last_->bytes)
      fault("out-of-bounds", lane,
            fmt::format("{} of {} bytes at global address {:#x}: {}", verb_,
                        bytes, address,
                        warp_.machine().memory().describe(address)));
  }
  if (address % alignment)
    fault("misaligned", lane,
          fmt::format("{} of {} bytes at global address {:#x} ({}), which is "
                      "not a multiple of {}",
                      verb_, bytes, address,
                      warp_.machine().memory().describe(address), alignment));
  if (isWrite && last_->isReadOnly)
    fault("read-only", lane,
          fmt::format("{} to the constant variable {}", verb_, last_->name));
  return {last_->at(address), &last_->valid,
          static_cast<std::size_t>(address - last_->base)};
}

Place Accessor::locate(Space space, std::uint64_t address, std::size_t bytes,
                       std::size_t alignment, int lane, bool isWrite) {
  if (space == Space::generic) {
    std::uint64_t window = address >> kWindowShift;
    std::uint64_t inside = address & ((std::uint64_t(1) << kWindowShift) - 1);
    switch (window) {
    case kSharedWindow >> kWindowShift:
      return locateShared(inside, bytes, alignment, lane);
    case kParamWindow >> kWindowShift:
      return locate(Space::param, inside, bytes, alignment, lane, isWrite);
    case kLocalWindow >> kWindowShift:
      return locate(Space::local, inside, bytes, alignment, lane, isWrite);
    default:
      return locateGlobal(address, bytes, alignment, lane, isWrite);
    }
  }
  if (space == Space::global)
    return locateGlobal(address, bytes, alignment, lane, isWrite);
  if (space == Space::shared)
    return locateShared(address, bytes, alignment, lane);
  if (space == Space::param) {
    const std::vector<std::uint8_t> &params = warp_.machine().config().params;
    if (address + bytes > params.size())
      fault("out-of-bounds", lane,
            fmt::format("{} of {} bytes at {} of {} bytes of parameters", verb_,
                        bytes, address, params.size()));
    return {const_cast<std::uint8_t *>(params.data()) + address, nullptr, 0};
  }
  std::size_t perLane = warp_.code().localBytes;
  if (address + bytes > perLane)
    fault("out-of-bounds", lane,
          fmt::format("{} of {} bytes at local address {}; a thread has {}",
                      verb_, bytes, address, perLane));
  return {warp_.local.data() + perLane * lane + address, nullptr, 0};
}

} // namespace kiln::sim
