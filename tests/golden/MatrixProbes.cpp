// MatrixProbes: ldmatrix, stmatrix, movmatrix and mma of one warp.
#include "golden/Probes.h"

namespace kiln::golden {

/// 1 KiB of shared memory from the input, a row address for each lane, and the
/// registers a matrix may be in.
static const char *kFill = R"(
.reg .b32 %i, %s, %a<4>, %b<2>, %d<4>, %row;
.reg .b64 %g, %o;
.reg .b64 %x<8>;
.reg .pred %p;
mov.u32 %i, %t;
fill:
mad.wide.u32 %g, %i, 4, %in1;
ld.global.u32 %d0, [%g];
mad.lo.u32 %s, %i, 4, %smem;
st.shared.u32 [%s], %d0;
add.u32 %i, %i, 32;
setp.lt.u32 %p, %i, 256;
@%p bra fill;
bar.warp.sync 0xffffffff;
mul.lo.u32 %row, %t, 7;
and.b32 %row, %row, 31;
mad.lo.u32 %row, %row, 16, %smem;
)";

static std::string registers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}%d{}", i ? ", " : "", i);
  return "{" + list + "}";
}

static Probe loadProbe(int count, const std::string &transposed) {
  Probe probe{.group = "matrix",
              .name = fmt::format("ldmatrix_x{}{}", count, transposed)};
  std::string body =
      kFill + fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, "
                          "[%row];\n"
                          "mad.wide.u32 %o, %t, {}, %out;\n",
                          count, transposed, registers(count), 4 * count);
  for (int i = 0; i < count; ++i)
    body += fmt::format("st.global.u32 [%o+{}], %d{};\n", 4 * i, i);
  probe.ptx = moduleText(1, 0, body);
  probe.smemBytes = 1024;
  probe.inputs = {randomBytes(Type::u32, 256, 31, 0, 4294967295.0)};
  probe.outputBytes = 128u * count;
  return probe;
}

static Probe storeProbe(int count, const std::string &transposed) {
  Probe probe{.group = "matrix",
              .name = fmt::format("stmatrix_x{}{}", count, transposed)};
  std::string body = kFill;
  for (int i = 0; i < count; ++i)
    body += fmt::format("mad.lo.u32 %d{0}, %t, 0x9e3779b1, {0};\n", i);
  body += fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [%row], "
                      "{};\n"
                      "bar.warp.sync 0xffffffff;\n"
                      "mov.u32 %i, %t;\n"
                      "copy:\n"
                      "mad.lo.u32 %s, %i, 4, %smem;\n"
                      "ld.shared.u32 %d0, [%s];\n"
                      "mad.wide.u32 %o, %i, 4, %out;\n"
                      "st.global.u32 [%o], %d0;\n"
                      "add.u32 %i, %i, 32;\n"
                      "setp.lt.u32 %p, %i, 256;\n"
                      "@%p bra copy;\n",
                      count, transposed, registers(count));
  probe.ptx = moduleText(1, 0, body);
  probe.smemBytes = 1024;
  probe.inputs = {randomBytes(Type::u32, 256, 32, 0, 4294967295.0)};
  probe.outputBytes = 1024;
  return probe;
}

namespace {
/// Registers of 32 bits, or of 64 for f64.
struct Mma {
  std::string shape, d, a, b, c;
  int countA, countB, countD;
  bool isExact = true;
};
} // namespace

/// Random bytes that a type's sums are exact with.
static Bytes numbers(const std::string &type, std::size_t bytes,
                     std::uint64_t seed, bool isExact) {
  if (type == "s8" || type == "u8")
    return randomBytes(Type::u8, bytes, seed, 0, 255);
  if (type == "s32")
    return randomBytes(Type::i32, bytes / 4, seed, -1e9, 1e9);
  Type element = parse_type(type);
  auto size = static_cast<std::size_t>(size_bytes(element));
  if (!isExact)
    return randomBytes(element, bytes / size, seed, -1, 1);
  Bytes whole = randomBytes(Type::i8, bytes / size, seed, -3, 3);
  Bytes result(bytes);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::uint64_t bits = to_bits(element, static_cast<std::int8_t>(whole[i]));
    std::memcpy(&result[i * size], &bits, size);
  }
  return result;
}

