// Wgmma: products of every type, shape and place of A, against a plain triple
// loop, with operands laid out by the canonical layouts of the PTX ISA.
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

#include <random>

namespace kiln::sim {

static constexpr std::uint32_t kOperandA = 0, kOperandB = 16384;
static constexpr std::size_t kSharedBytes = 49152;

namespace {
struct Form {
  std::string typeD, typeA, typeB;
  int n;
  int swizzle = 128; ///< 0, 32, 64, 128
  bool isAInRegisters = false;
  bool isATransposed = false, isBTransposed = false;
  int scaleA = 1, scaleB = 1;
  bool isAdded = true;
  std::string saturation;

  std::string name() const {
    return fmt::format("n{} {} = {} * {}, swizzle {}, {}{}{}", n, typeD, typeA,
                       typeB, swizzle, isAInRegisters ? "A in registers" : "",
                       isATransposed ? " A MN" : "",
                       isBTransposed ? " B MN" : "");
  }
};

/// Shape and strides of one mode of a CuTe layout: index -> offset.
struct Mode {
  std::vector<int> shape, stride;
  int operator()(int index) const {
    int offset = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      offset += index % shape[i] * stride[i];
      index /= shape[i];
    }
    return offset;
  }
};
/// ((8,m),(T,2k)) and the like: element (mn, k) -> offset in elements.
struct Layout {
  Mode mn, k;
  int lbo, sbo; ///< elements
};
} // namespace

static int bytesOf(const std::string &type) {
  if (type == "tf32")
    return 4;
  return type == "f16" || type == "bf16" ? 2 : 1;
}

/// Row of the table "canonical layouts", with strides chosen so that the
/// operand is dense.
static Layout layoutOf(int swizzle, bool isTransposed, int bytes, int rows) {
  int t = 16 / bytes;
  if (!isTransposed) {
    if (swizzle == 0) {
      int sbo = 8 * t, lbo = rows / 8 * sbo;
      return {{{8, 64}, {t, sbo}}, {{t, 64}, {1, lbo}}, lbo, sbo};
    }
    int wide = swizzle / 16 * t, sbo = 8 * wide;
    return {{{8, 64}, {wide, sbo}}, {{t, 64}, {1, t}}, 1, sbo};
  }
  if (swizzle == 0) {
    int lbo = 8 * t, sbo = 2 * lbo;
    return {{{t, 64}, {1, sbo}}, {{8, 64}, {t, lbo}}, lbo, sbo};
  }
  int chunks = swizzle / 16, sbo = 8 * chunks * t, lbo = 2 * sbo;
  return {
      {{t, chunks, 64}, {1, t, lbo}}, {{8, 64}, {chunks * t, sbo}}, lbo, sbo};
}

/// A[6:4] ^= A[9:7] and so on.
static std::uint32_t swizzledAddress(std::uint32_t address, int swizzle) {
  std::uint32_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle / 32;
  return address ^ (address >> 7 & mask) << 4;
}

static std::uint64_t descriptorOf(std::uint32_t start, const Layout &layout,
                                  int bytes, int swizzle) {
  std::uint64_t mode = swizzle == 128  ? 1
                       : swizzle == 64 ? 2
                       : swizzle == 32 ? 3
                                       : 0;
  return (start + kFirstSharedAddress) / 16 |
         std::uint64_t(layout.lbo * bytes / 16) << 16 |
         std::uint64_t(layout.sbo * bytes / 16) << 32 | mode << 62;
}

