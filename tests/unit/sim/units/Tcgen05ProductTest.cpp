// Tcgen05Product: products of every kind, shape and place of A and D, against a
// plain triple loop, with operands laid out by the canonical layouts of the PTX
// ISA.
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"
#include "unit/sim/units/RunTensor.h"

#include <cmath>
#include <random>

namespace kiln::sim {

static constexpr std::uint32_t kOperandB = 32768;

namespace {
struct Form {
  std::string kind = "f16", typeA = "f16", typeB = "f16", typeD = "f32";
  int m = 128, n = 64, swizzle = 128;
  bool isATransposed = false, isBTransposed = false;
  int group = 1;
  bool isStationary = false, isAInTensor = false, isAdded = true;
  bool isANegated = false;
  int shiftD = 0;
  int begin = 0;              ///< of operands, behind a multiple of 1024
  std::uint32_t disabled = 0; ///< lanes of each 32
  std::string block;          ///< modifiers of the scales
  int blockElements = 0;

  std::string name() const {
    return fmt::format(
        "{} {} x {} -> {} m{} n{} sw{}{}{} group {}{}{} {}", kind, typeA, typeB,
        typeD, m, n, swizzle, isATransposed ? " A MN" : "",
        isBTransposed ? " B MN" : "", group, isStationary ? " ws" : "",
        isAInTensor ? " A in tensor" : "", block);
  }
  int bits(const std::string &type) const {
    if (isPacked())
      return 4;
    return type == "tf32" ? 32 : type == "f16" || type == "bf16" ? 16 : 8;
  }
  bool isPacked() const { return kind == "mxf4" || kind == "mxf4nvf4"; }
  int k() const { return 256 / bits(typeA); }
};
} // namespace

/// The number of bits of an operand's element, in its own size.
static double numberOf(const std::string &type, std::uint32_t bits) {
  auto few = [&](int exponentBits, int fractionBits) {
    int bias = (1 << (exponentBits - 1)) - 1;
    int exponent = int(bits >> fractionBits) & ((1 << exponentBits) - 1);
    double fraction =
        double(bits & ((1u << fractionBits) - 1)) / (1 << fractionBits);
    double value = exponent ? std::ldexp(1 + fraction, exponent - bias)
                            : std::ldexp(fraction, 1 - bias);
    return bits >> (exponentBits + fractionBits) & 1 ? -value : value;
  };
  if (type == "f16")
    return halfToFloat(static_cast<std::uint16_t>(bits));
  if (type == "bf16")
    return std::bit_cast<float>(bits << 16);
  if (type == "tf32")
    return std::bit_cast<float>(bits & 0xffffe000u);
  if (type == "s8")
    return static_cast<std::int8_t>(bits);
  if (type == "u8")
    return bits;
  if (type == "e4m3")
    return few(4, 3);
  if (type == "e5m2")
    return few(5, 2);
  if (type == "e2m3")
    return few(2, 3);
  if (type == "e3m2")
    return few(3, 2);
  return few(2, 1); // e2m1
}

/// Random bits of a type: small numbers, no NaNs.
static std::uint32_t randomBits(const std::string &type, std::mt19937 &random) {
  std::uniform_real_distribution<float> real(-2, 2);
  if (type == "f16")
    return floatToHalf(real(random));
  if (type == "bf16")
    return std::bit_cast<std::uint32_t>(real(random)) >> 16;
  if (type == "tf32")
    return std::bit_cast<std::uint32_t>(real(random));
  if (type == "e4m3")
    return (random() & 0x80) | random() % 0x48;
  if (type == "e5m2")
    return (random() & 0x80) | random() % 0x48;
  if (type == "e2m3" || type == "e3m2")
    return random() & 63;
  if (type == "e2m1")
    return random() & 15;
  return random() & 0xff;
}

static std::uint32_t codeOf(const Form &form, const std::string &type) {
  static const std::map<std::string, std::uint32_t> kCodes = {
      {"f16", 0},  {"bf16", 1}, {"tf32", 2}, {"e4m3", 0}, {"e5m2", 1},
      {"e2m3", 3}, {"e3m2", 4}, {"e2m1", 5}, {"u8", 0},   {"s8", 1}};
  return form.isPacked() ? 1 : kCodes.at(type);
}

static std::uint32_t instructionOf(const Form &form) {
  std::uint32_t bits =
      codeOf(form, form.typeA) << 7 | codeOf(form, form.typeB) << 10 |
      std::uint32_t(form.isANegated) << 13 |
      std::uint32_t(form.isATransposed) << 15 |
      std::uint32_t(form.isBTransposed) << 16 |
      std::uint32_t(form.n / 8) << 17 | std::uint32_t(form.m / 16) << 24;
  if (form.blockElements)
    return bits | std::uint32_t(form.block.find("4X") == std::string::npos)
                      << 23;
  return bits | (form.typeD == "f32" ? 1u : form.typeD == "s32" ? 2u : 0u) << 4;
}

namespace {
/// An operand in shared memory, dense: element (row, k) at a byte, in a chunk
/// of 16 bytes, and the descriptor.
struct Place {
  const Form &form;
  std::string type;
  bool isTransposed;
  int rows;

