// Tcgen05Descriptor: fields and rules of the PTX manual's tables.
#include "sim/units/matrix/Tcgen05Descriptor.h"
#include "isa/MatrixForms.h"

#include <fmt/format.h>
#include <optional>

namespace kiln::sim {

/// Bits [last:first].
static std::uint32_t field(std::uint64_t bits, int last, int first) {
  return static_cast<std::uint32_t>(
      bits >> first & ((std::uint64_t(1) << (last - first + 1)) - 1));
}

static const char *nameOf(TensorKind kind) {
  static constexpr const char *kNames[] = {"f16",      "tf32", "f8f6f4",  "i8",
                                           "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return kNames[static_cast<int>(kind)];
}

/// The operand type of a kind's code; nothing: there is none.
static std::optional<OperandType> typeOf(TensorKind kind, std::uint32_t code) {
  const isa::TensorOperand *operand =
      isa::findTensorOperand(nameOf(kind), code);
  return operand ? operandType(operand->type) : std::nullopt;
}

/// The sizes of a form: M, and the steps of N, which is at most 256.
static bool checkSizes(const TensorForm &form, const TensorShape &shape,
                       std::string &why) {
  auto refuseM = [&](const char *accepted) {
    why = fmt::format("M is {}; {} is accepted", shape.m, accepted);
    return false;
  };
  int m = shape.m, n = shape.n, step = 8;
  if (form.isWeightStationary) {
    if (m != 32 && m != 64 && m != 128)
      return refuseM("32, 64 or 128");
    if (n != 64 && n != 128 && n != 256) {
      why = fmt::format("N is {}; 64, 128 or 256 is accepted", n);
      return false;
    }
    return true;
  }
  if (form.group == 2) {
    if (m != 128 && m != 256)
      return refuseM("128 or 256");
    bool isWide = form.kind == TensorKind::i8 ||
                  (form.isAInTensor && !form.isBlockScaled());
    step = isWide ? 32 : 16;
  } else if (form.isBlockScaled()) {
    if (m != 128)
      return refuseM("128");
  } else {
    if (m != 64 && m != 128)
      return refuseM("64 or 128");
    if (form.kind == TensorKind::i8)
      step = n > 32 ? 16 : 8;
    else if (form.isAInTensor && m == 128)
      step = 16;
  }
  if (n < step || n > 256 || n % step) {
    why = fmt::format("N is {}; with M {} a multiple of {} up to 256 is "
                      "accepted",
                      n, m, step);
    return false;
  }
  return true;
}

static bool readTypes(std::uint32_t bits, const TensorForm &form,
                      TensorShape &shape, std::string &why) {
  for (bool isA : {true, false}) {
    std::uint32_t code = isA ? field(bits, 9, 7) : field(bits, 12, 10);
    std::optional<OperandType> type = typeOf(form.kind, code);
    if (!type) {
      why = fmt::format("the type of operand {} is {}, which kind::{} does not "
                        "have",
                        isA ? "A" : "B", code, nameOf(form.kind));
      return false;
    }
    (isA ? shape.typeA : shape.typeB) = *type;
  }
  if (form.isBlockScaled())
    return true; // f32, and those bits say where scales are
  std::uint32_t code = field(bits, 5, 4);
  bool isInteger = form.kind == TensorKind::i8;
  bool hasHalves =
      form.kind == TensorKind::f8f6f4 ||
      (form.kind == TensorKind::f16 && shape.typeA == OperandType::f16 &&
       shape.typeB == OperandType::f16);
  bool isKnown = isInteger ? code == 2 : code == 1 || (code == 0 && hasHalves);
  if (!isKnown) {
    why = fmt::format("the type of D is {}; with these operands {} is accepted",
                      code,
                      isInteger   ? "2 (s32)"
                      : hasHalves ? "0 (f16) or 1 (f32)"
                                  : "1 (f32)");
    return false;
  }
  shape.typeD = isInteger   ? AccumulatorType::s32
                : code == 1 ? AccumulatorType::f32
                            : AccumulatorType::f16;
  return true;
}

/// Where the scales of the operands begin in their words.
static bool readScales(std::uint32_t bits, const TensorForm &form,
                       TensorShape &shape, std::string &why) {
  shape.scaleA = static_cast<int>(field(bits, 30, 29));
  shape.scaleB = static_cast<int>(field(bits, 5, 4));
  shape.hasPowers = field(bits, 23, 23);
  int scales = shape.k / form.blockElements;
  for (int id : {shape.scaleA, shape.scaleB})
    if (id % scales) {
      why = fmt::format("a scale factor id of {}; with {} scale{} for a row it "
                        "is a multiple of {}",
                        id, scales, scales == 1 ? "" : "s", scales);
      return false;
    }
  bool hasBytes = form.kind == TensorKind::mxf4nvf4 &&
                  form.blockElements == (form.isSparse ? 32 : 16);
  if (!shape.hasPowers && !hasBytes) {
    why = "scales of type ue4m3; this kind and block take ue8m0";
    return false;
  }
  return true;
}

/// What a sparse A has beside its elements.
static bool checkSparsity(const TensorForm &form, const TensorShape &shape,
                          std::string &why) {
  if (!form.isSparse)
    return true;
  int last = shape.elementBits() >= 16 ? 1 : 0;
  if (shape.selector > last) {
    why = fmt::format("its sparsity selector is {}; kind::{} takes 0{}",
                      shape.selector, nameOf(form.kind), last ? " or 1" : "");
    return false;
  }
  if (shape.rows(form) != 128) {
    why = fmt::format("M is {}; a sparse product is simulated with 128 rows "
                      "in each CTA",
                      shape.m);
    return false;
  }
  return true;
}

bool readInstruction(std::uint32_t bits, const TensorForm &form,
                     TensorShape &shape, std::string &why) {
  shape.m = static_cast<int>(field(bits, 28, 24)) * 16;
  shape.n = columnsOf(bits);
  shape.isANegated = field(bits, 13, 13);
  shape.isBNegated = field(bits, 14, 14);
  shape.isATransposed = field(bits, 15, 15);
  shape.isBTransposed = field(bits, 16, 16);
  shape.isPacked =
      form.kind == TensorKind::mxf4 || form.kind == TensorKind::mxf4nvf4;
  if (field(bits, 2, 2) != form.isSparse) {
    why = form.isSparse
              ? "it says that A is not sparse (bit 2), and the instruction has "
                ".sp"
              : "it says that A is sparse, and the instruction has no .sp";
    return false;
  }
  if (!readTypes(bits, form, shape, why))
    return false;
  shape.k = (shape.isPacked ? 64 : 32 / bytesOf(shape.typeA)) *
            (form.isSparse ? 2 : 1);
  shape.selector = static_cast<int>(field(bits, 1, 0));
  if (!checkSparsity(form, shape, why))
    return false;
  shape.isSaturated = form.kind == TensorKind::i8 && field(bits, 3, 3);
  if (!checkSizes(form, shape, why))
    return false;
  if (shape.isATransposed && form.isAInTensor) {
    why = "A is M-major, and in tensor memory it is K-major";
    return false;
  }
  if (shape.isPacked && (shape.isATransposed || shape.isBTransposed)) {
    why = fmt::format("an operand is MN-major; kind::{} takes K-major ones",
                      nameOf(form.kind));
    return false;
  }
  if (form.kind == TensorKind::i8 && (shape.isANegated || shape.isBNegated)) {
    why = "an operand is negated, which kind::i8 does not have";
    return false;
  }
  if (!form.isBlockScaled())
    return true;
  if (shape.isPacked && field(bits, 31, 31)) {
    why = "K is 96, which sm_103a has and the simulator does not; 64 (bit 31 "
          "clear) is accepted";
    return false;
  }
  return readScales(bits, form, shape, why);
}

bool readLayout(std::uint64_t descriptor, OperandView &view, std::string &why) {
  view.start = field(descriptor, 13, 0) << 4;
  view.leading = field(descriptor, 29, 16) << 4;
  view.stride = field(descriptor, 45, 32) << 4;
  view.baseOffset = field(descriptor, 51, 49);
  if (field(descriptor, 48, 46) != 1) {
    why = fmt::format("its bits 48 to 46 are {}; 1 is accepted",
                      field(descriptor, 48, 46));
    return false;
  }
  if (field(descriptor, 52, 52)) {
    why = "its leading dimension is an absolute address (bit 52), which "
          "sm_100a does not have";
    return false;
  }
  switch (field(descriptor, 63, 61)) {
  case 0:
    view.swizzleBytes = 0;
    break;
  case 1:
    view.swizzleBytes = 128;
    view.hasWideAtoms = true;
    break;
  case 2:
    view.swizzleBytes = 128;
    break;
  case 4:
    view.swizzleBytes = 64;
    break;
  case 6:
    view.swizzleBytes = 32;
    break;
  default:
    why = fmt::format("its swizzle is {}; 0 (none), 1 (128 bytes in chunks of "
                      "32), 2 (128 bytes), 4 (64) and 6 (32) are accepted",
                      field(descriptor, 63, 61));
    return false;
  }
  return true;
}

} // namespace kiln::sim