static std::uint32_t encodeValue(const std::string &type, double value) {
  auto rounded = [&](const FloatFormat &format) {
    return encode(format, value, Rounding::nearest_even, false);
  };
  if (type == "f16")
    return rounded(kFormatF16);
  if (type == "bf16")
    return rounded(kFormatBf16);
  if (type == "tf32" || type == "f32")
    return rounded(kFormatF32);
  if (type == "e4m3")
    return rounded(kFormatE4m3);
  if (type == "e5m2")
    return rounded(kFormatE5m2);
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

static std::string registerList(const char *name, int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + list + "}";
}

static int accumulatorRegisters(const Form &form) {
  return form.typeD == "f16" ? form.n / 4 : form.n / 2;
}

static std::string instructionOf(const Form &form) {
  int k = 32 / bytesOf(form.typeA);
  bool isInteger = form.typeD == "s32";
  std::string text = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {}, %db, %added",
      form.n, k, form.saturation, form.typeD, form.typeA, form.typeB,
      registerList("d", accumulatorRegisters(form)),
      form.isAInRegisters ? "{%a0, %a1, %a2, %a3}" : "%da");
  if (!isInteger)
    text += fmt::format(", {}, {}", form.scaleA, form.scaleB);
  if (bytesOf(form.typeA) == 2) {
    if (!form.isAInRegisters)
      text += fmt::format(", {}", int(form.isATransposed));
    text += fmt::format(", {}", int(form.isBTransposed));
  }
  return text + ";\n";
}

/// Shared memory and registers from `image`, one wgmma, registers to `result`.
/// `between` stands behind the wgmma, before it is waited for.
static std::string kernelOf(const Form &form, const std::string &between) {
  int count = accumulatorRegisters(form);
  std::string text = fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry test(.param .u64 image, .param .u64 result, .param .u64 da,
                     .param .u64 db, .param .u32 added)
{{
.reg .b32 %d<{}>, %a<4>, %t, %w, %s, %n;
.reg .b64 %image, %result, %da, %db, %x, %y;
.reg .pred %p, %added;
ld.param.u64 %image, [image];
ld.param.u64 %result, [result];
ld.param.u64 %da, [da];
ld.param.u64 %db, [db];
ld.param.u32 %w, [added];
setp.ne.u32 %added, %w, 0;
mov.u32 %t, %tid.x;
mov.u32 %s, memory;
shl.b32 %n, %t, 2;
loop:
cvt.u64.u32 %x, %n;
add.u64 %x, %x, %image;
ld.global.b32 %w, [%x];
add.u32 %w, %w, 0;
{{ .reg .b32 %at; add.u32 %at, %s, %n; st.shared.b32 [%at], %w; }}
add.u32 %n, %n, 512;
setp.lt.u32 %p, %n, {};
@%p bra loop;
fence.proxy.async;
bar.sync 0;
mul.wide.u32 %y, %t, 4;
add.u64 %x, %image, %y;
add.u64 %y, %result, %y;
)",
                                 count, kSharedBytes);
  for (int i = 0; i < 4; ++i)
    text += fmt::format("ld.global.b32 %a{}, [%x+{}];\n", i,
                        kSharedBytes + 512 * i);
  for (int i = 0; i < count; ++i)
    text += fmt::format("ld.global.b32 %d{}, [%y+{}];\n", i, 512 * i);
  text += "wgmma.fence.sync.aligned;\n" + instructionOf(form) +
          "wgmma.commit_group.sync.aligned;\n" + between +
          "wgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("st.global.b32 [%y+{}], %d{};\n", 512 * i, i);
  return text + "ret;\n}\n";
}

namespace {
/// One product: its inputs as numbers, and what came out.
class RunProduct {
public:
  RunProduct(const Form &form, const std::string &between = "")
      : form_(form), module_(ptx::parse(kernelOf(form, between))),
        image_(memory_.allocate(kSharedBytes + 2048, "image")),
        result_(memory_.allocate(512 * 128, "result")),
        k(32 / bytesOf(form.typeA)), a(64 * k), b(form.n * k), c(64 * form.n) {
    image_.valid.set(0, image_.bytes);
    result_.valid.set(0, result_.bytes);
  }

