// TensorCoreProbes: how the tensor core adds: which products are added at once,
// how many bits survive, what is cut off and what is rounded.
//
// Every CTA multiplies once. A fifth of the CTAs has operands of like size, the
// others such as differ in size, cancel out, are any bits at all, and have
// results at the lower end of the accumulator's range.
#include "golden/Probes.h"

namespace kiln::golden {

namespace {
enum class Kind { near, wide, cancelling, bits, tiny };
constexpr int kKinds = 5;

struct Instruction {
  const char *name; ///< with its modifiers
  const char *d, *a, *b;
  int countA, countB, countD; ///< registers; of B in shared memory words
  bool isSparse = false;
  bool isNew = false; ///< of PTX 8.7
  bool isGroup() const { return std::string_view(name).starts_with("wgmma"); }
  int threads() const { return isGroup() ? 128 : 32; }
  /// As many as give 32768 sums of each kind.
  int ctas() const { return kKinds * (isGroup() ? 64 : 256); }
};

struct Format {
  int bits, fraction, bias;
};
} // namespace

static Format formatOf(std::string_view type) {
  if (type == "f16")
    return {16, 10, 15};
  if (type == "bf16")
    return {16, 7, 127};
  if (type == "e4m3")
    return {8, 3, 7};
  if (type == "e5m2")
    return {8, 2, 15};
  return {32, 23, 127}; // tf32 and f32
}

static std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// Exponents of an operand's elements: from the first on, so many, without
/// bias.
static std::pair<int, int> exponents(Kind kind, const Format &format,
                                     bool isSum) {
  bool isWide = format.bias == 127;
  switch (kind) {
  case Kind::wide:
    if (isWide)
      return isSum ? std::pair{-45, 91} : std::pair{-20, 41};
    return {1 - format.bias, 2 * format.bias - 1};
  case Kind::tiny:
    if (isWide)
      return isSum ? std::pair{-127, 8} : std::pair{-72, 12};
    return {-format.bias, format.bias / 2 + 1};
  case Kind::cancelling:
    return isSum ? std::pair{-18, 12} : std::pair{-3, 5};
  default:
    return {-3, 5};
  }
}

/// One element.
static std::uint32_t element(Kind kind, const Format &format, bool isSum,
                             std::uint64_t random) {
  std::uint32_t mask = format.bits == 32 ? ~0u : (1u << format.bits) - 1;
  if (kind == Kind::bits)
    return static_cast<std::uint32_t>(random) & mask;
  auto [least, count] = exponents(kind, format, isSum);
  auto exponent = static_cast<std::uint32_t>(std::max(
      0, least +
             static_cast<int>((random >> 40) % static_cast<unsigned>(count)) +
             format.bias));
  std::uint32_t fraction =
      static_cast<std::uint32_t>(random) & ((1u << format.fraction) - 1);
  auto sign = static_cast<std::uint32_t>(random >> 63);
  return sign << (format.bits - 1) | exponent << format.fraction | fraction;
}

/// Words of an operand. Where they cancel, those of each second block of
/// `block` words are those of the block before, A's with the other sign, but
/// for a last bit here and there.
static Bytes words(const Instruction &instruction, const char *type,
                   std::size_t perCta, std::size_t block, char operand) {
  Format format = formatOf(type);
  auto ctas = static_cast<std::size_t>(instruction.ctas());
  std::vector<std::uint32_t> all(ctas * perCta);
  std::uint32_t signs = format.bits == 32   ? 0x80000000u
                        : format.bits == 16 ? 0x80008000u
                                            : 0x80808080u;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto kind = static_cast<Kind>(i / perCta * kKinds / ctas);
    std::uint64_t seed = mix(i * 256 + static_cast<unsigned char>(operand));
    for (int part = 0; part < 32 / format.bits; ++part)
      all[i] |= element(kind, format, operand == 'c', mix(seed + part))
                << part * format.bits;
    if (kind != Kind::cancelling || operand == 'c' || !(i / block & 1))
      continue;
    all[i] = all[i - block] ^ (operand == 'a' ? signs : 0);
    if (seed % 4 == 0)
      all[i] ^= format.bits == 32 ? 0x2000 : 1;
  }
  return bytesOf(all);
}

static std::string list(char name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + text + "}";
}

