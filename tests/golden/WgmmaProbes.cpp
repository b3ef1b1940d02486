// WgmmaProbes: matrix products of every type, width and place of their
// operands.
//
// Operands are random bytes of shared memory read through a descriptor: the
// answer says which bytes the hardware took for which element. Sums of small
// whole numbers are exact in every type; how others are rounded is asked in
// TensorCoreProbes.cpp too.
#include "golden/Probes.h"

namespace kiln::golden {

/// The last 4 KiB of A lie over the first of B, and are written after them.
static constexpr std::uint32_t kOperandA = 0, kOperandB = 32768;
static constexpr std::uint32_t kOperandBytes = 36864;

namespace {
struct Product {
  std::string d, a, b;
  int n = 8;
  int swizzle = 128;
  bool isATransposed = false, isBTransposed = false;
  bool isAInRegisters = false;
  bool isAdded = true;
  int scaleA = 1, scaleB = 1;
  std::string saturation = {};
  int offsetBytes = 0; ///< of both operands from the pattern's beginning
  bool isExact = true;
};
} // namespace

static int bytesOfType(const std::string &type) {
  if (type == "tf32")
    return 4;
  return type == "f16" || type == "bf16" ? 2 : 1;
}

static Type typeOf(const std::string &type) {
  if (type == "s8" || type == "s32")
    return type == "s8" ? Type::i8 : Type::i32;
  return parse_type(type);
}

static bool isInteger(const Product &product) { return product.d == "s32"; }

/// Everything of a descriptor but its address.
static std::uint64_t descriptorBits(const Product &product, bool isTransposed,
                                    int rows) {
  std::uint64_t leading, stride;
  auto wide = static_cast<std::uint64_t>(product.swizzle);
  if (!isTransposed) {
    stride = wide ? 8 * wide : 128;
    leading = wide ? 16 : static_cast<std::uint64_t>(rows) / 8 * 128;
  } else if (wide == 0) {
    leading = 128;
    stride = 256;
  } else {
    stride = 8 * wide;
    leading = 2 * stride;
  }
  std::uint64_t mode = wide == 128 ? 1 : wide == 64 ? 2 : wide == 32 ? 3 : 0;
  return (leading / 16) << 16 | (stride / 16) << 32 | mode << 62;
}

static std::string registers(const char *name, int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + list + "}";
}

static std::string nameOf(const Product &product) {
  std::string text = fmt::format("{}_{}_{}_n{}_b{}", product.d, product.a,
                                 product.b, product.n, product.swizzle);
  if (product.isATransposed)
    text += "_amn";
  if (product.isBTransposed)
    text += "_bmn";
  if (product.isAInRegisters)
    text += "_areg";
  if (!product.isAdded)
    text += "_fresh";
  if (product.scaleA < 0)
    text += "_nega";
  if (product.scaleB < 0)
    text += "_negb";
  if (product.offsetBytes)
    text += fmt::format("_at{}", product.offsetBytes);
  if (!product.isExact)
    text += "_rounded";
  return text + product.saturation;
}

/// The instruction with all its operands.
static std::string instructionText(const Product &product, int count) {
  std::string text = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {}, %descb, "
      "%added",
      product.n, 32 / bytesOfType(product.a), product.saturation, product.d,
      product.a, product.b, registers("d", count),
      product.isAInRegisters ? registers("a", 4) : "%desca");
  if (!isInteger(product))
    text += fmt::format(", {}, {}", product.scaleA, product.scaleB);
  if (bytesOfType(product.a) == 2) {
    if (!product.isAInRegisters)
      text += product.isATransposed ? ", 1" : ", 0";
    text += product.isBTransposed ? ", 1" : ", 0";
  }
  return text + ";\n";
}