  LaunchResult run(Interleaving order) {
    int bytes = bytesOf(form_.typeA);
    Layout layoutA = layoutOf(form_.swizzle, form_.isATransposed, bytes, 64);
    Layout layoutB =
        layoutOf(form_.swizzle, form_.isBTransposed, bytes, form_.n);
    for (int row = 0; row < 64; ++row)
      for (int i = 0; i < k; ++i) {
        std::uint32_t bits = encodeValue(form_.typeA, a[row * k + i]);
        put(kOperandA, layoutA, row, i, bits);
        putFragment(row, i, bits);
      }
    for (int column = 0; column < form_.n; ++column)
      for (int i = 0; i < k; ++i)
        put(kOperandB, layoutB, column, i,
            encodeValue(form_.typeB, b[column * k + i]));
    for (auto [row, i] : unwrittenA) {
      image_.valid.clear(addressOf(kOperandA, layoutA, row, i), bytes);
      image_.valid.clear(fragmentAddress(row, i), bytes);
    }
    for (auto [column, i] : unwrittenB)
      image_.valid.clear(addressOf(kOperandB, layoutB, column, i), bytes);
    forEachResult([&](std::size_t at, int bytesD, int row, int column) {
      std::uint32_t bits = encodeValue(form_.typeD, c[row * form_.n + column]);
      std::memcpy(result_.data.get() + at, &bits, bytesD);
    });
    LaunchConfig config;
    config.block = {128, 1, 1};
    config.threads = 1;
    config.dynamicSmemBytes = kSharedBytes;
    config.interleaving = order;
    config.allow = allow;
    config.params.resize(40);
    std::uint64_t values[] = {
        image_.base, result_.base,
        descriptorOf(kOperandA, layoutA, bytes, form_.swizzle),
        descriptorOf(kOperandB, layoutB, bytes, form_.swizzle),
        std::uint64_t(form_.isAdded)};
    std::memcpy(config.params.data(), values, 40);
    Launch launch(memory_, module_, module_.functions.at(0), config);
    return launch.run();
  }

  /// [row][column]
  std::vector<double> results() {
    std::vector<double> values(c.size());
    forEachResult([&](std::size_t at, int bytesD, int row, int column) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, result_.data.get() + at, bytesD);
      double &value = values[row * form_.n + column];
      if (form_.typeD == "s32")
        value = static_cast<std::int32_t>(bits);
      else
        value = bytesD == 2 ? halfToFloat(std::uint16_t(bits))
                            : std::bit_cast<float>(bits);
    });
    return values;
  }
  /// Whether nobody has written an element of the result.
  bool isUnwritten(int row, int column) {
    bool isIt = false;
    forEachResult([&](std::size_t at, int bytesD, int r, int c) {
      if (r == row && c == column)
        isIt = result_.valid.unwritten(at, bytesD) != 0;
    });
    return isIt;
  }
  /// Elements (row, k) of A and (column, k) of B that nobody writes.
  std::vector<std::pair<int, int>> unwrittenA, unwrittenB;
  std::vector<std::string> allow; ///< ids of findings
  double result(int row, int column) {
    return results()[row * form_.n + column];
  }

private:
  void put(std::uint32_t start, const Layout &layout, int mn, int i,
           std::uint32_t bits) {
    std::memcpy(image_.data.get() + addressOf(start, layout, mn, i), &bits,
                bytesOf(form_.typeA));
  }
  std::uint32_t addressOf(std::uint32_t start, const Layout &layout, int mn,
                          int i) const {
    int bytes = bytesOf(form_.typeA);
    return swizzledAddress(start + (layout.mn(mn) + layout.k(i)) * bytes,
                           form_.swizzle);
  }
  /// ALayout_64x16 and its like: thread t of the warpgroup holds row
  /// 16 * (t / 32) + t % 32 / 4 and eight rows further down.
  void putFragment(int row, int i, std::uint32_t bits) {
    std::memcpy(image_.data.get() + fragmentAddress(row, i), &bits,
                bytesOf(form_.typeA));
  }
  std::size_t fragmentAddress(int row, int i) const {
    int bytes = bytesOf(form_.typeA), per = 4 / bytes;
    int thread = row / 16 * 32 + row % 8 * 4 + i / per % 4;
    int reg = row / 8 % 2 + 2 * (i / (4 * per));
    return kSharedBytes + 512 * reg + 4 * thread + i % per * bytes;
  }
  /// CLayout_64xN: (place in the result, bytes, row, column).
  template <typename F> void forEachResult(F &&use) {
    for (int thread = 0; thread < 128; ++thread)
      for (int i = 0; i < form_.n / 2; ++i) {
        int row = 16 * (thread / 32) + thread % 32 / 4 + 8 * ((i >> 1) & 1);
        int column = 8 * (i >> 2) + 2 * (thread % 4) + (i & 1);
        if (form_.typeD == "f16")
          use(std::size_t(512 * (i / 2) + 4 * thread + 2 * (i & 1)), 2, row,
              column);
        else
          use(std::size_t(512 * i + 4 * thread), 4, row, column);
      }
  }

  Form form_;
  ptx::Module module_;
  GlobalMemory memory_;
  Region &image_, &result_;

