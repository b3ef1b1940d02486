// Profiler: which accesses are a request, and of which memory.
#include "sim/profile/Profiler.h"
#include "sim/machine/Machine.h"
#include "sim/profile/AccessPattern.h"
#include "sim/program/Effect.h"
#include "sim/units/matrix/Tcgen05Product.h"
#include "sim/units/matrix/WgmmaProduct.h"
#include "sim/units/memory/Access.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::sim {

static constexpr std::uint32_t kMaxAlignment = 128;

Profiler::Profiler(const Code &code, const std::vector<Operations> &operations)
    : code_(code), operations_(operations) {
  cost_.instructions.resize(code.ops.size());
}

InstructionCost &Profiler::costOf(const Op &op) {
  return cost_.instructions[static_cast<std::size_t>(&op - code_.ops.data())];
}

static AccessKind kindOf(const Op &op) {
  switch (op.effect->kind) {
  case EffectKind::load:
  case EffectKind::copyIn:
    return AccessKind::load;
  case EffectKind::store:
    return AccessKind::store;
  case EffectKind::atomic:
    return AccessKind::atomic;
  default:
    return AccessKind::none;
  }
}

/// ldmatrix and stmatrix, one access for each lane that brings a row.
static bool isMatrix(const Op &op) {
  return op.row && op.row->unit == Unit::matrix;
}

/// Constants have a cache of their own, and lie in global memory for the
/// simulator alone.
static bool isConstant(const Op &op) { return op.origin->has("const"); }

static std::uint32_t alignmentOf(std::uint64_t address) {
  return address % kMaxAlignment == 0
             ? kMaxAlignment
             : 1u << std::countr_zero(address % kMaxAlignment);
}

void Profiler::touch(const Warp &warp, const LaneAccess &access) {
  auto &list = !access.owner                  ? touched_.global
               : access.owner == &warp.cta() ? touched_.shared
                                              : touched_.remote;
  list.push_back(access);
}

/// Bytes that a load or a store takes of a lane.
static std::uint32_t bytesOfLane(const Op &op) {
  // 128 bits are two registers of 64.
  std::size_t registers = std::max<std::size_t>(op.list.size(), 1);
  if (op.effect->bytes == 16)
    registers = std::max<std::size_t>(registers / 2, 1);
  return static_cast<std::uint32_t>(op.effect->bytes) *
         static_cast<std::uint32_t>(registers);
}

void Profiler::touchUntold(Warp &warp, const Op &op, LaneMask lanes) {
  const Effect &effect = *op.effect;
  AccessKind kind = kindOf(op);
  bool isAccess = kind == AccessKind::load || kind == AccessKind::store;
  bool isAddress = effect.space == Space::local ||
                   effect.space == Space::generic || op.isMasked;
  if (!isAccess || !isAddress || !effect.address.isValid() || isConstant(op))
    return;
  LaneAccess access{.bytes = bytesOfLane(op),
                    .isWrite = kind == AccessKind::store};
  forEachLane(lanes, [&](int lane) {
    std::uint64_t address = warp.read(effect.address, lane) +
                            static_cast<std::uint64_t>(effect.offset);
    std::uint64_t window = address >> kWindowShift;
    std::uint64_t inside = address & ((std::uint64_t(1) << kWindowShift) - 1);
    bool isGeneric = effect.space == Space::generic;
    access.lane = static_cast<std::uint8_t>(lane);
    access.owner = nullptr;
    access.address = address;
    if (effect.space == Space::local ||
        (isGeneric && window == kLocalWindow >> kWindowShift)) {
      access.address = isGeneric ? inside : address;
      touched_.local.push_back(access);
      return;
    }
    if (!op.isMasked || (isGeneric && window == kParamWindow >> kWindowShift))
      return;
    bool isShared =
        effect.space == Space::shared ||
        (isGeneric && window == kSharedWindow >> kWindowShift);
    if (isShared) {
      std::uint32_t plain;
      access.owner =
          sharedOwner(warp.cta(), isGeneric ? inside : address, plain);
      if (!access.owner || plain < kFirstSharedAddress)
        return;
      access.address = plain - kFirstSharedAddress;
    } else if (!isGeneric && effect.space != Space::global) {
      return;
    }
    touch(warp, access);
  });
}

