// MatrixForms: the table, of the PTX ISA's "Matrix Shape" tables; what ptxas
// takes of it is in tests/unit/isa/ptx_forms.txt.
#include "isa/MatrixForms.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <vector>

namespace kiln::isa {

static constexpr std::string_view kNarrow = "e4m3 e5m2 e2m3 e3m2 e2m1";

static constexpr MatrixForm kForms[] = {
    // m8n8k4 of f16 is four products of quarters of the warp.
    {"mma", "", "m8n8k4 m16n8k8 m16n8k16", "f16", false, "f16 f32"},
    {"mma", "", "m16n8k8 m16n8k16", "bf16", false, "f32"},
    {"mma", "", "m16n8k4 m16n8k8", "tf32", false, "f32"},
    {"mma", "", "m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64", false, "f64"},
    {"mma", "", "m8n8k16 m16n8k16 m16n8k32", "s8 u8", true, "s32"},
    {"mma", "", "m8n8k32 m16n8k32 m16n8k64", "s4 u4", true, "s32"},
    {"mma", "", "m8n8k128 m16n8k128 m16n8k256", "b1", false, "s32"},
    {"mma", "", "m16n8k16 m16n8k32", "e4m3 e5m2", true, "f16 f32"},
    {"mma", "f8f6f4", "m16n8k16 m16n8k32", "e4m3 e5m2", true, "f16 f32"},
    {"mma", "f8f6f4", "m16n8k32", kNarrow, true, "f16 f32"},
    {"mma", "mxf8f6f4", "m16n8k32", kNarrow, true, "f32", "ue8m0:1"},
    {"mma", "mxf4", "m16n8k64", "e2m1", false, "f32", "ue8m0:2"},
    {"mma", "mxf4nvf4", "m16n8k64", "e2m1", false, "f32", "ue8m0:2 ue4m3:4"},
    {"mma.sp", "", "m16n8k16 m16n8k32", "f16", false, "f16 f32"},
    {"mma.sp", "", "m16n8k16 m16n8k32", "bf16", false, "f32"},
    {"mma.sp", "", "m16n8k8 m16n8k16", "tf32", false, "f32"},
    {"mma.sp", "", "m16n8k32 m16n8k64", "s8 u8", true, "s32"},
    {"mma.sp", "", "m16n8k64 m16n8k128", "s4 u4", true, "s32"},
    {"mma.sp", "", "m16n8k64", "e4m3 e5m2", true, "f16 f32"},
    {"mma.sp", "f8f6f4", "m16n8k64", kNarrow, true, "f16 f32"},
    {"mma.sp", "mxf8f6f4", "m16n8k64", kNarrow, true, "f32", "ue8m0:1"},
    {"mma.sp", "mxf4", "m16n8k128", "e2m1", false, "f32", "ue8m0:2"},
    {"mma.sp", "mxf4nvf4", "m16n8k128", "e2m1", false, "f32",
     "ue8m0:2 ue4m3:4"},
    {"wmma", "", "m16n16k16 m32n8k16 m8n32k16", "f16", false, "f16 f32"},
    {"wmma", "", "m16n16k16 m32n8k16 m8n32k16", "bf16", false, "f32"},
    {"wmma", "", "m16n16k8", "tf32", false, "f32"},
    {"wmma", "", "m8n8k4", "f64", false, "f64"},
    {"wmma", "", "m16n16k16 m32n8k16 m8n32k16", "s8 u8", false, "s32"},
    {"wmma", "", "m8n8k32", "s4 u4", false, "s32"},
    {"wmma", "", "m8n8k128", "b1", false, "s32"},
    {"wgmma", "", "m64k16", "f16", false, "f16 f32"},
    {"wgmma", "", "m64k16", "bf16", false, "f32"},
    {"wgmma", "", "m64k8", "tf32", false, "f32"},
    {"wgmma", "", "m64k32", "e4m3 e5m2", true, "f16 f32"},
    {"wgmma", "", "m64k32", "s8 u8", true, "s32"},
    {"wgmma", "", "m64k256", "b1", false, "s32"},
    {"wgmma.sp", "", "m64k32", "f16", false, "f16 f32"},
    {"wgmma.sp", "", "m64k32", "bf16", false, "f32"},
    {"wgmma.sp", "", "m64k16", "tf32", false, "f32"},
    {"wgmma.sp", "", "m64k64", "e4m3 e5m2", true, "f16 f32"},
    {"wgmma.sp", "", "m64k64", "s8 u8", true, "s32"},
    {"tcgen05", "f16", "k16", "f16", false, "f16 f32"},
    {"tcgen05", "f16", "k16", "f16 bf16", true, "f32"},
    {"tcgen05", "tf32", "k8", "tf32", false, "f32"},
    {"tcgen05", "f8f6f4", "k32", kNarrow, true, "f16 f32"},
    {"tcgen05", "i8", "k32", "s8 u8", true, "s32"},
    {"tcgen05", "mxf8f6f4", "k32", kNarrow, true, "f32", "ue8m0:1"},
    {"tcgen05", "mxf4", "k64 k96", "e2m1", false, "f32", "ue8m0:2"},
    {"tcgen05", "mxf4nvf4", "k64 k96", "e2m1", false, "f32",
     "ue8m0:2 ue8m0:4 ue4m3:4"},
};

static constexpr TensorOperand kTensorOperands[] = {
    {"f16", "f16", 0},       {"f16", "bf16", 1},      {"tf32", "tf32", 2},
    {"f8f6f4", "e4m3", 0},   {"f8f6f4", "e5m2", 1},   {"f8f6f4", "e2m3", 3},
    {"f8f6f4", "e3m2", 4},   {"f8f6f4", "e2m1", 5},   {"i8", "u8", 0},
    {"i8", "s8", 1},         {"mxf8f6f4", "e4m3", 0}, {"mxf8f6f4", "e5m2", 1},
    {"mxf8f6f4", "e2m3", 3}, {"mxf8f6f4", "e3m2", 4}, {"mxf8f6f4", "e2m1", 5},
    {"mxf4", "e2m1", 1},     {"mxf4nvf4", "e2m1", 1},
};

template <typename Test> static const TensorOperand *findOperand(Test &&test) {
  for (const TensorOperand &operand : kTensorOperands)
    if (test(operand))
      return &operand;
  return nullptr;
}

const TensorOperand *findTensorOperand(std::string_view kind,
                                       std::string_view type) {
  return findOperand([&](const TensorOperand &one) {
    return one.kind == kind && one.type == type;
  });
}

const TensorOperand *findTensorOperand(std::string_view kind,
                                       std::uint32_t code) {
  return findOperand([&](const TensorOperand &one) {
    return one.kind == kind && one.code == code;
  });
}

std::span<const MatrixForm> matrixForms() { return kForms; }

/// Whether a word stands in a list of words.
static bool isOneOf(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word)
      return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool MatrixForm::hasShape(std::string_view shape) const {
  return isOneOf(shapes, shape);
}

bool MatrixForm::hasOperands(std::string_view a, std::string_view b) const {
  return isOneOf(operands, a) && isOneOf(operands, b) && (isMixed || a == b);
}

bool MatrixForm::hasSum(std::string_view type) const {
  return isOneOf(sums, type);
}

bool MatrixForm::hasScales(std::string_view type, int count) const {
  return isOneOf(scales, fmt::format("{}:{}", type, count));
}

const MatrixForm *findMatrixForm(std::string_view instruction,
                                 std::string_view kind, std::string_view a,
                                 std::string_view b) {
  for (const MatrixForm &form : kForms)
    if (form.instruction == instruction && form.kind == kind &&
        form.hasOperands(a, b))
      return &form;
  return nullptr;
}

std::string_view ptxName(Type type) {
  switch (type) {
  case Type::i8:
    return "s8";
  case Type::i32:
    return "s32";
  default:
    return name(type);
  }
}

std::string matrixOperands(std::string_view instruction) {
  static constexpr Type kTypes[] = {
      Type::f16,  Type::bf16, Type::tf32, Type::e4m3, Type::e5m2,
      Type::e2m3, Type::e3m2, Type::e2m1, Type::i8,   Type::u8};
  std::vector<std::string_view> names;
  for (Type type : kTypes)
    for (const MatrixForm &form : kForms)
      if (form.instruction == instruction &&
          isOneOf(form.operands, ptxName(type))) {
        names.push_back(name(type));
        break;
      }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{}", i == 0                  ? ""
                                : i + 1 == names.size() ? " and "
                                                        : ", ",
                        names[i]);
  return text;
}

std::optional<MatrixSizes> readMatrixSizes(std::string_view shape) {
  MatrixSizes sizes;
  const char *at = shape.data(), *end = shape.data() + shape.size();
  for (auto [letter, size] :
       {std::pair{'m', &sizes.m}, {'n', &sizes.n}, {'k', &sizes.k}}) {
    if (at == end || *at != letter)
      return std::nullopt;
    auto [next, error] = std::from_chars(at + 1, end, *size);
    if (error != std::errc() || *size <= 0)
      return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(sizes) : std::nullopt;
}

bool isWgmmaWidth(int columns, bool isInteger) {
  int step = isInteger && columns > 32 ? 16 : 8;
  return columns >= 8 && columns <= 256 && columns % step == 0;
}

} // namespace kiln::isa
