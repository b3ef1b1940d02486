// WgmmaInstructions: the tensor core, and the registers a warpgroup may use.
//
// A wgmma is one operation of four warps: it starts when the fourth has issued
// it and is finished for all of them together. Operations of a warpgroup are
// done in the order they were issued; when, the order of the run decides, and
// at the latest the wait that covers them.
#include "sim/Access.h"
#include "sim/MatrixProduct.h"
#include "support/Error.h"

namespace kiln::sim {

static constexpr int kWarpsPerGroup = 4;

namespace {
/// What a wgmma.mma_async says.
struct Product {
  ProductShape shape;
  Reg descriptorA, descriptorB;
  std::vector<Reg> accumulator;
  Pred scaleD; ///< not valid: a constant
  bool isScaleDOne = true;
};
} // namespace

/// The first warp of a warp's warpgroup.
static int groupBase(const Warp &warp) {
  return warp.index() / kWarpsPerGroup * kWarpsPerGroup;
}

/// The four warps; ends the launch where the CTA has no whole warpgroup there.
static std::array<Warp *, kWarpsPerGroup> groupOf(Warp &warp, const Op &op) {
  auto &warps = warp.cta().warps();
  int base = groupBase(warp);
  if (base + kWarpsPerGroup > static_cast<int>(warps.size()))
    warp.machine().fault("warpgroup", warp, op, warp.live(),
                         "the CTA has no whole warpgroup here");
  std::array<Warp *, kWarpsPerGroup> group;
  for (int i = 0; i < kWarpsPerGroup; ++i)
    group[i] = warps[base + i].get();
  return group;
}

static std::uint64_t uniformValue(Warp &warp, const Op &op, const Reg &reg,
                                  LaneMask active) {
  if (warp.poison(reg) & active)
    warp.machine().fault("uninitialized-descriptor", warp, op,
                         warp.poison(reg) & active,
                         "a matrix descriptor depends on bytes nobody wrote");
  return warp.read(reg, firstLane(active));
}

/// Do one multiplication: all four warps have issued it.
static void multiply(const std::array<Warp *, kWarpsPerGroup> &group,
                     const Op &op, std::uint64_t descriptorA,
                     std::uint64_t descriptorB, bool isAdded) {
  const auto &product = *static_cast<const Product *>(op.extra.get());
  Warp &first = *group[0];
  Cta &cta = first.cta();
  OperandView a = viewOf(descriptorA, product.shape, /*isA=*/true);
  OperandView b = viewOf(descriptorB, product.shape, /*isA=*/false);
  for (const OperandView *view : {&a, &b}) {
    if (view->lastByte() > cta.shared.size() + kFirstSharedAddress ||
        view->start < kFirstSharedAddress)
      first.machine().fault(
          "out-of-bounds", first, op, first.live(),
          fmt::format(
              "operand {} reaches from shared address {} to {}; the CTA "
              "has {} bytes from address {} on",
              view == &a ? "A" : "B", view->start, view->lastByte(),
              cta.shared.size(), kFirstSharedAddress));
  }
  std::vector<float> matrixB(std::size_t(product.shape.k) * product.shape.n);
  bool isWritten = loadOperand(cta.shared, cta.sharedValid, b, product.shape, 0,
                               product.shape.n, matrixB.data());
  for (int w = 0; w < kWarpsPerGroup; ++w) {
    std::array<float, 16 * 32> matrixA;
    bool isRowWritten = loadOperand(cta.shared, cta.sharedValid, a,
                                    product.shape, 16 * w, 16, matrixA.data());
    Warp &warp = *group[w];
    std::vector<float *> registers;
    bool isKnown =
        (isWritten && isRowWritten) || !warp.machine().config().hasChecks;
    LaneMask poison = isKnown ? 0 : kAllLanes;
    for (const Reg &reg : product.accumulator) {
      registers.push_back(warp.lanes<float>(reg));
      LaneMask &mask = warp.poison(reg);
      mask = isAdded ? mask | poison : poison;
    }
    multiplyWarp(product.shape, matrixA.data(), matrixB.data(),
                 registers.data(), isAdded);
  }
}

/// The 16-byte chunks of shared memory that a product reads.
static std::vector<std::uint32_t> chunksOf(const Cta &cta,
                                           const ProductShape &shape,
                                           std::uint64_t descriptorA,
                                           std::uint64_t descriptorB) {
  std::vector<std::uint32_t> chunks;
  for (bool isA : {true, false}) {
    OperandView view = viewOf(isA ? descriptorA : descriptorB, shape, isA);
    int perChunk = 16 / view.elementBytes;
    int rowStep = view.isKMajor ? 1 : perChunk;
    int columnStep = view.isKMajor ? perChunk : 1;
    for (int row = 0; row < view.rows; row += rowStep)
      for (int k = 0; k < view.k; k += columnStep) {
        std::uint32_t chunk = (view.address(row, k) - kFirstSharedAddress) / 16;
        if (chunk < cta.readers.size())
          chunks.push_back(chunk);
      }
  }
  return chunks;
}

/// From now on, until somebody has waited for it, a product may read.
static void beginReading(Cta &cta, TensorCoreQueue &queue, std::uint64_t number,
                         const Op &op, std::vector<std::uint32_t> chunks) {
  for (std::uint32_t chunk : chunks) {
    ++cta.readers[chunk].count;
    cta.readers[chunk].last = &op;
  }
  queue.reading.push_back({number, std::move(chunks)});
}

/// Products up to `number` have been waited for.
static void endReading(Cta &cta, TensorCoreQueue &queue, std::uint64_t number) {
  while (!queue.reading.empty() && queue.reading.front().number <= number) {
    for (std::uint32_t chunk : queue.reading.front().chunks)
      --cta.readers[chunk].count;
    queue.reading.pop_front();
  }
}

static Step issue(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  const auto &product = *static_cast<const Product *>(op.extra.get());
  auto group = groupOf(warp, op);
  Cta &cta = warp.cta();
  std::uint64_t number = warp.wgmma.issued++;
  std::uint64_t descriptorA =
      uniformValue(warp, op, product.descriptorA, active);
  std::uint64_t descriptorB =
      uniformValue(warp, op, product.descriptorB, active);
  bool isAdded = product.scaleD.isValid()
                     ? (warp.pred(product.scaleD) & active) != 0
                     : product.isScaleDOne;
  bool hasChecks = warp.machine().config().hasChecks;
  if (hasChecks) {
    std::vector<std::uint32_t> registers;
    for (const Reg &reg : product.accumulator)
      registers.push_back(reg.index);
    warp.wgmma.held.push_back({number, &op, std::move(registers)});
  }
  TensorCoreQueue &queue = cta.tensorCores[groupBase(warp) / kWarpsPerGroup];
  if (number == queue.formed + queue.waiting.size())
    queue.waiting.push_back({&op, descriptorA, descriptorB, isAdded, 0});
  auto &entry = queue.waiting[number - queue.formed];
  if (entry.op != &op || entry.descriptorA != descriptorA ||
      entry.descriptorB != descriptorB || entry.isAdded != isAdded)
    warp.machine().fault("wgmma-mismatch", warp, op, active,
                         "the four warps of the warpgroup issue different "
                         "multiplications");
  if (++entry.warps < kWarpsPerGroup)
    return Step::next;
  ++queue.formed;
  queue.waiting.pop_front();
  auto work = std::make_shared<std::function<void()>>(
      [group, &op, descriptorA, descriptorB, isAdded] {
        multiply(group, op, descriptorA, descriptorB, isAdded);
      });
  if (hasChecks)
    beginReading(cta, queue, number, op,
                 chunksOf(cta, product.shape, descriptorA, descriptorB));
  // In order: doing one does all before it.
  queue.inFlight.push_back({number, work});
  cta.cluster().enqueue([&queue, number] { queue.finish(number); });
  cta.cluster().notify();
  return Step::next;
}

void TensorCoreQueue::finish(std::uint64_t number) {
  while (!inFlight.empty() && inFlight.front().number <= number) {
    auto work = inFlight.front().work;
    inFlight.pop_front();
    (*work)();
  }
}

static Step fence(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  return Step::next;
}

static Step commit(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  warp.wgmma.groups.push_back(warp.wgmma.issued);
  return Step::next;
}

static Step wait(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
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
  if (issued) {
    queue.finish(issued - 1);
    endReading(warp.cta(), queue, issued - 1);
    auto &held = warp.wgmma.held;
    while (!held.empty() && held.front().number < issued)
      held.pop_front();
  }
  groups.erase(groups.begin(),
               groups.end() - static_cast<std::ptrdiff_t>(keep));
  return Step::next;
}

static void decodeProduct(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  Product product;
  std::string why;
  if (!parseShape(instruction.modifiers, product.shape, why))
    decoder.refuse(instruction, why);
  const auto &operands = instruction.operands;
  if (operands.at(1).kind == ptx::Operand::Kind::vector)
    decoder.refuse(instruction, "operand A in registers");
  product.accumulator = decoder.vector(operands[0], 4);
  if (static_cast<int>(product.accumulator.size()) != product.shape.n / 2)
    decoder.refuse(instruction,
                   fmt::format("{} accumulator registers for n{}",
                               product.accumulator.size(), product.shape.n));
  product.descriptorA = decoder.reg(operands[1], 8);
  product.descriptorB = decoder.reg(operands.at(2), 8);
  if (operands.size() > 3) {
    if (operands[3].kind == ptx::Operand::Kind::reg)
      product.scaleD = decoder.pred(operands[3]);
    else
      product.isScaleDOne = operands[3].bits != 0;
  }
  auto immediate = [&](std::size_t i, std::int64_t fallback) {
    return i < operands.size() ? static_cast<std::int64_t>(operands[i].bits)
                               : fallback;
  };
  product.shape.scaleA = static_cast<int>(immediate(4, 1));
  product.shape.scaleB = static_cast<int>(immediate(5, 1));
  product.shape.isATransposed = immediate(6, 0) != 0;
  product.shape.isBTransposed = immediate(7, 0) != 0;
  op.extra = std::make_shared<Product>(std::move(product));
  op.handler = issue;
}

static void decodeWgmma(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  if (instruction.has("fence")) {
    op.handler = fence;
  } else if (instruction.has("commit_group")) {
    op.handler = commit;
  } else if (instruction.has("wait_group")) {
    op.imm = static_cast<std::int64_t>(instruction.operands.at(0).bits);
    op.handler = wait;
  } else if (instruction.has("mma_async") && !instruction.has("sp")) {
    decodeProduct(decoder, instruction, op);
  } else {
    decoder.refuse(instruction, "this form of wgmma");
  }
}

/// setmaxnreg moves registers between a warpgroup and the CTA's pool.
static Step setRegisters(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  if (warp.registers == 0)
    return Step::next; // their number at entry is not known: no effect
  int wanted = static_cast<int>(op.imm);
  bool isIncrease = op.flags != 0;
  if (isIncrease ? warp.registers > wanted : warp.registers < wanted)
    warp.machine().fault(
        "setmaxnreg", warp, op, active,
        fmt::format("setmaxnreg.{} {} with {} registers at hand",
                    isIncrease ? "inc" : "dec", wanted, warp.registers));
  int change = (wanted - warp.registers) * kLanes;
  Cta &cta = warp.cta();
  if (change > cta.registerPool) {
    warp.group().wait = {WaitReason::Kind::registers, 0,
                         static_cast<std::uint32_t>(wanted)};
    return Step::blocked;
  }
  warp.group().wait = {};
  cta.registerPool -= change;
  warp.registers = wanted;
  cta.cluster().notify();
  return Step::next;
}

static void decodeSetmaxnreg(Decoder &, const ptx::Instruction &instruction,
                             Op &op) {
  op.imm = static_cast<std::int64_t>(instruction.operands.at(0).bits);
  op.flags = instruction.has("inc");
  op.handler = setRegisters;
}

std::vector<Instruction> wgmmaInstructions() {
  return {
      {"wgmma", decodeWgmma, "wgmma",
       "fence, commit_group, wait_group, mma_async with both operands in "
       "shared "
       "memory: f16, bf16, tf32, e4m3 and e5m2 into f32, s8 and u8 into s32"},
      {"setmaxnreg", decodeSetmaxnreg, "wgmma", "inc and dec"},
  };
}

} // namespace kiln::sim