static std::string bodyText(const Product &product, int count) {
  std::string text = fmt::format(
      R"(.reg .b32 %i, %s, %d<{0}>, %a<4>;
.reg .b64 %g, %x, %y, %desca, %descb;
.reg .pred %p, %added;
mov.u32 %i, %t;
fill:
mad.wide.u32 %g, %i, 8, %in1;
ld.global.u64 %x, [%g];
mad.wide.u32 %g, %i, 8, %in2;
ld.global.u64 %y, [%g];
mad.lo.u32 %s, %i, 8, %smem;
st.shared.u64 [%s+{1}], %x;
st.shared.u64 [%s+{2}], %y;
add.u32 %i, %i, 128;
setp.lt.u32 %p, %i, {3};
@%p bra fill;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.eq.u32 %added, 0, {4};
add.u32 %s, %smem, {5};
shr.u32 %s, %s, 4;
cvt.u64.u32 %desca, %s;
or.b64 %desca, %desca, {6:#x};
add.u32 %s, %smem, {7};
shr.u32 %s, %s, 4;
cvt.u64.u32 %descb, %s;
or.b64 %descb, %descb, {8:#x};
mul.wide.u32 %g, %t, {9};
add.u64 %g, %g, %in3;
mul.wide.u32 %x, %t, {9};
add.u64 %x, %x, %out;
mad.wide.u32 %y, %t, 16, %in1;
)",
      count, kOperandA, kOperandB, kOperandBytes / 8, product.isAdded ? 0 : 1,
      kOperandA + product.offsetBytes,
      descriptorBits(product, product.isATransposed, 64),
      kOperandB + product.offsetBytes,
      descriptorBits(product, product.isBTransposed, product.n), 4 * count);
  for (int i = 0; i < 4; ++i)
    text += fmt::format("ld.global.u32 %a{}, [%y+{}];\n", i, 4 * i);
  for (int i = 0; i < count; ++i)
    text += fmt::format("ld.global.u32 %d{}, [%g+{}];\n", i, 4 * i);
  text += "wgmma.fence.sync.aligned;\n" + instructionText(product, count) +
          "wgmma.commit_group.sync.aligned;\n"
          "wgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("st.global.u32 [%x+{}], %d{};\n", 4 * i, i);
  return text;
}

/// Bytes of an operand or of the accumulators.
static Bytes numbers(const std::string &type, std::size_t bytes,
                     std::uint64_t seed, bool isExact) {
  Type element = typeOf(type);
  std::size_t count = bytes / size_bytes(element);
  if (type == "s8")
    return randomBytes(element, count, seed, -128, 127);
  if (type == "u8")
    return randomBytes(element, count, seed, 0, 255);
  if (type == "s32")
    return randomBytes(element, count, seed, -2147483648.0, 2147483647.0);
  if (!isExact)
    return randomBytes(element, count, seed, -1, 1);
  Bytes whole = randomBytes(Type::i8, count, seed, -3, 3);
  Bytes result(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = to_bits(element, static_cast<std::int8_t>(whole[i]));
    std::memcpy(&result[i * size_bytes(element)], &bits, size_bytes(element));
  }
  return result;
}

static Probe productProbe(const Product &product) {
  Probe probe{.group = "wgmma", .name = nameOf(product)};
  int count = product.d == "f16" ? product.n / 4 : product.n / 2;
  probe.ptx = moduleText(3, 0, bodyText(product, count));
  probe.threads = 128;
  probe.smemBytes = kOperandB + kOperandBytes;
  std::size_t accumulators = 128 * 4 * static_cast<std::size_t>(count);
  bool isExact = product.isExact;
  probe.inputs = {numbers(product.a, kOperandBytes, 21, isExact),
                  numbers(product.b, kOperandBytes, 22, isExact),
                  numbers(product.d, accumulators, 23, isExact)};
  probe.outputBytes = accumulators;
  probe.rowBytes = accumulators / 4;
  return probe;
}

static void addWidths(std::vector<Probe> &list) {
  for (int n = 8; n <= 256; n += 8) {
    list.push_back(productProbe({"f32", "f16", "f16", n}));
    if (n <= 32 || n % 16 == 0)
      list.push_back(productProbe({"s32", "s8", "u8", n}));
  }
  for (int n : {8, 24, 64, 120, 256}) {
    list.push_back(productProbe({"f16", "f16", "f16", n}));
    list.push_back(productProbe({"f32", "bf16", "bf16", n}));
    list.push_back(productProbe({"f32", "tf32", "tf32", n}));
    for (const char *d : {"f32", "f16"})
      for (const char *a : {"e4m3", "e5m2"})
        for (const char *b : {"e4m3", "e5m2"})
          list.push_back(productProbe({d, a, b, n}));
  }
  for (int n : {8, 32, 256})
    for (const char *a : {"s8", "u8"})
      for (const char *b : {"s8", "u8"})
        for (const char *saturation : {"", ".satfinite"})
          if (std::string(a) == b || *saturation)
            list.push_back(productProbe({"s32", a, b, n, 128, false, false,
                                         false, true, 1, 1, saturation}));
}

static void addPlaces(std::vector<Probe> &list) {
  for (int swizzle : {0, 32, 64, 128}) {
    for (int n : {16, 64, 128}) {
      for (const char *type : {"f16", "bf16"})
        for (int major = 1; major < 4; ++major)
          list.push_back(productProbe({"f32", type, type, n, swizzle,
                                       (major & 1) != 0, (major & 2) != 0}));
      if (swizzle == 128)
        continue;
      list.push_back(productProbe({"f32", "f16", "f16", n + 24, swizzle}));
      list.push_back(productProbe({"f32", "tf32", "tf32", n, swizzle}));
      list.push_back(productProbe({"f32", "e4m3", "e4m3", n, swizzle}));
      list.push_back(productProbe({"s32", "u8", "s8", n, swizzle}));
    }
  }
  for (int offset : {32, 64, 96}) {
    Product product{"f32", "f16", "f16", 64};
    product.offsetBytes = offset;
    list.push_back(productProbe(product));
  }
}

void addWgmmaProbes(std::vector<Probe> &list) {
  addWidths(list);
  addPlaces(list);
  const char *types[][3] = {{"f32", "f16", "f16"},   {"f16", "f16", "f16"},
                            {"f32", "bf16", "bf16"}, {"f32", "tf32", "tf32"},
                            {"f32", "e4m3", "e5m2"}, {"f16", "e5m2", "e4m3"},
                            {"s32", "s8", "s8"},     {"s32", "u8", "s8"}};
  for (auto [d, a, b] : types) {
    Product product{d, a, b, 32};
    product.isAInRegisters = true;
    list.push_back(productProbe(product));
    product.isAInRegisters = false;
    product.isAdded = false;
    list.push_back(productProbe(product));
    if (isInteger(product))
      continue;
    product.isAdded = true;
    product.scaleA = -1;
    list.push_back(productProbe(product));
    product.scaleB = -1;
    product.isAInRegisters = true;
    list.push_back(productProbe(product));
    product = {d, a, b, 16};
    product.isExact = false;
    list.push_back(productProbe(product));
  }
}

} // namespace kiln::golden