public:
  const int k;
  std::vector<double> a, b, c; ///< [row][k], [column][k], [row][column]
};
} // namespace

/// Small whole numbers: every sum is exact in every type.
static void fillRandomly(std::vector<double> &values, std::mt19937 &random,
                         int least, int most) {
  std::uniform_int_distribution<int> draw(least, most);
  for (double &value : values)
    value = draw(random);
}

static void checkForm(const Form &form) {
  SCOPED_TRACE(form.name());
  std::mt19937 random(form.n + form.swizzle);
  RunProduct product(form);
  fillRandomly(product.a, random, form.typeA == "u8" ? 0 : -3, 3);
  fillRandomly(product.b, random, form.typeB == "u8" ? 0 : -3, 3);
  fillRandomly(product.c, random, -50, 50);
  Interleaving order = kOrders[form.n / 8 % 3];
  for (const Finding &finding : product.run(order).findings)
    FAIL() << finding.id << ": " << finding.message;
  std::vector<double> results = product.results();
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < form.n; ++column) {
      double sum = form.isAdded ? product.c[row * form.n + column] : 0;
      for (int i = 0; i < product.k; ++i)
        sum += form.scaleA * product.a[row * product.k + i] * form.scaleB *
               product.b[column * product.k + i];
      ASSERT_EQ(results[row * form.n + column], sum)
          << "row " << row << " column " << column;
    }
}

TEST(Wgmma, MultipliesEveryType) {
  const char *const types[][3] = {
      {"f32", "f16", "f16"},   {"f16", "f16", "f16"},   {"f32", "bf16", "bf16"},
      {"f32", "tf32", "tf32"}, {"f32", "e4m3", "e4m3"}, {"f16", "e4m3", "e5m2"},
      {"f32", "e5m2", "e4m3"}, {"f32", "e5m2", "e5m2"}, {"s32", "s8", "s8"},
      {"s32", "s8", "u8"},     {"s32", "u8", "s8"},     {"s32", "u8", "u8"}};
  for (auto [d, a, b] : types)
    for (bool isAInRegisters : {false, true})
      for (int swizzle : {0, 32, 64, 128})
        checkForm({d, a, b, 16, swizzle, isAInRegisters});
}

TEST(Wgmma, MultipliesEveryWidth) {
  for (int n = 8; n <= 256; n += 8) {
    checkForm({"f32", "f16", "f16", n});
    checkForm({"f16", "f16", "f16", n, 64, true});
    if (n <= 32 || n % 16 == 0)
      checkForm({"s32", "s8", "u8", n, 32});
  }
}

TEST(Wgmma, ReadsMnMajorOperands) {
  for (const char *type : {"f16", "bf16"})
    for (int swizzle : {0, 32, 64, 128})
      for (bool isATransposed : {false, true})
        checkForm({"f32", type, type, 64, swizzle, false, isATransposed, true});
  checkForm({"f32", "bf16", "bf16", 128, 128, true, false, true});
}

TEST(Wgmma, NegatesOperandsAndOverwrites) {
  for (int scaleA : {1, -1})
    for (int scaleB : {1, -1})
      for (bool isAInRegisters : {false, true})
        checkForm({"f32", "f16", "f16", 24, 128, isAInRegisters, false, false,
                   scaleA, scaleB, isAInRegisters});
}

TEST(Wgmma, SaturatesIntegersWhereAsked) {
  for (bool isSaturated : {false, true}) {
    Form form{"s32", "u8", "u8", 8};
    if (isSaturated)
      form.saturation = ".satfinite";
    RunProduct product(form);
    std::fill(product.a.begin(), product.a.end(), 255);
    std::fill(product.b.begin(), product.b.end(), 255);
    std::fill(product.c.begin(), product.c.end(), 2147483640.0);
    EXPECT_TRUE(product.run(Interleaving::eager).findings.empty());
    EXPECT_EQ(product.result(5, 3),
              isSaturated ? 2147483647.0
                          : 2147483640.0 + 32.0 * 255 * 255 - 4294967296.0);
  }
}

