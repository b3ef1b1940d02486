// Tcgen05Mma: tcgen05.mma, from its operands to a product in flight.
//
// One thread issues it. With cta_group::2 it reads shared memory of both CTAs
// of the pair, half of B in each, and leaves half of the rows in each.
#include "sim/units/matrix/MatrixAccess.h"
#include "sim/units/matrix/Tcgen05Product.h"

#include <algorithm>

namespace kiln::sim {

static std::uint64_t readDescriptor(Warp &warp, const Op &op, const Reg &reg,
                                    int lane) {
  LaneMask bit = LaneMask(1) << lane;
  if (warp.poison(reg) & bit)
    warp.machine().findings().fault(
        FindingId::uninitializedDescriptor, warp, op, bit,
        "a descriptor depends on bytes that nobody wrote");
  return warp.read(reg, lane);
}

[[noreturn]] static void refuse(Warp &warp, const Op &op, int lane,
                                std::uint64_t descriptor, const char *what,
                                const std::string &why) {
  warp.machine().findings().fault(
      FindingId::tcgen05Descriptor, warp, op, LaneMask(1) << lane,
      fmt::format("the {} {:#x} does not fit: {}", what, descriptor, why));
}

/// How an operand lies in the shared memory of each CTA of the group.
static OperandView viewOf(Warp &warp, const Op &op, int lane,
                          const IssuedProduct &issued, bool isA) {
  const TensorProduct &product = *issued.product;
  const TensorShape &shape = issued.shape;
  std::uint64_t descriptor = readDescriptor(
      warp, op, isA ? product.descriptorA : product.descriptorB, lane);
  const char *what = isA ? "descriptor of A" : "descriptor of B";
  OperandView view;
  std::string why;
  if (!readLayout(descriptor, view, why))
    refuse(warp, op, lane, descriptor, what, why);
  OperandType type = isA ? shape.typeA : shape.typeB;
  view.isA = isA;
  view.isKMajor = !(isA ? shape.isATransposed : shape.isBTransposed);
  view.elementBytes = bytesOf(type);
  view.isPacked = shape.isPacked;
  view.rows = isA ? shape.rows(product.form) : shape.n / product.form.group;
  view.k = isA ? shape.columnsA(product.form) : shape.k;
  if (shape.isPacked)
    view.k /= 2;
  if (view.hasWideAtoms && view.isKMajor)
    refuse(warp, op, lane, descriptor, what,
           "its swizzle of 128 bytes in chunks of 32 is for MN-major operands");
  if (type == OperandType::tf32 && !view.isKMajor && !view.hasWideAtoms)
    refuse(warp, op, lane, descriptor, what,
           "an MN-major operand of 32 bits takes the swizzle of 128 bytes in "
           "chunks of 32 (1)");
  for (Cta *cta : issued.ctas)
    checkBounds(warp, op, *cta, view);
  return view;
}

/// Everything that the thread says, checked.
static IssuedProduct read(Warp &warp, const Op &op, int lane) {
  const auto &product = *static_cast<const TensorProduct *>(op.extra.get());
  LaneMask bit = LaneMask(1) << lane;
  IssuedProduct issued;
  issued.product = &product;
  issued.ctas = ctasOf(warp, op, bit, product.form.group);
  std::uint64_t descriptor =
      readDescriptor(warp, op, product.instruction, lane);
  std::string why;
  if (!readInstruction(static_cast<std::uint32_t>(descriptor), product.form,
                       issued.shape, why))
    refuse(warp, op, lane, descriptor, "instruction descriptor", why);
  issued.isAdded = warp.pred(product.isAdded) & bit;
  issued.d = tensorAddress(warp, op, product.d, bit);
  issued.viewB = viewOf(warp, op, lane, issued, /*isA=*/false);
  if (product.form.isAInTensor)
    issued.tensorA = tensorAddress(warp, op, product.tensorA, bit);
  else
    issued.viewA = viewOf(warp, op, lane, issued, /*isA=*/true);
  if (product.form.isSparse)
    issued.metadata = tensorAddress(warp, op, product.metadata, bit);
  if (product.form.isBlockScaled()) {
    issued.scaleA = tensorAddress(warp, op, product.scaleA, bit);
    issued.scaleB = tensorAddress(warp, op, product.scaleB, bit);
  }
  bool isAny = false;
  for (const Reg &reg : product.disabled) {
    issued.disabled.push_back(static_cast<std::uint32_t>(warp.read(reg, lane)));
    isAny |= issued.disabled.back() != 0;
  }
  if (!isAny)
    issued.disabled.clear();
  return issued;
}

namespace {
/// A part of tensor memory that a product touches in each CTA.
struct TensorUse {
  TensorRange range;
  const char *what;
  bool isWrite;
};
} // namespace

static std::vector<TensorUse> usesOf(const IssuedProduct &issued) {
  const TensorForm &form = issued.product->form;
  AccumulatorLayout layout(form, issued.shape);
  std::vector<TensorUse> uses;
  if (form.isAInTensor)
    for (const TensorRange &range :
         layout.rowRanges(issued.tensorA, kTensorAColumns))
      uses.push_back({range, "operand A", false});
  auto addScales = [&](TensorAddress at, int rows, const char *what) {
    auto columns = static_cast<std::uint32_t>((rows + 31) / 32);
    uses.push_back(
        {{0, at.column, TensorMemory::kLanes, columns}, what, false});
  };
  if (form.isSparse)
    uses.push_back({{issued.metadata.lane,
                     issued.metadata.column +
                         static_cast<std::uint32_t>(issued.shape.selector),
                     TensorMemory::kLanes, metadataColumns(issued.shape)},
                    "the metadata of A",
                    false});
  if (form.isBlockScaled()) {
    addScales(issued.scaleA, layout.rows(), "the scales of A");
    addScales(issued.scaleB, issued.shape.n, "the scales of B");
  }
  for (const TensorRange &range : layout.ranges(issued.d))
    uses.push_back({range, "D", true});
  return uses;
}

/// Tell who watches what the product reads and writes.
static void tell(Warp &warp, const Op &op, int lane,
                 const IssuedProduct &issued,
                 const std::vector<TensorUse> &uses) {
  CheckTime counted(warp.watchers().clock());
  LaneMask bit = LaneMask(1) << lane;
  std::vector<OperandView> views = {issued.viewB};
  if (!issued.product->form.isAInTensor)
    views.push_back(issued.viewA);
  std::vector<PageCells> cells = cellsOf(warp.cta(), views);
  for (Cta *cta : issued.ctas) {
    tellOperands(warp, op, bit, *cta, cells);
    tellSwizzles(warp, op, *cta, views);
    for (const TensorUse &use : uses)
      tellTensorAccess(warp, op, bit, Completion::By::tensorOperations,
                       use.isWrite, *cta, {&use.range, 1});
  }
}

static Step issueMma(Warp &warp, const Op &op, LaneMask active) {
  warp.watchers().tell(AsyncBegin{warp});
  forEachLane(active, [&](int lane) {
    LaneMask bit = LaneMask(1) << lane;
    IssuedProduct issued = read(warp, op, lane);
    std::vector<TensorUse> uses = usesOf(issued);
    for (const TensorUse &use : uses)
      for (Cta *cta : issued.ctas)
        checkTensorRange(warp, op, bit, *cta, use.range, use.what);
    warp.tensor.issuers |= bit;
    warp.tensor.uncommitted |= bit;
    if (warp.watchers().wants(EventKind::access))
      tell(warp, op, lane, issued, uses);
    enqueueOperation(warp, [&warp, &op, issued = std::move(issued)] {
      multiply(warp, op, issued);
    });
  });
  return Step::next;
}

static TensorKind kindOf(const ptx::Instruction &instruction) {
  static constexpr const char *kWords[] = {
      "kind::f16",      "kind::tf32", "kind::f8f6f4",  "kind::i8",
      "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"};
  for (int i = 0; i < 7; ++i)
    if (instruction.has(kWords[i]))
      return static_cast<TensorKind>(i);
  return TensorKind::f16;
}

/// Elements of K that share a scale; 0: the kind has none.
static int blockOf(Decoder &decoder, const ptx::Instruction &instruction,
                   TensorKind kind) {
  if (kind < TensorKind::mxf8f6f4)
    return 0;
  auto has = [&](const char *word) { return instruction.has(word); };
  int block = 32;
  if (has("block16") || has("scale_vec::4X"))
    block = 16;
  bool isSingle = has("scale_vec::1X");
  bool isDouble = has("scale_vec::2X");
  bool isKnown = kind == TensorKind::mxf8f6f4 ? block == 32 && !isDouble
                 : kind == TensorKind::mxf4
                     ? block == 32 && !isSingle
                     : !isSingle && (block == 16 || isDouble || has("block32"));
  if (!isKnown)
    decoder.refuse(instruction,
                   "mxf8f6f4 takes .scale_vec::1X (.block32), mxf4 .2X "
                   "(.block32), mxf4nvf4 .2X (.block32) or .4X (.block16)");
  return block;
}

/// d, a or [a], b, idesc, [scales of a], [scales of b], {disabled lanes},
/// enable-input-d, scale-input-d
void decodeTensorProduct(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  TensorProduct product;
  const auto &operands = instruction.operands;
  TensorForm &form = product.form;
  form.kind = kindOf(instruction);
  form.group = ctaGroupOf(instruction);
  form.isWeightStationary = instruction.has("ws");
  form.isSparse = instruction.has("sp");
  form.isShifted = instruction.has("ashift");
  // As many scales of a row, which is twice as long.
  form.blockElements = blockOf(decoder, instruction, form.kind) *
                       (form.isSparse ? 2 : 1);
  form.isAInTensor = operands[1].kind == ptx::Operand::Kind::address;
  product.d = AddressOperand::decode(decoder, operands[0]);
  if (form.isAInTensor)
    product.tensorA = AddressOperand::decode(decoder, operands[1]);
  else
    product.descriptorA =
        expectWidth(decoder, instruction, decoder.reg(operands[1], 8), 8);
  product.descriptorB =
      expectWidth(decoder, instruction, decoder.reg(operands[2], 8), 8);
  std::size_t at = 3;
  if (form.isSparse)
    product.metadata = AddressOperand::decode(decoder, operands[at++]);
  product.instruction = decoder.reg(operands[at++], 4);
  if (form.isBlockScaled()) {
    product.scaleA = AddressOperand::decode(decoder, operands[at++]);
    product.scaleB = AddressOperand::decode(decoder, operands[at++]);
  }
  if (operands[at].kind == ptx::Operand::Kind::vector) {
    product.disabled = decoder.vector(operands[at++], 4);
    std::size_t wanted = static_cast<std::size_t>(form.group) * 4;
    if (product.disabled.size() != wanted)
      decoder.refuse(instruction,
                     fmt::format("{} masks of disabled lanes; cta_group::{} "
                                 "has {}",
                                 product.disabled.size(), form.group, wanted));
  }
  product.isAdded = decoder.pred(operands[at++]);
  if (at < operands.size()) {
    auto shift = static_cast<std::int64_t>(operands[at].bits);
    if (operands[at].kind == ptx::Operand::Kind::reg ||
        form.kind > TensorKind::tf32 || form.isWeightStationary)
      decoder.refuse(instruction,
                     form.isWeightStationary
                         ? "a mask of zero columns of B is not simulated"
                         : "scale-input-d is of kinds f16 and tf32");
    if (shift < 0 || shift > 15)
      decoder.refuse(
          instruction,
          fmt::format("scale-input-d is {}; 0 to 15 are accepted", shift));
    product.shiftD = static_cast<int>(shift);
  }
  op.extra = std::make_shared<TensorProduct>(std::move(product));
  op.handler = issueMma;
}

} // namespace kiln::sim
