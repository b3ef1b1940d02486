// WgmmaInstructions: the tensor core, and the registers a warpgroup may use.
//
// A wgmma is one operation of four warps: it starts when the fourth has issued
// it and is finished for all of them together. Operations of a warpgroup are
// done in the order they were issued; when, the order of the run decides, and
// at the latest the wait that covers them.
#include "sim/program/Effect.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/matrix/MatrixAccess.h"
#include "sim/units/matrix/WgmmaProduct.h"
#include "support/Error.h"

namespace kiln::sim {

/// The first warp of a warp's warpgroup.
static int groupBase(const Warp &warp) {
  return warp.index() / kWarpsPerGroup * kWarpsPerGroup;
}

/// The four warps; ends the launch where the CTA has no whole warpgroup there.
static std::array<Warp *, kWarpsPerGroup> groupOf(Warp &warp, const Op &op) {
  auto &warps = warp.cta().warps();
  int base = groupBase(warp);
  if (base + kWarpsPerGroup > static_cast<int>(warps.size()))
    warp.machine().findings().fault(FindingId::warpgroup, warp, op, warp.live(),
                                    "the CTA has no whole warpgroup here");
  std::array<Warp *, kWarpsPerGroup> group;
  for (int i = 0; i < kWarpsPerGroup; ++i)
    group[i] = warps[base + i].get();
  return group;
}

static std::uint64_t uniformValue(Warp &warp, const Op &op, const Reg &reg,
                                  LaneMask active) {
  if (warp.poison(reg) & active)
    warp.machine().findings().report(
        FindingId::uninitializedDescriptor, warp, op, warp.poison(reg) & active,
        "a matrix descriptor depends on bytes nobody wrote");
  return warp.read(reg, firstLane(active));
}

/// Tell who watches which shared memory a product reads: each warp must be
/// ordered after what was written there, and the last one leaves the reads
/// behind.
static void tellReads(Warp &warp, const Op &op, const Product &product,
                      TensorCoreQueue::Waiting &entry, std::uint64_t number,
                      bool isLast) {
  Cta &cta = warp.cta();
  if (entry.cells.empty())
    entry.cells =
        cellsOf(cta, viewsOf(product, entry.descriptorA, entry.descriptorB));
  auto group = static_cast<std::uint32_t>(groupBase(warp) / kWarpsPerGroup);
  warp.watchers().tell(
      AsyncAccess{.warp = warp,
                  .op = op,
                  .issuers = warp.live(),
                  .over = {.by = Completion::By::warpgroup,
                           .object = group,
                           .number = static_cast<std::uint32_t>(number + 1)},
                  .isWrite = false,
                  .isPartial = !isLast,
                  .owner = &cta,
                  .cells = entry.cells});
}

static Step issueWgmma(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &product = *static_cast<const Product *>(op.extra.get());
  auto group = groupOf(warp, op);
  Cta &cta = warp.cta();
  warp.watchers().tell(
      WgmmaBegin{warp, op, active, product.accumulator, product.fragment});
  std::uint64_t number = warp.wgmma.issued++;
  std::uint64_t descriptorA =
      product.fragment.empty()
          ? uniformValue(warp, op, product.descriptorA, active)
          : 0;
  std::uint64_t descriptorB =
      uniformValue(warp, op, product.descriptorB, active);
  bool isAdded = product.scaleD.isValid()
                     ? (warp.pred(product.scaleD) & active) != 0
                     : product.isScaleDOne;
  bool hasChecks = warp.machine().config().checks;
  if (hasChecks)
    warp.wgmma.hold({number, &op, product.accumulator, product.fragment});
  TensorCoreQueue &queue = cta.tensorCores[groupBase(warp) / kWarpsPerGroup];
  if (number == queue.formed + queue.waiting.size())
    queue.waiting.push_back({&op, descriptorA, descriptorB, isAdded, 0, {}});
  auto &entry = queue.waiting[number - queue.formed];
  if (entry.op != &op || entry.descriptorA != descriptorA ||
      entry.descriptorB != descriptorB || entry.isAdded != isAdded)
    warp.machine().findings().fault(
        FindingId::wgmmaMismatch, warp, op, active,
        "the four warps of the warpgroup issue different "
        "multiplications");
  bool isLast = ++entry.warps == kWarpsPerGroup;
  if (warp.watchers().wants(EventKind::access)) {
    CheckTime time(warp.watchers().clock());
    tellReads(warp, op, product, entry, number, isLast);
    if (isLast)
      tellSwizzles(warp, op, cta, viewsOf(product, descriptorA, descriptorB));
  }
  if (!isLast)
    return Step::next;
  ++queue.formed;
  queue.waiting.pop_front();
  queue.inFlight.add([group, &op, descriptorA, descriptorB, isAdded] {
    multiply(group, op, descriptorA, descriptorB, isAdded);
  });
  cta.cluster().enqueue([&queue, number] { queue.inFlight.finish(number); });
  cta.cluster().notify();
  return Step::next;
}

static Step fence(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  ++warp.wgmma.fences;
  warp.wgmma.isFenced = true;
  return Step::next;
}

static Step commit(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  warp.wgmma.groups.push_back(warp.wgmma.issued);
  if (warp.wgmma.groups.size() > kMaxGroups)
    warp.wgmma.groups.pop_front();
  return Step::next;
}

static Step wait(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  auto &groups = warp.wgmma.groups;
  auto keep = static_cast<std::size_t>(op.imm);
  if (groups.size() <= keep)
    return Step::next;
  std::uint64_t issued = groups[groups.size() - keep - 1];
  TensorCoreQueue &queue =
      warp.cta().tensorCores[groupBase(warp) / kWarpsPerGroup];
  if (issued && queue.formed < issued) {
    warp.group().wait = {WaitReason::Kind::wgmma, issued, 0};
    return Step::blocked;
  }
  warp.group().wait = {};
  warp.wgmma.isFenced = false;
  if (issued) {
    queue.inFlight.finish(issued - 1);
    warp.watchers().tell(
        WgmmaEnd{warp, active, queue, static_cast<std::uint32_t>(issued)});
    warp.wgmma.release(issued);
  }
  groups.erase(groups.begin(),
               groups.end() - static_cast<std::ptrdiff_t>(keep));
  return Step::next;
}

/// An immediate that is 1 or -1.
static int decodeScale(Decoder &decoder, const ptx::Instruction &instruction,
                       std::size_t index) {
  auto scale = static_cast<std::int64_t>(instruction.operands[index].bits);
  if (scale != 1 && scale != -1)
    decoder.refuse(instruction, "imm-scale is 1 or -1");
  return static_cast<int>(scale);
}

/// The register that says which elements of A are there, and whose lanes.
static void decodeMetadata(Decoder &decoder,
                           const ptx::Instruction &instruction,
                           Product &product) {
  product.metadata = expectWidth(decoder, instruction,
                                 decoder.reg(instruction.operands[3], 4), 4);
  product.selector = static_cast<int>(instruction.operands[4].bits);
  int most = bytesOf(product.shape.typeA) == 1 ? 0 : 1;
  if (product.selector < 0 || product.selector > most)
    decoder.refuse(instruction,
                   fmt::format("the sparsity selector {}; {} takes 0{}",
                               product.selector, instruction.fullOpcode(),
                               most ? " or 1" : ""));
}

/// d, a, b-desc, of a sparse product metadata and selector, scale-d; for floats
/// imm-scale-a and imm-scale-b; for 16 bits imm-trans-a, unless A is in
/// registers, and imm-trans-b.
static void decodeMmaAsync(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  Product product;
  ProductShape &shape = product.shape;
  shape.isSparse = instruction.has("sp");
  std::string why;
  if (!parseShape(instruction.modifiers, shape, why))
    decoder.refuse(instruction, why);
  const auto &operands = instruction.operands;
  bool isFragment = operands[1].kind == ptx::Operand::Kind::vector;
  std::size_t transposes = shape.hasHalves() ? (isFragment ? 1 : 2) : 0;
  product.accumulator = decoder.vector(operands[0], 4);
  if (static_cast<int>(product.accumulator.size()) != shape.registersD())
    decoder.refuse(instruction,
                   fmt::format("{} accumulator registers for n{}, which has {}",
                               product.accumulator.size(), shape.n,
                               shape.registersD()));
  if (isFragment) {
    product.fragment = decoder.vector(operands[1], 4);
    if (product.fragment.size() != kFragmentRegisters)
      decoder.refuse(instruction,
                     fmt::format("{} registers for A, which has {}",
                                 product.fragment.size(), kFragmentRegisters));
  } else {
    product.descriptorA = decoder.reg(operands[1], 8);
    expectWidth(decoder, instruction, product.descriptorA, 8);
  }
  for (const auto *list : {&product.accumulator, &product.fragment})
    for (const Reg &reg : *list) {
      expectWidth(decoder, instruction, reg, 4);
      decoder.markAccumulator(reg);
    }
  product.descriptorB =
      expectWidth(decoder, instruction, decoder.reg(operands[2], 8), 8);
  std::size_t scale = 3;
  if (shape.isSparse) {
    decodeMetadata(decoder, instruction, product);
    scale += 2;
  }
  if (operands[scale].kind == ptx::Operand::Kind::reg)
    product.scaleD = decoder.pred(operands[scale]);
  else
    product.isScaleDOne = operands[scale].bits != 0;
  if (!shape.hasIntegers()) {
    shape.scaleA = decodeScale(decoder, instruction, scale + 1);
    shape.scaleB = decodeScale(decoder, instruction, scale + 2);
  }
  if (transposes == 2)
    shape.isATransposed = operands[scale + 3].bits != 0;
  if (transposes)
    shape.isBTransposed = operands.back().bits != 0;
  op.extra = std::make_shared<Product>(std::move(product));
  op.handler = issueWgmma;
}

static void decodeWgmma(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  if (instruction.has("fence")) {
    op.handler = fence;
  } else if (instruction.has("commit_group")) {
    op.handler = commit;
  } else if (instruction.has("wait_group")) {
    op.imm = static_cast<std::int64_t>(instruction.operands[0].bits);
    op.handler = wait;
  } else {
    decodeMmaAsync(decoder, instruction, op);
  }
}

static void wgmmaEffect(Decoder &decoder, const ptx::Instruction &instruction,
                        Effect &effect) {
  effect.isAligned = true;
  effect.count = firstImmediate(instruction);
  if (instruction.has("commit_group")) {
    effect.kind = EffectKind::productCommit;
  } else if (instruction.has("wait_group")) {
    effect.kind = EffectKind::productWait;
  } else if (instruction.has("mma_async")) {
    effect.kind = EffectKind::product;
    for (const std::string &modifier : instruction.modifiers)
      if (int n; std::sscanf(modifier.c_str(), "m64n%dk", &n) == 1)
        effect.count = n;
    if (instruction.operands[1].kind == ptx::Operand::Kind::reg)
      effect.address = decoder.reg(instruction.operands[1], 8);
    if (instruction.operands[2].kind == ptx::Operand::Kind::reg)
      effect.operand = decoder.reg(instruction.operands[2], 8);
  }
}

std::vector<Instruction> wgmmaInstructions() {
  return {
      {"wgmma",
       decodeWgmma,
       Unit::wgmma,
       "fence, commit_group, wait_group, mma_async with A in shared memory or "
       "registers: f16, e4m3 and e5m2 into f32 and f16, bf16 and tf32 into "
       "f32, s8 and u8 into s32; mma_async.sp with its metadata",
       "fence, ALIGNED; "
       "commit_group, ALIGNED; "
       "wait_group, ALIGNED -> imm; "
       "mma_async sp s8|u8, ALIGNED mNnNkN s32 satfinite -> ={b32}* u64 u64 "
       "b32 imm p; "
       "mma_async sp s8|u8, ALIGNED mNnNkN s32 satfinite -> ={b32}* {b32}* "
       "u64 b32 imm p; "
       "mma_async sp tf32|e4m3|e5m2, ALIGNED mNnNkN f16 f32 -> ={b32}* u64 "
       "u64 b32 imm p imm imm; "
       "mma_async sp tf32|e4m3|e5m2, ALIGNED mNnNkN f16 f32 -> ={b32}* "
       "{b32}* u64 b32 imm p imm imm; "
       "mma_async sp f16|bf16, ALIGNED mNnNkN f16 f32 -> ={b32}* u64 u64 b32 "
       "imm p imm imm imm imm; "
       "mma_async sp f16|bf16, ALIGNED mNnNkN f16 f32 -> ={b32}* {b32}* u64 "
       "b32 imm p imm imm imm; "
       "mma_async s8|u8, ALIGNED mNnNkN s32 satfinite -> ={b32}* u64 u64 p; "
       "mma_async s8|u8, ALIGNED mNnNkN s32 satfinite -> ={b32}* {b32}* u64 p; "
       "mma_async tf32|e4m3|e5m2, ALIGNED mNnNkN f16 f32 -> ={b32}* u64 u64 p "
       "imm imm; "
       "mma_async tf32|e4m3|e5m2, ALIGNED mNnNkN f16 f32 -> ={b32}* {b32}* u64 "
       "p imm imm; "
       "mma_async f16|bf16, ALIGNED mNnNkN f16 f32 -> ={b32}* u64 u64 p imm "
       "imm imm imm; "
       "mma_async f16|bf16, ALIGNED mNnNkN f16 f32 -> ={b32}* {b32}* u64 p imm "
       "imm imm",
       {.effect = wgmmaEffect,
        .operations = productOperations<kWarpsPerGroup>}},
      setmaxnregInstruction(),
  };
}

} // namespace kiln::sim
