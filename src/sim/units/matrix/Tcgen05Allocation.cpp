// Tcgen05Allocation: columns of tensor memory, who gets them and gives them
// back.
//
// tcgen05.alloc waits where there are too few; with cta_group::2 it is done by
// a warp of each CTA of the pair, which wait for each other and get the same
// columns.
#include "sim/units/matrix/Tcgen05.h"

#include <algorithm>
#include <bit>

namespace kiln::sim {

namespace {
/// A decoded alloc or dealloc.
struct ColumnRequest {
  AddressOperand address; ///< where alloc writes
  Reg freed;              ///< what dealloc gives back
  Reg columns;
  Space space = Space::generic;
  int group = 1;
};
} // namespace

/// The number of columns of an alloc or dealloc, with the hardware's rule.
static std::uint32_t columnsOf(Warp &warp, const Op &op,
                               const ColumnRequest &request, LaneMask active,
                               FindingId id) {
  Findings &findings = warp.machine().findings();
  if (warp.poison(request.columns) & active)
    findings.fault(FindingId::uninitializedSize, warp, op, active,
                   "the number of columns depends on bytes that nobody wrote");
  auto columns =
      static_cast<std::uint32_t>(warp.read(request.columns, firstLane(active)));
  if (!std::has_single_bit(columns) || columns < TensorMemory::kLeastColumns ||
      columns > TensorMemory::kColumns)
    findings.fault(id, warp, op, active,
                   fmt::format("{} columns of tensor memory; a power of two "
                               "from {} to {} is accepted",
                               columns, TensorMemory::kLeastColumns,
                               TensorMemory::kColumns));
  return columns;
}

/// The rules between the allocations of a CTA.
static void checkAllocation(Warp &warp, const Op &op, LaneMask active,
                            const TensorMemory &memory, std::uint32_t columns) {
  Findings &findings = warp.machine().findings();
  if (memory.hasRelinquished)
    findings.fault(FindingId::tcgen05Alloc, warp, op, active,
                   "the CTA has given up the right to allocate tensor memory "
                   "(tcgen05.relinquish_alloc_permit)");
  if (memory.lastColumns && columns > memory.lastColumns)
    findings.report(FindingId::tcgen05Alloc, warp, op, active,
                    fmt::format("{} columns of tensor memory, and the CTA's "
                                "allocation before was of {}; the number must "
                                "not grow from one to the next",
                                columns, memory.lastColumns));
}

/// Tell the kernel where its columns are.
static void writeAddress(Warp &warp, const Op &op, const ColumnRequest &request,
                         int lane, std::uint32_t column) {
  ByteRange place =
      Accessor(warp, op, "tcgen05.alloc")
          .locate(request.space, request.address.read(warp, op, lane), 4, 4,
                  lane, /*isWrite=*/true);
  std::uint32_t bits = TensorAddress{0, column}.bits();
  std::memcpy(place.data, &bits, sizeof(bits));
  place.markWritten(sizeof(bits));
}

/// Columns for both CTAs of a pair; nothing: not now.
static std::optional<std::uint32_t> allocateForPair(Warp &warp, const Op &op,
                                                    LaneMask active, Cta &peer,
                                                    std::uint32_t columns) {
  TensorMemory &mine = warp.cta().tensorMemory();
  TensorMemory &other = peer.tensorMemory();
  if (mine.granted)
    return std::exchange(mine.granted, std::nullopt);
  if (!other.wanted) {
    mine.wanted = columns;
    mine.wantedOp = &op;
    mine.wantedWarp = &warp;
    return std::nullopt;
  }
  if (other.wanted != columns)
    warp.machine().findings().fault(
        FindingId::tcgen05Alloc, warp, op, active,
        fmt::format("the CTAs of a pair allocate together, and this one asks "
                    "for {} columns of tensor memory where CTA {} of the "
                    "cluster asks for {}",
                    columns, peer.rankInCluster(), other.wanted));
  std::optional<std::uint32_t> column =
      TensorMemory::findFree(mine, other, columns);
  if (!column)
    return std::nullopt;
  mine.allocate({*column, columns, &op, &warp});
  other.allocate({*column, columns, other.wantedOp, other.wantedWarp});
  other.wanted = 0;
  other.granted = column;
  return column;
}

static Step allocate(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &request = *static_cast<const ColumnRequest *>(op.extra.get());
  std::uint32_t columns =
      columnsOf(warp, op, request, active, FindingId::tcgen05Alloc);
  std::vector<Cta *> ctas = ctasOf(warp, op, active, request.group);
  TensorMemory &memory = warp.cta().tensorMemory();
  Group &group = warp.group();
  bool isNew = group.wait.kind != WaitReason::Kind::tensorMemory;
  if (isNew)
    checkAllocation(warp, op, active, memory, columns);
  std::optional<std::uint32_t> column;
  if (request.group == 2) {
    column = allocateForPair(warp, op, active, *warp.cta().peer(), columns);
  } else {
    column = TensorMemory::findFree(memory, memory, columns);
    if (column)
      memory.allocate({*column, columns, &op, &warp});
  }
  if (!column) {
    group.wait = {WaitReason::Kind::tensorMemory, columns, 0};
    return Step::blocked;
  }
  group.wait = {};
  warp.watchers().tell(Allocation{Allocation::Of::tensorMemory, warp, op,
                                  active, *column, columns,
                                  /*isFreed=*/false});
  writeAddress(warp, op, request, firstLane(active), *column);
  warp.cta().cluster().notify();
  return Step::next;
}

/// "128 from column 0 on, 64 from column 128 on"
static std::string describeAllocations(const TensorMemory &memory) {
  std::string text;
  for (const TensorMemory::Allocation &one : memory.allocations)
    text += fmt::format("{}{} from column {} on", text.empty() ? "" : ", ",
                        one.columns, one.column);
  return text.empty() ? "none" : text;
}

static Step deallocate(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &request = *static_cast<const ColumnRequest *>(op.extra.get());
  Findings &findings = warp.machine().findings();
  std::uint32_t columns =
      columnsOf(warp, op, request, active, FindingId::tcgen05Dealloc);
  ctasOf(warp, op, active, request.group);
  AddressOperand operand{request.freed, 0};
  TensorAddress address = tensorAddress(warp, op, operand, active);
  TensorMemory &memory = warp.cta().tensorMemory();
  const TensorMemory::Allocation *found = memory.find(address.column);
  if (!found || found->columns != columns || address.lane)
    findings.fault(
        FindingId::tcgen05Dealloc, warp, op, active,
        fmt::format("{} columns from lane {}, column {} on are not an "
                    "allocation of the CTA; allocated are {}",
                    columns, address.lane, address.column,
                    describeAllocations(memory)),
        {"tensor", address.bits()});
  if (found->warp != &warp)
    findings.report(FindingId::tcgen05DeallocWarp, warp, op, active,
                    fmt::format("warp {} gives back what warp {} has allocated "
                                "at {}; the PTX text lets one warp do both",
                                warp.index(), found->warp->index(),
                                findings.placeOf(*found->op)),
                    {"tensor", address.bits()});
  warp.watchers().tell(Allocation{Allocation::Of::tensorMemory, warp, op,
                                  active, address.column, columns,
                                  /*isFreed=*/true});
  memory.free(address.column);
  warp.cta().cluster().notify();
  return Step::next;
}

static Step relinquish(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  ctasOf(warp, op, active, static_cast<int>(op.imm));
  warp.cta().tensorMemory().hasRelinquished = true;
  return Step::next;
}

void decodeTensorAlloc(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  ColumnRequest request;
  request.address = AddressOperand::decode(decoder, instruction.operands[0]);
  request.columns = decoder.reg(instruction.operands[1], 4);
  request.space = spaceOf(instruction);
  request.group = ctaGroupOf(instruction);
  op.extra = std::make_shared<ColumnRequest>(request);
  op.handler = allocate;
}

void decodeTensorDealloc(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  ColumnRequest request;
  request.freed = decoder.reg(instruction.operands[0], 4);
  request.columns = decoder.reg(instruction.operands[1], 4);
  request.group = ctaGroupOf(instruction);
  op.extra = std::make_shared<ColumnRequest>(request);
  op.handler = deallocate;
}

void decodeTensorRelinquish(Decoder &, const ptx::Instruction &instruction,
                            Op &op) {
  op.imm = ctaGroupOf(instruction);
  op.handler = relinquish;
}

} // namespace kiln::sim
