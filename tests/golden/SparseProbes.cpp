// SparseProbes: products whose A has half its elements, and metadata that says
// which: every type, and both halves of the lanes that may bring it.
#include "golden/Probes.h"

namespace kiln::golden {

namespace {
struct Sparse {
  const char *types; ///< of D, A and B
  Type type;         ///< of A and B
  int k;
  int selector;
};
} // namespace

/// Small whole numbers, exact in every type and order.
static Bytes smallNumbers(Type type, std::size_t count, std::uint64_t seed) {
  Bytes bytes;
  for (std::uint8_t byte : randomBytes(Type::u8, count, seed, 0, 6)) {
    std::uint64_t bits =
        type == Type::i8 ? static_cast<std::uint8_t>(static_cast<int>(byte) - 3)
                         : to_bits(type, static_cast<int>(byte) - 3);
    auto *first = reinterpret_cast<const std::uint8_t *>(&bits);
    bytes.insert(bytes.end(), first, first + size_bytes(type));
  }
  return bytes;
}

/// For each thread eight groups: which two of four are there, or which one of
/// two.
static Bytes metadata(const Sparse &sparse) {
  static constexpr std::uint32_t kTwo[] = {4, 8, 12, 9, 13, 14};
  static constexpr std::uint32_t kOne[] = {4, 14};
  std::vector<std::uint32_t> words(128, 0);
  Bytes choices = randomBytes(Type::u8, words.size() * 8, 91, 0, 255);
  for (std::size_t i = 0; i < choices.size(); ++i)
    words[i / 8] |= (sparse.type == Type::tf32 ? kOne[choices[i] % 2]
                                               : kTwo[choices[i] % 6])
                    << (4 * (i % 8));
  return bytesOf(words);
}

static Probe sparseProbe(const Sparse &sparse, const std::string &name) {
  Probe probe{.group = "wgmma", .name = "sparse_" + name};
  std::string immediates = sparse.type == Type::i8        ? ""
                           : size_bytes(sparse.type) == 2 ? ", 1, 1, 0, 0"
                                                          : ", 1, 1";
  probe.ptx = moduleText(
      3, 0,
      R"(
.reg .b32 %i, %s, %m, %d<4>;
.reg .b64 %g, %x, %y, %v;
mad.wide.u32 %g, %t, 16, %in1;
ld.global.v2.u64 {%x, %y}, [%g];
mad.lo.u32 %s, %t, 16, %smem;
st.shared.v2.u64 [%s], {%x, %y};
mad.wide.u32 %g, %t, 4, %in2;
ld.global.u32 %m, [%g];
mad.lo.u32 %s, %t, 4, %smem;
st.shared.u32 [%s+2048], %m;
mad.wide.u32 %g, %t, 4, %in3;
ld.global.u32 %m, [%g];
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %s, %smem, 4;
cvt.u64.u32 %x, %s;
or.b64 %x, %x, 0x1000080000;
add.u64 %y, %x, 128;
mov.u32 %d0, 0;
mov.u32 %d1, 0;
mov.u32 %d2, 0;
mov.u32 %d3, 0;
wgmma.fence.sync.aligned;
)" +
          fmt::format("wgmma.mma_async.sp.sync.aligned.m64n8k{}.{} {{%d0, %d1, "
                      "%d2, %d3}}, %x, %y, %m, {}, 1{};\n",
                      sparse.k, sparse.types, sparse.selector, immediates) +
          R"(
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %g, %t, 16, %out;
st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};
)");
  probe.threads = 128;
  probe.smemBytes = 2560;
  auto size = static_cast<std::size_t>(size_bytes(sparse.type));
  probe.inputs = {smallNumbers(sparse.type, 2048 / size, 92),
                  smallNumbers(sparse.type, 512 / size, 93), metadata(sparse)};
  probe.outputBytes = 2048;
  probe.rowBytes = 16;
  return probe;
}

void addSparseProbes(std::vector<Probe> &list) {
  list.push_back(sparseProbe({"f32.f16.f16", Type::f16, 32, 0}, "f16"));
  list.push_back(sparseProbe({"f32.f16.f16", Type::f16, 32, 1}, "f16_upper"));
  list.push_back(sparseProbe({"f32.bf16.bf16", Type::bf16, 32, 0}, "bf16"));
  list.push_back(sparseProbe({"f32.tf32.tf32", Type::tf32, 16, 0}, "tf32"));
  list.push_back(
      sparseProbe({"f32.tf32.tf32", Type::tf32, 16, 1}, "tf32_upper"));
  list.push_back(sparseProbe({"s32.s8.s8", Type::i8, 64, 0}, "s8"));
  list.push_back(sparseProbe({"f32.e4m3.e4m3", Type::e4m3, 64, 0}, "e4m3"));
}

} // namespace kiln::golden