void Profiler::on(const InstructionBegin &event) {
  recorder_.before(event.warp, event.op, event.lanes);
  current_ = &event.op;
  together_ = event.warp.group().lanes;
  touched_ = {};
  touchUntold(event.warp, event.op, event.lanes);
}

void Profiler::on(const InstructionSkip &event) {
  InstructionCost &cost = costOf(event.op);
  ++cost.counts[Count::executions];
  cost.counts[Count::threads] +=
      static_cast<std::uint64_t>(countLanes(event.lanes));
  countBranch(cost, event.op, 0, event.lanes);
}

void Profiler::on(const ThreadAccess &event) {
  // What is told of masked loads is told again where their values are used.
  if (&event.op != current_ || event.op.isMasked || isConstant(event.op))
    return;
  for (const LaneAccess &access : event.accesses)
    touch(event.warp, access);
}

void Profiler::on(const AsyncAccess &event) {
  if (&event.op != current_)
    return;
  bool isCopy = event.op.effect->kind == EffectKind::copyIn ||
                event.op.effect->kind == EffectKind::copyOut;
  if (!event.cells.empty()) {
    if (event.isPartial)
      return;
    for (const PageCells &page : event.cells)
      touched_.operandBytes +=
          static_cast<std::uint64_t>(std::popcount(page.cells)) *
          Shadow::kCellBytes;
    touched_.isProduct = event.op.effect->kind == EffectKind::product;
  } else if (!event.isThroughProxy) {
    for (const ByteRun &run : event.runs)
      touch(event.warp,
            {.address = run.begin,
             .owner = event.owner,
             .bytes = static_cast<std::uint32_t>(run.bytes),
             .lane = static_cast<std::uint8_t>(firstLane(event.issuers)),
             .isWrite = event.isWrite});
  } else if (isCopy) {
    touchCopy(event);
  }
}

/// A copy is told of once where it reads, and once for each place it writes.
void Profiler::touchCopy(const AsyncAccess &event) {
  touched_.sources += !event.isWrite;
  touched_.targets += event.isWrite && event.owner;
  std::uint64_t bytes = 0;
  for (const ByteRun &run : event.runs)
    bytes += run.bytes;
  bool isWithin = event.op.effect->kind == EffectKind::copyIn && event.owner;
  if (!event.owner || (isWithin && !event.isWrite))
    touched_.bytes += bytes;
  if (event.owner) {
    // st.async has no source but registers.
    if (event.isWrite)
      touched_.remote.push_back(
          {.address = event.runs.empty() ? 0 : event.runs.front().begin,
           .owner = event.owner,
           .bytes = static_cast<std::uint32_t>(bytes),
           .lane = static_cast<std::uint8_t>(firstLane(event.issuers)),
           .isWrite = true});
    return;
  }
  std::vector<std::uint64_t> sectors = sectorsOf(event.runs);
  touched_.sectors += sectors.size();
  for (std::uint64_t sector : sectors)
    event.isWrite ? cost_.sectors.write(sector) : cost_.sectors.read(sector);
  (event.isWrite ? cost_.sectorsWritten : cost_.sectorsRead) += sectors.size();
}

void Profiler::countBranch(InstructionCost &cost, const Op &op, LaneMask lanes,
                           LaneMask together) {
  if (!op.row || op.row->traits.flow != Flow::branch)
    return;
  ++cost.counts[Count::branches];
  cost.counts[Count::divergent_branches] += lanes && lanes != together;
}