static Probe mmaProbe(const Mma &mma) {
  Probe probe{.group = "matrix",
              .name = fmt::format("mma_{}_{}_{}_{}{}", mma.shape, mma.d, mma.a,
                                  mma.b, mma.isExact ? "" : "_rounded")};
  int bytes = mma.d == "f64" ? 8 : 4;
  std::string body = fmt::format(
      ".reg .b64 %o;\n.reg .b{0} %a<4>, %b<2>, %c<4>, %d<4>;\n", 8 * bytes);
  auto load = [&](char name, int count, int input) {
    std::string list;
    body +=
        fmt::format("mad.wide.u32 %o, %t, {}, %in{};\n", bytes * count, input);
    for (int i = 0; i < count; ++i) {
      body += fmt::format("ld.global.b{} %{}{}, [%o+{}];\n", 8 * bytes, name, i,
                          bytes * i);
      list += fmt::format("{}%{}{}", i ? ", " : "", name, i);
    }
    return "{" + list + "}";
  };
  std::string a = load('a', mma.countA, 1), b = load('b', mma.countB, 2);
  std::string c = load('c', mma.countD, 3);
  body += fmt::format("mma.sync.aligned.{}.row.col.{}.{}.{}.{} {}, {}, {}, "
                      "{};\n"
                      "mad.wide.u32 %o, %t, {}, %out;\n",
                      mma.shape, mma.d, mma.a, mma.b, mma.c,
                      registers(mma.countD), a, b, c, bytes * mma.countD);
  for (int i = 0; i < mma.countD; ++i)
    body +=
        fmt::format("st.global.b{} [%o+{}], %d{};\n", 8 * bytes, bytes * i, i);
  probe.ptx = moduleText(3, 0, body);
  auto size = static_cast<std::size_t>(32 * bytes);
  probe.inputs = {numbers(mma.a, size * mma.countA, 33, mma.isExact),
                  numbers(mma.b, size * mma.countB, 34, mma.isExact),
                  numbers(mma.c, size * mma.countD, 35, mma.isExact)};
  probe.outputBytes = size * mma.countD;
  return probe;
}

void addMatrixProbes(std::vector<Probe> &list) {
  for (int count : {1, 2, 4})
    for (const char *transposed : {"", ".trans"}) {
      list.push_back(loadProbe(count, transposed));
      list.push_back(storeProbe(count, transposed));
    }
  Probe move{.group = "matrix", .name = "movmatrix"};
  move.ptx = moduleText(0, 0, R"(
.reg .b32 %a;
.reg .b64 %o;
mad.lo.u32 %a, %t, 0x9e3779b1, 77;
movmatrix.sync.aligned.m8n8.trans.b16 %a, %a;
mad.wide.u32 %o, %t, 4, %out;
st.global.u32 [%o], %a;
)");
  move.outputBytes = 128;
  list.push_back(move);
  const Mma products[] = {
      {"m16n8k16", "f32", "f16", "f16", "f32", 4, 2, 4},
      {"m16n8k8", "f32", "f16", "f16", "f32", 2, 1, 4},
      {"m16n8k16", "f16", "f16", "f16", "f16", 4, 2, 2},
      {"m16n8k16", "f32", "bf16", "bf16", "f32", 4, 2, 4},
      {"m16n8k8", "f32", "bf16", "bf16", "f32", 2, 1, 4},
      {"m16n8k8", "f32", "tf32", "tf32", "f32", 4, 2, 4},
      {"m16n8k4", "f32", "tf32", "tf32", "f32", 2, 1, 4},
      {"m16n8k32", "s32", "s8", "s8", "s32", 4, 2, 4},
      {"m16n8k32", "s32", "u8", "s8", "s32", 4, 2, 4},
      {"m16n8k16", "s32", "s8", "u8", "s32", 2, 1, 4},
      {"m8n8k16", "s32", "u8", "u8", "s32", 1, 1, 2},
      {"m16n8k32", "f32", "e4m3", "e5m2", "f32", 4, 2, 4},
      {"m16n8k32", "f32", "e5m2", "e4m3", "f32", 4, 2, 4},
      {"m8n8k4", "f64", "f64", "f64", "f64", 1, 1, 2},
      {"m16n8k16", "f32", "f16", "f16", "f32", 4, 2, 4, false},
      {"m16n8k16", "f16", "f16", "f16", "f16", 4, 2, 2, false},
      {"m16n8k16", "f32", "bf16", "bf16", "f32", 4, 2, 4, false},
      {"m16n8k8", "f32", "tf32", "tf32", "f32", 4, 2, 4, false},
  };
  for (const Mma &mma : products)
    list.push_back(mmaProbe(mma));
}

} // namespace kiln::golden