/// 128 * 128 and 31 ones, in one product of e4m3: the sum is not exact.
TEST(Wgmma, CutsOffSumsOfEightBitFloats) {
  for (auto [large, expected] :
       {std::pair(128.0, 16384.0), std::pair(64.0, 4096.0 + 31)}) {
    RunProduct product({"f32", "e4m3", "e4m3", 8});
    std::fill(product.a.begin(), product.a.end(), 1);
    std::fill(product.b.begin(), product.b.end(), 1);
    for (int row = 0; row < 64; ++row)
      product.a[row * 32 + 7] = large;
    for (int column = 0; column < 8; ++column)
      product.b[column * 32 + 7] = large;
    EXPECT_TRUE(product.run(Interleaving::eager).findings.empty());
    EXPECT_EQ(product.result(63, 7), expected);
  }
  // Infinity and NaN come through.
  RunProduct product({"f32", "e5m2", "e5m2", 8});
  product.a[3] = INFINITY;
  product.b[3] = 1;
  EXPECT_TRUE(product.run(Interleaving::eager).findings.empty());
  EXPECT_EQ(product.result(0, 0), INFINITY);
  EXPECT_TRUE(std::isnan(product.result(0, 1)));
  EXPECT_EQ(product.result(1, 0), 0);
}

TEST(Wgmma, RegistersOfAMayBeReadAndNotWritten) {
  Form form{"f32", "f16", "f16", 8, 128, true};
  EXPECT_TRUE(RunProduct(form, "mov.b32 %w, %a1;\n")
                  .run(Interleaving::lazy)
                  .findings.empty());
  auto findings =
      RunProduct(form, "mov.b32 %a1, 0;\n").run(Interleaving::lazy).findings;
  ASSERT_EQ(findings.size(), 1u);
  expectContains(findings[0].id, "wgmma-register-in-flight");
  expectContains(findings[0].message, "this touches operand A of the wgmma at");
  findings =
      RunProduct(form, "mov.b32 %w, %d1;\n").run(Interleaving::lazy).findings;
  ASSERT_EQ(findings.size(), 1u);
  expectContains(findings[0].message,
                 "this touches an accumulator of the wgmma at");
}

/// Only the second CTA touches a register behind the fence.
TEST(Wgmma, NamesWhoTouchedARegisterInAnyCta) {
  constexpr const char *kPtx = R"(
.version 8.2
.target sm_90a
.address_size 64
.visible .entry kernel()
{
    .shared .align 1024 .b8 tile[4096];
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<8>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r4, tile;
    add.u32 %r3, %r4, %r2;
    mov.u32 %r5, 0;
    st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};
    st.shared.v4.b32 [%r3+2048], {%r5, %r5, %r5, %r5};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r6, %r4, 4;
    cvt.u64.u32 %rd1, %r6;
    or.b64 %rd1, %rd1, 0x1000080000;
    add.u64 %rd2, %rd1, 128;
    mov.u32 %r7, %ctaid.x;
    setp.eq.u32 %p, %r7, 1;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    mov.f32 %f4, 0f00000000;
    wgmma.fence.sync.aligned;
    @%p mov.f32 %f1, 0f00000000;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ret;
}
)";
  SimOptions options;
  options.threads = 1;
  LaunchDescription launch;
  launch.ptx = kPtx;
  launch.grid = {2, 1, 1};
  launch.block = {128, 1, 1};
  std::vector<Finding> findings = open_sim(options)->launch(launch).findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "wgmma-fence-order");
  ASSERT_TRUE(findings[0].other);
  EXPECT_EQ(findings[0].other->who,
            "thread 96 and 31 more of its warp of CTA (1, 0, 0)");
}