/// What a request has in common with others: all of it but its cost.
static AccessShape shapeOf(const std::vector<LaneAccess> &accesses,
                           AccessShape shape) {
  shape.bytes = accesses.front().bytes;
  std::uint64_t first = accesses.front().address;
  for (const LaneAccess &access : accesses) {
    first = std::min(first, access.address);
    if (access.bytes != shape.bytes)
      shape.bytes = 0;
  }
  shape.alignment = alignmentOf(first);
  shape.stride = strideOf(accesses, shape.is_matrix);
  if (shape.kind == AccessKind::atomic)
    shape.most_collisions = mostAtOneAddress(accesses);
  return shape;
}

void Profiler::countGlobal(InstructionCost &cost, AccessShape shape) {
  const auto &accesses = touched_.global;
  if (accesses.empty())
    return;
  std::vector<std::uint64_t> sectors = sectorsOf(accesses);
  ++cost.counts[Count::global_requests];
  cost.counts[Count::global_bytes] += bytesOf(accesses);
  cost.counts[Count::global_sectors] += sectors.size();
  cost.counts[Count::global_sectors_ideal] +=
      idealSectors(accesses, sectors.size());
  bool isRead = shape.kind == AccessKind::load;
  for (std::uint64_t sector : sectors)
    isRead ? cost_.sectors.read(sector) : cost_.sectors.write(sector);
  (isRead ? cost_.sectorsRead : cost_.sectorsWritten) += sectors.size();
  cost.addShape(shapeOf(accesses, shape));
}

void Profiler::countLocal(InstructionCost &cost, AccessShape shape) {
  const auto &accesses = touched_.local;
  if (accesses.empty())
    return;
  std::uint64_t sectors = localSectors(accesses).size();
  ++cost.counts[Count::local_requests];
  cost.counts[Count::local_bytes] += bytesOf(accesses);
  cost.counts[Count::local_sectors] += sectors;
  cost.counts[Count::local_sectors_ideal] += idealSectors(accesses, sectors);
  cost.addShape(shapeOf(accesses, shape));
}

void Profiler::countShared(InstructionCost &cost, const Op &op,
                           AccessShape shape) {
  const auto &accesses = touched_.shared;
  if (accesses.empty())
    return;
  ++cost.counts[Count::shared_requests];
  cost.counts[Count::shared_bytes] += bytesOf(accesses);
  // The hardware has no instruction for fragments of wmma, and what it does
  // with the destinations of cp.async was not measured.
  bool isKnown = accesses.size() <= kLanes &&
                 op.effect->kind != EffectKind::copyIn;
  if (!isKnown)
    return;
  Wavefronts wavefronts = wavefrontsOf(accesses, shape.kind, shape.is_matrix);
  cost.counts[Count::shared_wavefronts] += wavefronts.count;
  cost.counts[Count::shared_wavefronts_ideal] += wavefronts.ideal;
  shape.worst_wavefronts = wavefronts.count;
  shape.worst_ideal = wavefronts.ideal;
  cost.addShape(shapeOf(accesses, shape));
}

void Profiler::countCopies(InstructionCost &cost) {
  if (!touched_.sources) {
    if (touched_.remote.empty())
      return;
    ++cost.counts[Count::cluster_requests];
    cost.counts[Count::cluster_bytes] += bytesOf(touched_.remote);
    return;
  }
  cost.counts[Count::copies] += touched_.sources;
  cost.counts[Count::copy_bytes] += touched_.bytes;
  cost.counts[Count::copy_sectors] += touched_.sectors;
  cost.counts[Count::copy_targets] += touched_.targets;
}

