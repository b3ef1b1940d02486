// Tcgen05: addresses, ranges and pairs of CTAs.
#include "sim/units/matrix/Tcgen05.h"

namespace kiln::sim {

int ctaGroupOf(const ptx::Instruction &instruction) {
  return instruction.has("cta_group::2") ? 2 : 1;
}

TensorAddress tensorAddress(Warp &warp, const Op &op,
                            const AddressOperand &operand, LaneMask active) {
  std::uint64_t first = operand.read(warp, op, firstLane(active));
  forEachLane(active, [&](int lane) {
    if (operand.read(warp, op, lane) != first)
      warp.machine().findings().fault(
          FindingId::tcgen05Address, warp, op, active,
          fmt::format("the lanes of the warp give different addresses of "
                      "tensor memory, {:#x} and {:#x}; all give the same one",
                      first, operand.read(warp, op, lane)));
  });
  return TensorAddress::of(static_cast<std::uint32_t>(first));
}

void checkTensorRange(Warp &warp, const Op &op, LaneMask lanes, Cta &owner,
                      const TensorRange &range, const char *what) {
  auto fault = [&](const std::string &why) {
    std::string text = fmt::format(
        "{} has lanes {} to {} and columns {} to {} of tensor memory", what,
        range.lane, range.lane + range.lanes - 1, range.column,
        range.column + range.columns - 1);
    if (&owner != &warp.cta())
      text += fmt::format(" of CTA {} of the cluster", owner.rankInCluster());
    warp.machine().findings().fault(
        FindingId::tcgen05Address, warp, op, lanes, text + why,
        {"tensor", TensorAddress{range.lane, range.column}.bits()});
  };
  if (range.lane + range.lanes > TensorMemory::kLanes ||
      range.column + range.columns > TensorMemory::kColumns)
    fault(fmt::format(", which has {} lanes of {} columns",
                      TensorMemory::kLanes, TensorMemory::kColumns));
  if (auto free = owner.tensorMemory().firstFree(range.column, range.columns))
    fault(fmt::format("; column {} is not allocated", *free));
}

std::vector<Cta *> ctasOf(Warp &warp, const Op &op, LaneMask lanes, int group) {
  Cta &cta = warp.cta();
  Findings &findings = warp.machine().findings();
  TensorMemory &memory = cta.tensorMemory();
  if (memory.group && memory.group != group)
    findings.report(FindingId::tcgen05CtaGroup, warp, op, lanes,
                    fmt::format("cta_group::{} here and cta_group::{} before; "
                                "a kernel has one",
                                group, memory.group));
  memory.group = group;
  if (group == 1)
    return {&cta};
  Cta *peer = cta.peer();
  if (!peer)
    findings.fault(FindingId::tcgen05CtaGroup, warp, op, lanes,
                   fmt::format("cta_group::2 is for pairs of CTAs, and CTA {} "
                               "of a cluster of {} has no other one",
                               cta.rankInCluster(), cta.cluster().size()));
  if (cta.rankInCluster() % 2)
    return {peer, &cta};
  return {&cta, peer};
}

std::uint32_t originOf(Warp &warp, const Op &op, const TensorMemory &memory,
                       std::uint32_t lane, std::uint32_t column) {
  if (std::uint32_t known =
          memory.valid.origin(TensorMemory::offset(lane, column), 4))
    return known;
  return warp.cta().cluster().noteOrigin(op, [&] {
    return fmt::format("lane {}, column {} of tensor memory, which nobody "
                       "wrote",
                       lane, column);
  });
}

void tellOperands(Warp &warp, const Op &op, LaneMask lanes, Cta &cta,
                  const std::vector<PageCells> &cells) {
  warp.watchers().tell(AsyncAccess{.warp = warp,
                                   .op = op,
                                   .issuers = lanes,
                                   .over = {Completion::By::tensorOperations},
                                   .isWrite = false,
                                   .owner = &cta,
                                   .cells = cells});
}

void tellTensorAccess(Warp &warp, const Op &op, LaneMask lanes,
                      Completion::By by, bool isWrite, Cta &cta,
                      std::span<const TensorRange> ranges) {
  warp.watchers().tell(AsyncAccess{.warp = warp,
                                   .op = op,
                                   .issuers = lanes,
                                   .over = {by},
                                   .isWrite = isWrite,
                                   .owner = &cta,
                                   .ranges = ranges});
}

void enqueueOperation(Warp &warp, std::function<void()> work) {
  OrderedWork &operations = warp.tensor.operations;
  std::uint64_t number = operations.add(std::move(work));
  warp.cta().cluster().enqueue(
      [&operations, number] { operations.finish(number); });
}

} // namespace kiln::sim