/// Registers of an operand, from the thread's place in its input.
static std::string loads(char name, int count, int input) {
  std::string text =
      fmt::format("mad.wide.u32 %g, %i, {}, %in{};\n", 4 * count, input);
  for (int i = 0; i < count; ++i)
    text += fmt::format("ld.global.u32 %{}{}, [%g+{}];\n", name, i, 4 * i);
  return text;
}

/// B of a wgmma: eight columns, K-major, without a swizzle.
static std::string sharedB(int wordCount) {
  return fmt::format(R"(
setp.ge.u32 %p, %t, {0};
mad.lo.u32 %j, %c, {0}, %t;
mad.wide.u32 %g, %j, 4, %in2;
mad.lo.u32 %j, %t, 4, %smem;
@%p bra filled;
ld.global.u32 %b0, [%g];
st.shared.u32 [%j], %b0;
filled:
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %j, %smem, 4;
cvt.u64.u32 %g, %j;
or.b64 %desc, %g, {1:#x};
)",
                     wordCount, 8ull << 16 | 16ull << 32);
}

static std::string bodyText(const Instruction &in) {
  std::string text = ".reg .b32 %i, %j, %c, %a<4>, %b<4>, %c<4>, %d<4>;\n"
                     ".reg .b64 %g, %desc;\n.reg .pred %p;\n"
                     "mov.u32 %c, %ctaid.x;\n";
  text += fmt::format("mad.lo.u32 %i, %c, {}, %t;\n", in.threads());
  text += loads('a', in.countA, 1);
  std::string_view a = in.a;
  // Two of each four are there, of tf32 one of two.
  const char *metadata = a == "tf32" ? "0x4e4ee44e" : "0x948cde49";
  std::string sparse =
      in.isSparse ? fmt::format(", %j{}", in.isGroup() ? ", 0" : ", 0x0") : "";
  if (in.isGroup()) {
    text += sharedB(in.countB) + loads('d', in.countD, 3) +
            fmt::format("mov.u32 %j, {};\nwgmma.fence.sync.aligned;\n"
                        "{}.{}.{}.{} {}, {}, %desc{}, 1, 1, 1{};\n"
                        "wgmma.commit_group.sync.aligned;\n"
                        "wgmma.wait_group.sync.aligned 0;\n",
                        metadata, in.name, in.d, in.a, in.b,
                        list('d', in.countD), list('a', in.countA), sparse,
                        a == "f16" || a == "bf16" ? ", 0" : "");
  } else {
    text += loads('b', in.countB, 2) + loads('c', in.countD, 3) +
            fmt::format("mov.u32 %j, {};\n{}.{}.{}.{}.{} {}, {}, {}, {}{};\n",
                        metadata, in.name, in.d, in.a, in.b, in.d,
                        list('d', in.countD), list('a', in.countA),
                        list('b', in.countB), list('c', in.countD), sparse);
  }
  text += fmt::format("mad.wide.u32 %g, %i, {}, %out;\n", 4 * in.countD);
  for (int i = 0; i < in.countD; ++i)
    text += fmt::format("st.global.u32 [%g+{}], %d{};\n", 4 * i, i);
  return text;
}

static Probe probeOf(const Instruction &in) {
  std::string shape = in.name;
  shape = shape.substr(shape.find(".m") == std::string::npos
                           ? 0
                           : shape.find(in.isGroup() ? ".m64" : ".m1") + 1);
  shape = shape.substr(0, shape.find('.'));
  Probe probe{
      .group = "bits",
      .name = fmt::format("{}{}_{}_{}_{}_{}", in.isGroup() ? "wgmma" : "mma",
                          in.isSparse ? "_sp" : "", shape, in.d, in.a, in.b)};
  probe.ptx = moduleText(3, 0, bodyText(in));
  if (in.isNew)
    probe.ptx.replace(probe.ptx.find("8.4"), 3, "8.7");
  probe.ctas = static_cast<std::uint32_t>(in.ctas());
  probe.threads = static_cast<std::uint32_t>(in.threads());
  probe.smemBytes = in.isGroup() ? 1024 : 0;
  auto lanes = static_cast<std::size_t>(in.threads());
  auto countA = static_cast<std::size_t>(in.countA);
  auto countB = static_cast<std::size_t>(in.countB);
  auto countD = static_cast<std::size_t>(in.countD);
  probe.inputs = {words(in, in.a, lanes * countA, countA, 'a'),
                  in.isGroup() ? words(in, in.b, countB, 1, 'b')
                               : words(in, in.b, lanes * countB, countB, 'b'),
                  words(in, in.d, lanes * countD, countD, 'c')};
  probe.outputBytes = probe.ctas * lanes * countD * 4;
  probe.rowBytes = probe.outputBytes / kKinds / 4;
  return probe;
}