/// Operands of wgmma: each byte of A and of B once, 128 in a wavefront, in every
/// swizzle. Those of tcgen05 were not measured.
void Profiler::countOperands(InstructionCost &cost, const Op &op) {
  cost.counts[Count::operand_bytes] += touched_.operandBytes;
  if (!touched_.isProduct)
    return;
  const auto &product = *static_cast<const Product *>(op.extra.get());
  if (product.shape.isSparse)
    return;
  constexpr std::uint64_t kRows = kWarpRows * kWarpsPerGroup;
  std::uint64_t rows = static_cast<std::uint64_t>(product.shape.n) +
                       (product.fragment.empty() ? kRows : 0);
  std::uint64_t wavefronts =
      rows * static_cast<std::uint64_t>(product.shape.k) *
      static_cast<std::uint64_t>(bytesOf(product.shape.typeA)) /
      kWavefrontBytes;
  cost.counts[Count::shared_wavefronts] += wavefronts;
  cost.counts[Count::shared_wavefronts_ideal] += wavefronts;
}

/// "m128n256k16.kind::f16.cta_group::1"
static std::string describe(const TensorShape &shape,
                            const ptx::Instruction &instruction) {
  std::string text = fmt::format("m{}n{}k{}", shape.m, shape.n, shape.k);
  for (const std::string &modifier : instruction.modifiers)
    if (modifier.starts_with("kind::") || modifier.starts_with("cta_group::"))
      text += "." + modifier;
  return text;
}

void Profiler::countOperations(InstructionCost &cost, Warp &warp, const Op &op,
                               LaneMask lanes) {
  // The four warps of a warpgroup execute one wgmma: the last one has it.
  bool isCounted =
      op.effect->kind != EffectKind::product || touched_.isProduct;
  auto count = [&](const std::string &shape, std::uint64_t operations) {
    if (isCounted)
      ++cost.tensor[shape];
    cost.counts[Count::tensor_operations] += operations;
    cost.counts[Count::operations] += operations;
  };
  if (op.effect->kind == EffectKind::tensorProduct) {
    const auto &product = *static_cast<const TensorProduct *>(op.extra.get());
    forEachLane(lanes, [&](int lane) {
      TensorShape shape;
      std::string why;
      auto bits =
          static_cast<std::uint32_t>(warp.read(op.effect->shape, lane));
      if (readInstruction(bits, product.form, shape, why))
        count(describe(shape, *op.origin),
              std::uint64_t(2) * static_cast<std::uint64_t>(shape.m) *
                  static_cast<std::uint64_t>(shape.n) *
                  static_cast<std::uint64_t>(shape.k));
    });
    return;
  }
  const Operations &operations =
      operations_[static_cast<std::size_t>(&op - code_.ops.data())];
  if (!operations.tensor.empty())
    return count(operations.tensor, operations.perWarp);
  cost.counts[Count::operations] +=
      operations.perLane * static_cast<std::uint64_t>(countLanes(lanes));
}

void Profiler::on(const InstructionEnd &event) {
  recorder_.after(event.warp, event.op, event.lanes, event.step);
  current_ = nullptr;
  if (event.step == Step::blocked)
    return;
  const Op &op = event.op;
  InstructionCost &cost = costOf(op);
  ++cost.counts[Count::executions];
  cost.counts[Count::threads] +=
      static_cast<std::uint64_t>(countLanes(together_));
  cost.counts[Count::threads_on] +=
      static_cast<std::uint64_t>(countLanes(event.lanes));
  countBranch(cost, op, event.lanes, together_);
  AccessShape shape{.kind = kindOf(op), .is_matrix = isMatrix(op)};
  for (const auto *list : {&touched_.global, &touched_.shared})
    if (shape.kind == AccessKind::atomic && !list->empty()) {
      cost.counts[Count::atomic_lanes] += list->size();
      cost.counts[Count::atomic_collisions] += collisionsOf(*list);
    }
  countGlobal(cost, shape);
  countLocal(cost, shape);
  countShared(cost, op, shape);
  countCopies(cost);
  countOperands(cost, op);
  countOperations(cost, event.warp, op, event.lanes);
}

LaunchCost Profiler::take() {
  recorder_.forEachWait([&](const Op &op, std::uint64_t units) {
    InstructionCost &cost = costOf(op);
    ++cost.counts[Count::waits];
    cost.counts[Count::wait_time] += units;
  });
  return std::move(cost_);
}

} // namespace kiln::sim