TEST(Wgmma, IsFoundInFlightWhenTheKernelEnds) {
  auto found = [](const std::string &ending) {
    RunKernel run(R"(
      mov.f32 %f1, 0f00000000;
      mov.f32 %f2, 0f00000000;
      mov.f32 %f3, 0f00000000;
      mov.f32 %f4, 0f00000000;
      shr.u32 %r0, %s, 4;
      cvt.u64.u32 %x1, %r0;
      or.b64 %x1, %x1, 0x1000080000;
      wgmma.fence.sync.aligned;
      wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %x1, %x1, 1, 1, 1, 0, 0;
    )" + ending);
    run.config.block = {128, 1, 1};
    return run.finding();
  };
  const std::string commit = "wgmma.commit_group.sync.aligned;\n",
                    wait = "wgmma.wait_group.sync.aligned ";
  const char *message =
      "wgmma-at-exit: the warp leaves the kernel, and has not waited for this "
      "wgmma; missing: wgmma.commit_group and wgmma.wait_group 0";
  expectContains(found(""), message);
  expectContains(found(commit), message);
  expectContains(found(commit + wait + "1;"), message);
  expectContains(found(wait + "0;"), message);
  EXPECT_EQ(found(commit + wait + "0;"), "");
}

TEST(Wgmma, RefusesByReason) {
  expectRefusals({
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r, %r}, %d, %d, "
       "%p, 1, 1, 0, 0;",
       "2 accumulator registers for n8, which has 4"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r, %r, %r, %r}, "
       "{%r}, %d, %p, 1, 1, 0;",
       "1 registers for A, which has 4"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r, %r, %r, %r}, "
       "%d, %d, %p, 2, 1, 0, 0;",
       "imm-scale is 1 or -1"},
      {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r, %r, %r, %r}, "
       "%d, %d, %p, 1, 1, 0, 0;",
       "wgmma.mma_async takes 6 operands (vector, value, value, predicate, "
       "integer, integer) or 6 operands (vector, vector, value, predicate, "
       "integer, integer), not 8"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r, %r}, %d, %d, "
       "%p, 1, 1, 0, 0;",
       "these types do not go together"},
      {"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r}, %d, %d, %p;",
       "its shape is none of the hardware's"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.bf16.f16.f16 {%r}, %d, %d, %p, "
       "1, 1, 0, 0;",
       "accumulators of type bf16"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f32 {%r}, %d, %d, %p, 1, "
       "1, 0, 0;",
       "operands of type f32"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16 {%r}, %d, %d, %p, 1, 1, "
       "0, 0;",
       "its shape and types are not of the form .m64nNkK.d.a.b"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r}, %d, %d, %p;",
       "wgmma.mma_async.sp takes 10 operands"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16 {%r, %r, %r, %r}, "
       "%d, %d, %r, 0, %p, 1, 1, 0, 0;",
       "its shape is none of the hardware's"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 {%r, %r, %r, %r}, "
       "%d, %d, %r, 1, %p;",
       "the sparsity selector 1; "
       "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 takes 0"},
  });
}

TEST(Wgmma, UnwrittenElementsSpoilRowsAndColumns) {
  const Form forms[] = {
      {.typeD = "f32", .typeA = "f16", .typeB = "f16", .n = 16},
      {.typeD = "f32",
       .typeA = "f16",
       .typeB = "f16",
       .n = 16,
       .isAInRegisters = true},
      {.typeD = "f16", .typeA = "f16", .typeB = "f16", .n = 16},
      {.typeD = "f32",
       .typeA = "bf16",
       .typeB = "bf16",
       .n = 24,
       .isBTransposed = true,
       .isAdded = false},
      {.typeD = "s32", .typeA = "s8", .typeB = "u8", .n = 16},
  };
  for (const Form &form : forms) {
    SCOPED_TRACE(form.name());
    RunProduct run(form);
    int odd = run.k - 1; // the upper part of a word, which sums do not pass on
    run.unwrittenA = {{37, odd}};
    run.unwrittenB = {{5, odd}};
    run.allow = {"uninitialized-store"};
    for (const Finding &finding : run.run(Interleaving::random).findings)
      ADD_FAILURE() << finding.id << ": " << finding.message;
    for (int row = 0; row < 64; ++row)
      for (int column = 0; column < form.n; ++column)
        EXPECT_EQ(run.isUnwritten(row, column), row == 37 || column == 5)
            << row << ", " << column;
  }
  RunProduct told(forms[0]);
  told.unwrittenA = {{0, 1}};
  LaunchResult result = told.run(Interleaving::eager);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].id, "uninitialized-store");
}

} // namespace kiln::sim