  bool hasWideAtoms() const { return isTransposed && type == "tf32"; }
  int lines() const { return hasWideAtoms() ? 4 : 8; }
  int bytesOfRow() const { return 32; }
  /// Bytes that an element takes in its row: packed ones have half of one.
  int elementBytes() const { return std::max(form.bits(type) / 8, 1); }
  int leading() const {
    if (!isTransposed)
      return form.swizzle ? 16 : rows / 8 * 128;
    if (form.swizzle == 0)
      return 128;
    return form.k() / lines() * lines() * form.swizzle;
  }
  int stride() const {
    if (!isTransposed)
      return form.swizzle ? 8 * form.swizzle : 128;
    if (form.swizzle == 0)
      return form.k() / 8 * 128;
    return lines() * form.swizzle;
  }
  /// The address of the 16 bytes that hold it.
  std::uint32_t chunk(int row, int k) const {
    int sw = form.swizzle, at;
    if (!isTransposed) {
      int byte = form.isPacked() ? k / 2 : k * elementBytes();
      at = sw ? row % 8 * sw + row / 8 * stride() + byte
              : row % 8 * 16 + row / 8 * stride() + byte / 16 * leading();
    } else if (sw == 0) {
      at = row / (16 / elementBytes()) * stride() + k % 8 * 16 +
           k / 8 * leading();
    } else {
      int perRow = sw / elementBytes();
      at = row % perRow * elementBytes() + row / perRow * leading() +
           k % lines() * sw + k / lines() * stride();
    }
    auto address = static_cast<std::uint32_t>(at + form.begin);
    if (hasWideAtoms())
      address ^= (address >> 7 & 3) << 5;
    else if (sw)
      address ^= (address >> 7 & (sw / 16 - 1)) << 4;
    return address & ~15u;
  }
  void put(std::vector<std::uint8_t> &bytes, std::uint32_t base, int row, int k,
           std::uint32_t bits) const {
    std::uint8_t *at = bytes.data() + base + chunk(row, k);
    int perChunk = form.isPacked() ? 32 : 16 / elementBytes();
    int index = (isTransposed ? row : k) % perChunk;
    int size = type == "e2m1"                     ? 4
               : type == "e2m3" || type == "e3m2" ? 6
                                                  : form.bits(type);
    for (int i = 0; i < size; ++i)
      if (bits >> i & 1)
        at[(index * size + i) / 8] |= 1 << (index * size + i) % 8;
  }
  std::uint64_t descriptor() const {
    static const std::map<int, std::uint64_t> kSwizzles = {
        {0, 0}, {128, 2}, {64, 4}, {32, 6}};
    return std::uint64_t(form.begin >> 4) |
           std::uint64_t(leading() >> 4) << 16 |
           std::uint64_t(stride() >> 4) << 32 | std::uint64_t(1) << 46 |
           (hasWideAtoms() ? 1 : kSwizzles.at(form.swizzle)) << 61;
  }
};
} // namespace

/// Where D's rows and columns are in each CTA (PTX ISA, data path layouts).
static std::pair<int, int> placeOfSum(const Form &form, int row, int column) {
  int rows = form.m / form.group;
  if (rows == 128)
    return {row, column};
  if (form.isStationary || form.group == 2) {
    int width = form.n * rows / 128;
    return {row + column / width * rows, column % width};
  }
  return {row / 16 * 32 + row % 16, column};
}

/// The kernel's part: D's old values, A and the scales into tensor memory, the
/// product, and D out of it: 64 columns of every lane.
static std::string bodyOf(const Form &form, const Place &a, const Place &b) {
  std::string body, masks;
  // D is lane + column, as its own type.
  body += ".reg .f32 %f<2>;\n.reg .b16 %h<1>;\n";
  for (int i = 0; i < 64; ++i) {
    body += fmt::format("add.u32 %r{0}, %t, {0};\n", i);
    if (form.typeD != "s32")
      body +=
          fmt::format("cvt.rn.f32.u32 %f0, %r{0};\nmov.b32 %r{0}, %f0;\n", i);
    if (form.typeD == "f16")
      body += fmt::format("cvt.rn.f16.f32 %h0, %f0;\nmov.b32 %r{0}, {{%h0, "
                          "%h0}};\nand.b32 %r{0}, %r{0}, 0xffff;\n",
                          i);
  }
  body +=
      fmt::format("tcgen05.st.sync.aligned.32x32b.x64.b32 [%mine], {{{}}};\n",
                  registerList(0, 64));
  // A, 8 words of each lane, and scales, 8 words of each lane for A and B.
  body += "mul.lo.u32 %r270, %t, 96;\nadd.u32 %r270, %r270, %s;\n";
  for (int i = 0; i < 24; ++i)
    body += fmt::format("ld.shared.b32 %r{}, [%r270+{}];\n", i, 49152 + 4 * i);
  body +=
      fmt::format("tcgen05.st.sync.aligned.32x32b.x8.b32 [%mine+64], {{{}}};"
                  "\ntcgen05.st.sync.aligned.32x32b.x16.b32 [%mine+72], "
                  "{{{}}};\ntcgen05.wait::st.sync.aligned;\n"
                  "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
                  "barrier.cluster.arrive.release.aligned;\n"
                  "barrier.cluster.wait.acquire.aligned;\n"
                  "tcgen05.fence::after_thread_sync;\n",
                  registerList(0, 8), registerList(8, 16));
  body += "and.b32 %r270, %s, 0x3ffff;\nshr.u32 %r270, %r270, 4;\n"
          "cvt.u64.u32 %x0, %r270;\n";
  body += fmt::format("or.b64 %x1, %x0, {:#x};\nor.b64 %x2, %x0, {:#x};\n"
                      "add.u64 %x2, %x2, {};\n",
                      a.descriptor(), b.descriptor(), kOperandB >> 4);
  body += fmt::format("mov.u32 %r271, {:#x};\nsetp.ne.u32 %p0, {}, 0;\n",
                      instructionOf(form), form.isAdded ? 1 : 0);
  if (form.disabled) {
    body += fmt::format("mov.u32 %r269, {:#x};\n", form.disabled);
    for (int i = 0; i < 4 * form.group; ++i)
      masks += fmt::format("{}%r269", i ? ", " : "{");
    masks += "}, ";
  }
  body += "setp.eq.and.u32 %p1, %rank, 0, %lead;\n";
  body += fmt::format(
      "@%p1 tcgen05.mma{}.cta_group::{}.kind::{}{} [%tmem], {}, %x2, %r271, "
      "{}{}%p0{};\n",
      form.isStationary ? ".ws" : "", form.group, form.kind, form.block,
      form.isAInTensor ? "[%tmem+64]" : "%x1",
      form.blockElements ? "[%tmem+72], [%tmem+80], " : "", masks,
      form.shiftD ? fmt::format(", {}", form.shiftD) : "");
  body += fmt::format(
      "mov.u16 %h0, 3;\n"
      "@%p1 tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster"
      "{}.b64 [%bar]{};\n",
      form.group, form.group == 2 ? ".multicast::cluster" : "",
      form.group == 2 ? ", %h0" : "");
  body += fmt::format(
      "waiting:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar], 0;\n"
      "@!%p2 bra waiting;\ntcgen05.fence::after_thread_sync;\n"
      "tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%mine];\n"
      "tcgen05.wait::ld.sync.aligned;\n"
      "shl.b32 %r270, %rank, 7;\nadd.u32 %r270, %r270, %t;\n"
      "mul.wide.u32 %x3, %r270, 256;\nadd.u64 %x3, %x3, %out;\n",
      registerList(0, 64));
  for (int i = 0; i < 64; ++i)
    body += fmt::format("st.global.b32 [%x3+{}], %r{};\n", 4 * i, i);
  return body;
}

/// Run one product and compare every word of 64 columns with the reference.
static void expectProduct(const Form &form, Interleaving order) {
  SCOPED_TRACE(form.name());
  std::mt19937 random(7);
  int rows = form.m / form.group, columns = form.n / form.group, k = form.k();
  Place a{form, form.typeA, form.isATransposed, rows};
  Place b{form, form.typeB, form.isBTransposed, columns};
  std::vector<std::uint8_t> shared(static_cast<std::size_t>(form.group) *
                                   kSharedBytes);
  std::vector<double> valuesA(form.m * k), valuesB(form.n * k);
  auto word = [&](int cta, int lane, int index) {
    return shared.data() + cta * kSharedBytes + 49152 + lane * 96 + 4 * index;
  };
  for (int row = 0; row < form.m; ++row)
    for (int i = 0; i < k; ++i) {
      std::uint32_t bits = randomBits(form.typeA, random);
      valuesA[row * k + i] = numberOf(form.typeA, bits);
      int cta = row / rows, own = row % rows;
      if (!form.isAInTensor) {
        a.put(shared, cta * kSharedBytes, own, i, bits);
        continue;
      }
      if (form.typeA == "e2m1" && !form.isPacked())
        bits <<= 2;
      int size = form.bits(form.typeA);
      auto [lane, unused] = placeOfSum(form, own, 0);
      for (int bit = 0; bit < size; ++bit)
        if (bits >> bit & 1)
          word(cta, lane, 0)[(i * size + bit) / 8] |= 1 << (i * size + bit) % 8;
    }
  for (int column = 0; column < form.n; ++column)
    for (int i = 0; i < k; ++i) {
      std::uint32_t bits = randomBits(form.typeB, random);
      valuesB[column * k + i] = numberOf(form.typeB, bits);
      b.put(shared, column / columns * kSharedBytes + kOperandB,
            column % columns, i, bits);
    }
  // Scales: the words of row r are in lane r % 32 of column r / 32, in every
  // quarter of the lanes.
  auto scaleOf = [&](bool isA, int row, int block) {
    std::uint32_t bits = (row * 5 + block * 3 + isA) % 7;
    bool isPower = form.block.find("4X") == std::string::npos;
    std::uint32_t code = isPower ? 124 + bits : 0x30 + bits;
    double value =
        isPower ? std::ldexp(1.0, int(bits) - 3) : numberOf("e4m3", code);
    return std::pair(code, value);
  };
  int blocks = form.blockElements ? k / form.blockElements : 0;
  for (int cta = 0; cta < form.group && blocks; ++cta)
    for (bool isA : {true, false})
      for (int row = 0; row < (isA ? rows : form.n); ++row)
        for (int block = 0; block < blocks; ++block)
          for (int quarter = 0; quarter < 4; ++quarter)
            word(cta, row % 32 + 32 * quarter,
                 (isA ? 8 : 16) + row / 32)[block] =
                static_cast<std::uint8_t>(
                    scaleOf(isA, isA ? row + cta * rows : row, block).first);
  RunTensor run(bodyOf(form, a, b), shared,
                static_cast<std::size_t>(form.group) * 128 * 64, form.group);
  std::vector<std::uint32_t> out = run.run(order);
  for (int row = 0; row < form.m; ++row)
    for (int column = 0; column < form.n; ++column) {
      auto [lane, at] = placeOfSum(form, row % rows, column);
      double before = lane + at, sum = 0;
      for (int i = 0; i < k; ++i) {
        double scale =
            blocks ? scaleOf(true, row, i / form.blockElements).second *
                         scaleOf(false, column, i / form.blockElements).second
                   : 1;
        sum += valuesA[row * k + i] * valuesB[column * k + i] * scale;
      }
      if (form.isANegated)
        sum = -sum;
      double wanted =
          sum + (form.isAdded ? std::ldexp(before, -form.shiftD) : 0);
      bool isKept = form.disabled >> lane % 32 & 1;
      if (isKept)
        wanted = before;
      std::uint32_t word = out[(row / rows * 128 + lane) * 64 + at];
      double got = form.typeD == "s32"   ? double(std::int32_t(word))
                   : form.typeD == "f16" ? halfToFloat(std::uint16_t(word))
                                         : std::bit_cast<float>(word);
      double tolerance = form.typeD == "s32"   ? 0
                         : form.typeD == "f16" ? std::abs(wanted) * 1e-3 + 1e-3
                                               : std::abs(wanted) * 1e-5 + 1e-3;
      ASSERT_NEAR(got, wanted, tolerance)
          << "row " << row << " column " << column;
    }
}

TEST(Tcgen05Product, MultipliesHalvesInEveryLayout) {
  for (int swizzle : {0, 32, 64, 128})
    for (bool isA : {false, true})
      for (bool isB : {false, true})
        expectProduct(
            {.swizzle = swizzle, .isATransposed = isA, .isBTransposed = isB},
            Interleaving::random);
  for (Interleaving order : kOrders)
    expectProduct({.typeA = "bf16", .typeB = "bf16", .n = 24}, order);
}

// As CuTe's tutorial places them: the pattern goes by the address, wherever an
// operand begins in it.
TEST(Tcgen05Product, OperandsMayBeginInsideThePattern) {
  for (int swizzle : {32, 64, 128})
    for (int begin : {128, 384, 896})
      expectProduct({.swizzle = swizzle, .begin = begin}, Interleaving::random);
}

TEST(Tcgen05Product, MultipliesEveryKind) {
  std::vector<Form> forms = {
      {.typeD = "f16"},
      {.isAdded = false},
      {.isANegated = true},
      {.shiftD = 3},
      {.disabled = 0x80000003},
      {.kind = "tf32", .typeA = "tf32", .typeB = "tf32", .n = 16},
      {.kind = "tf32",
       .typeA = "tf32",
       .typeB = "tf32",
       .isATransposed = true,
       .isBTransposed = true},
      {.kind = "i8", .typeA = "s8", .typeB = "u8", .typeD = "s32", .n = 32},
  };
  for (const char *a : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"})
    for (const char *b : {"e4m3", "e3m2", "e2m1"})
      forms.push_back({.kind = "f8f6f4", .typeA = a, .typeB = b});
  forms.push_back({.kind = "f8f6f4",
                   .typeA = "e4m3",
                   .typeB = "e5m2",
                   .isATransposed = true,
                   .isBTransposed = true});
  for (const Form &form : forms)
    expectProduct(form, Interleaving::eager);
}

TEST(Tcgen05Product, KeepsAccumulatorsOfEveryShape) {
  for (const Form &form : std::vector<Form>{
           {.m = 64, .n = 40},
           {.m = 64, .n = 64, .isStationary = true},
           {.m = 32, .n = 64, .isStationary = true},
           {.m = 128, .n = 64, .isStationary = true},
           {.m = 256, .n = 64, .group = 2},
           {.m = 128, .n = 64, .group = 2},
           {.m = 256, .n = 64, .isBTransposed = true, .group = 2}})
    for (Interleaving order : kOrders)
      expectProduct(form, order);
}

TEST(Tcgen05Product, TakesOperandAFromTensorMemory) {
  for (const Form &form :
       std::vector<Form>{{.isAInTensor = true},
                         {.m = 64, .isAInTensor = true},
                         {.m = 256, .group = 2, .isAInTensor = true},
                         {.kind = "tf32",
                          .typeA = "tf32",
                          .typeB = "tf32",
                          .isAInTensor = true},
                         {.kind = "f8f6f4",
                          .typeA = "e2m1",
                          .typeB = "e4m3",
                          .isAInTensor = true},
                         {.kind = "f8f6f4",
                          .typeA = "e3m2",
                          .typeB = "e4m3",
                          .isAInTensor = true}})
    expectProduct(form, Interleaving::lazy);
}

TEST(Tcgen05Product, ScalesBlocks) {
  std::string scaled = ".block_scale";
  for (int group : {1, 2})
    for (const Form &form :
         std::vector<Form>{{.kind = "mxf8f6f4",
                            .typeA = "e4m3",
                            .typeB = "e5m2",
                            .block = scaled + ".scale_vec::1X",
                            .blockElements = 32},
                           {.kind = "mxf8f6f4",
                            .typeA = "e2m1",
                            .typeB = "e3m2",
                            .block = scaled,
                            .blockElements = 32},
                           {.kind = "mxf4",
                            .typeA = "e2m1",
                            .typeB = "e2m1",
                            .block = scaled + ".scale_vec::2X",
                            .blockElements = 32},
                           {.kind = "mxf4nvf4",
                            .typeA = "e2m1",
                            .typeB = "e2m1",
                            .block = scaled + ".scale_vec::4X",
                            .blockElements = 16}}) {
      Form both = form;
      both.group = group;
      both.m = 128 * group;
      expectProduct(both, Interleaving::eager);
    }
}

TEST(Tcgen05Product, RemembersWhereUnwrittenBytesWereReadFirst) {
  // Word 0 of A, or of B, comes from a load of what nobody wrote.
  Form form;
  Place a{form, form.typeA, false, form.m}, b{form, form.typeB, false, form.n};
  for (std::uint32_t operand : {0u, kOperandB}) {
    RunTensor run(fmt::format("@%lead ld.global.b32 %r268, [%out];\n"
                              "@%lead st.shared.b32 [%s+{}], %r268;\n"
                              "fence.proxy.async;\nbar.sync 0;\n",
                              operand) +
                      bodyOf(form, a, b),
                  {}, 128 * 64);
    std::string found = run.finding();
    expectContains(found, "uninitialized-store");
    expectContains(found, ": byte 0 of out (32768 bytes), which nobody wrote");
  }
}

TEST(Tcgen05Product, IsDrawnInTheTimeline) {
  for (int group : {1, 2})
    for (Interleaving order : kOrders) {
      SCOPED_TRACE(group);
      Form form;
      form.m = 128 * group;
      form.group = group;
      Place a{form, form.typeA, false, 128};
      Place b{form, form.typeB, false, form.n / group};
      RunTensor run(bodyOf(form, a, b), {}, 128 * 64 * group, group);
      run.config.interleaving = order;
      run.config.timeline = true;
      LaunchResult result = run.launch();
      EXPECT_TRUE(result.findings.empty()) << result.to_string();
      for (unsigned cta = 0; cta < static_cast<unsigned>(group); ++cta) {
        std::vector<Timeline::Event> products, waits;
        for (const Timeline::Event &event : result.timeline.events) {
          if (event.cta[0] != cta)
            continue;
          if (event.kind == Timeline::Kind::mma)
            products.push_back(event);
          if (event.name() == "wait")
            waits.push_back(event);
        }
        ASSERT_EQ(products.size(), 1u);
        EXPECT_EQ(products[0].row.to_string(), "tcgen05");
        EXPECT_EQ(products[0].name(), "tcgen05.mma");
        EXPECT_EQ(products[0].end - products[0].start, 32u)
            << "two columns in a unit";
        ASSERT_EQ(waits.size(), 4u) << "of each warp, for the commit";
        for (const Timeline::Event &wait : waits)
          EXPECT_EQ(wait.end, products[0].end);
      }
      std::string table = result.timeline.to_table();
      expectContains(table, "| tcgen05  |");
      expectContains(table, "| mma      |");
    }
}

} // namespace kiln::sim