void addTensorCoreProbes(std::vector<Probe> &list) {
  const char *k16 = "mma.sync.aligned.m16n8k16.row.col";
  const char *k8 = "mma.sync.aligned.m16n8k8.row.col";
  const char *k32 = "mma.sync.aligned.m16n8k32.row.col";
  const char *sparse16 = "mma.sp.sync.aligned.m16n8k16.row.col";
  const char *sparse32 = "mma.sp.sync.aligned.m16n8k32.row.col";
  const char *group8 = "wgmma.mma_async.sync.aligned.m64n8k8";
  const char *group16 = "wgmma.mma_async.sync.aligned.m64n8k16";
  const char *group32 = "wgmma.mma_async.sync.aligned.m64n8k32";
  const char *groupSparse16 = "wgmma.mma_async.sp.sync.aligned.m64n8k16";
  const char *groupSparse32 = "wgmma.mma_async.sp.sync.aligned.m64n8k32";
  const char *groupSparse64 = "wgmma.mma_async.sp.sync.aligned.m64n8k64";
  const Instruction all[] = {
      {k16, "f32", "f16", "f16", 4, 2, 4},
      {k16, "f16", "f16", "f16", 4, 2, 2},
      {k16, "f32", "bf16", "bf16", 4, 2, 4},
      {k8, "f32", "f16", "f16", 2, 1, 4},
      {k8, "f16", "f16", "f16", 2, 1, 2},
      {k8, "f32", "bf16", "bf16", 2, 1, 4},
      {k8, "f32", "tf32", "tf32", 4, 2, 4},
      {"mma.sync.aligned.m16n8k4.row.col", "f32", "tf32", "tf32", 2, 1, 4},
      {k32, "f32", "e4m3", "e4m3", 4, 2, 4},
      {k32, "f32", "e5m2", "e5m2", 4, 2, 4},
      {k32, "f32", "e4m3", "e5m2", 4, 2, 4},
      {k32, "f16", "e4m3", "e4m3", 4, 2, 2, false, true},
      {k32, "f16", "e5m2", "e4m3", 4, 2, 2, false, true},
      {k16, "f32", "e4m3", "e5m2", 2, 1, 4, false, true},
      {sparse32, "f32", "f16", "f16", 4, 4, 4, true},
      {sparse32, "f16", "f16", "f16", 4, 4, 2, true},
      {sparse16, "f32", "bf16", "bf16", 2, 2, 4, true},
      {sparse16, "f32", "tf32", "tf32", 4, 4, 4, true},
      {group16, "f32", "f16", "f16", 4, 64, 4},
      {group16, "f16", "f16", "f16", 4, 64, 2},
      {group16, "f32", "bf16", "bf16", 4, 64, 4},
      {group8, "f32", "tf32", "tf32", 4, 64, 4},
      {group32, "f32", "e4m3", "e4m3", 4, 64, 4},
      {group32, "f32", "e5m2", "e5m2", 4, 64, 4},
      {group32, "f32", "e4m3", "e5m2", 4, 64, 4},
      {group32, "f16", "e4m3", "e4m3", 4, 64, 2},
      {group32, "f16", "e5m2", "e5m2", 4, 64, 2},
      {groupSparse32, "f32", "f16", "f16", 4, 128, 4, true},
      {groupSparse32, "f16", "f16", "f16", 4, 128, 2, true},
      {groupSparse32, "f32", "bf16", "bf16", 4, 128, 4, true},
      {groupSparse16, "f32", "tf32", "tf32", 4, 128, 4, true},
      {groupSparse64, "f32", "e4m3", "e4m3", 4, 128, 4, true},
      {groupSparse64, "f32", "e5m2", "e5m2", 4, 128, 4, true},
      {groupSparse64, "f16", "e4m3", "e4m3", 4, 128, 2, true},
  };
  for (const Instruction &instruction : all)
    list.push_back(probeOf(instruction));
}

} // namespace kiln::golden
