// TmaProbes: tensor copies in every swizzle and rank, inside and outside their
// tensor, and what the copy engine refuses.
#include "golden/Probes.h"

namespace kiln::golden {

/// The tile lies here, behind the mbarrier; so many bytes of it are looked at.
static constexpr std::uint32_t kTile = 1024, kTileBytes = 8192;

namespace {
struct Copy {
  std::string name;
  Type type = Type::u32;
  std::vector<std::uint64_t> dims;
  std::vector<std::uint32_t> box;
  std::vector<int> start;
  Swizzle swizzle = Swizzle::none;
  OobFill oob = OobFill::zeros;
  std::vector<std::uint32_t> elementStrides = {};
  std::uint32_t tileOffset = 0; ///< from kTile
  std::string trap = {};
  Bytes input = {}; ///< of a load; empty: random bytes
};
} // namespace

static TensorMap mapOf(const Copy &copy) {
  TensorMap map;
  map.type = copy.type;
  map.dims = copy.dims;
  std::uint64_t stride = (copy.dims[0] * size_bytes(copy.type) + 15) / 16 * 16;
  for (std::size_t i = 1; i < copy.dims.size(); ++i) {
    map.strides_bytes.push_back(stride);
    stride *= copy.dims[i];
  }
  map.box = copy.box;
  map.element_strides = copy.elementStrides.empty()
                            ? std::vector<std::uint32_t>(copy.box.size(), 1)
                            : copy.elementStrides;
  map.swizzle = copy.swizzle;
  map.oob = copy.oob;
  return map;
}

static std::size_t tensorBytes(const TensorMap &map) {
  return map.strides_bytes.empty()
             ? (map.dims[0] * size_bytes(map.type) + 15) / 16 * 16
             : map.strides_bytes.back() * map.dims.back();
}

/// Elements with a stride count once.
static std::uint32_t boxBytes(const TensorMap &map) {
  std::uint32_t bytes = static_cast<std::uint32_t>(size_bytes(map.type));
  for (std::size_t i = 0; i < map.box.size(); ++i) {
    std::uint32_t step = i ? map.element_strides[i] : 1;
    bytes *= (map.box[i] + step - 1) / step;
  }
  return bytes;
}

static std::string coordinateList(const std::vector<int> &start) {
  std::string list;
  for (int value : start)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  return "{" + list + "}";
}

/// Fill the tile with the thread's number and the word's, so that bytes nobody
/// copied are known.
static const char *kFillTile = R"(
.reg .b32 %i, %a, %b, %n, %phase;
.reg .b64 %g, %state;
.reg .pred %p, %q;
mov.u32 %i, %t;
fill:
mad.lo.u32 %a, %i, 4, %smem;
mad.lo.u32 %b, %i, 0x01000193, 0x811c9dc5;
st.shared.u32 [%a+1024], %b;
add.u32 %i, %i, 128;
setp.lt.u32 %p, %i, 2048;
@%p bra fill;
fence.proxy.async.shared::cta;
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared::cta.b64 [%smem], 1;
bar.sync 0;
)";

/// The tile to the output, word by word.
static const char *kTileOut = R"(
mov.u32 %i, %t;
copy:
mad.lo.u32 %a, %i, 4, %smem;
ld.shared.u32 %b, [%a+1024];
mad.wide.u32 %g, %i, 4, %out;
st.global.u32 [%g], %b;
add.u32 %i, %i, 128;
setp.lt.u32 %p, %i, 2048;
@%p bra copy;
)";

static std::string loadInstruction(const Copy &copy) {
  return fmt::format("@%q cp.async.bulk.tensor.{}d.shared::cluster.global."
                     "mbarrier::complete_tx::bytes [%a], [%map0, {}], "
                     "[%smem];\n",
                     copy.dims.size(), coordinateList(copy.start));
}

/// The tile after a load whose phase asks for the whole box, and no byte more.
static Probe loadProbe(const Copy &copy) {
  Probe probe{.group = "tma", .name = "load_" + copy.name};
  TensorMap map = mapOf(copy);
  probe.ptx = moduleText(
      1, 1,
      kFillTile +
          fmt::format("add.u32 %a, %smem, {};\n"
                      "@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, "
                      "[%smem], {};\n",
                      kTile + copy.tileOffset, boxBytes(map)) +
          loadInstruction(copy) +
          "wait:\n"
          "mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem], 0;\n"
          "@!%p bra wait;\n" +
          kTileOut);
  probe.threads = 128;
  probe.smemBytes = kTile + kTileBytes;
  probe.inputs = {copy.input.empty()
                      ? randomBytes(Type::u8, tensorBytes(map), 11, 0, 255)
                      : copy.input};
  probe.maps = {{map, 1}};
  probe.outputBytes = kTileBytes;
  probe.rowBytes = 1024;
  probe.trap = copy.trap;
  return probe;
}

/// Whether the phase is over after a copy that was to bring 16 bytes more, and
/// after those 16 bytes too.
static Probe bytesProbe(const Copy &copy) {
  Probe probe{.group = "tma", .name = "bytes_" + copy.name};
  TensorMap map = mapOf(copy);
  probe.ptx = moduleText(
      1, 1,
      kFillTile +
          fmt::format("add.u32 %a, %smem, {};\n"
                      "@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, "
                      "[%smem], {};\n",
                      kTile, boxBytes(map) + 16) +
          loadInstruction(copy) + R"(
mov.u32 %i, 0;
wait:
nanosleep.u32 100;
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
@%p bra over;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 2000;
@%p bra wait;
over:
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
selp.u32 %n, 1, 0, %p;
bar.sync 0;
@%q mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%smem], 16;
bar.sync 0;
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
selp.u32 %b, 2, 0, %p;
or.b32 %n, %n, %b;
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
)");
  probe.threads = 128;
  probe.smemBytes = kTile + kTileBytes;
  probe.inputs = {randomBytes(Type::u8, tensorBytes(map), 11, 0, 255)};
  probe.maps = {{map, 1}};
  probe.outputBytes = 512;
  return probe;
}

/// The tensor after a store or a reduction of the tile; it is the output.
static Probe storeProbe(const Copy &copy, const std::string &reduction = "") {
  Probe probe{.group = "tma",
              .name =
                  (reduction.empty() ? "store_" : "reduce_" + reduction + "_") +
                  copy.name};
  TensorMap map = mapOf(copy);
  std::string opcode =
      reduction.empty()
          ? fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta."
                        "bulk_group",
                        copy.dims.size())
          : fmt::format("cp.reduce.async.bulk.tensor.{}d.global.shared::cta."
                        "{}.tile.bulk_group",
                        copy.dims.size(), reduction);
  probe.ptx =
      moduleText(0, 1,
                 kFillTile + fmt::format("add.u32 %a, %smem, {};\n"
                                         "@%q {} [%map0, {}], [%a];\n"
                                         "cp.async.bulk.commit_group;\n"
                                         "cp.async.bulk.wait_group 0;\n",
                                         kTile + copy.tileOffset, opcode,
                                         coordinateList(copy.start)));
  probe.threads = 128;
  probe.smemBytes = kTile + kTileBytes;
  probe.maps = {{map, 0}};
  probe.outputBytes = tensorBytes(map);
  probe.rowBytes = map.strides_bytes.empty() ? 0 : map.strides_bytes[0];
  probe.trap = copy.trap;
  return probe;
}

/// Boxes of 32-bit elements in a tensor of each rank: inside, over the end,
/// before the beginning, and not in it at all.
static std::vector<Copy> boxesOfRank(int rank) {
  static const std::vector<std::uint64_t> kDims = {52, 7, 5, 3, 4};
  static const std::vector<std::uint32_t> kBox = {32, 4, 3, 2, 2};
  struct Start {
    const char *name;
    std::vector<int> at;
  };
  const Start starts[] = {
      {"inside", {4, 1, 1, 0, 1}},
      {"over_x", {40, 1, 1, 0, 1}},
      {"over_all", {40, 5, 4, 2, 3}},
      {"before_x", {-12, 1, 1, 0, 1}},
      {"before_all", {-8, -2, -1, -1, -1}},
      {"mixed", {-16, 5, -2, 2, -1}},
      {"outside_x", {60, 1, 1, 0, 1}},
      {"outside_all", {100, 90, 80, 70, 60}},
      {"far_before", {-1000, -900, -800, -700, -600}},
  };
  std::vector<Copy> copies;
  for (const Start &start : starts)
    copies.push_back({fmt::format("{}d_{}", rank, start.name),
                      Type::u32,
                      {kDims.begin(), kDims.begin() + rank},
                      {kBox.begin(), kBox.begin() + rank},
                      {start.at.begin(), start.at.begin() + rank}});
  return copies;
}

static bool isBefore(const Copy &copy) {
  for (int value : copy.start)
    if (value < 0)
      return true;
  return false;
}

/// A row of the box is as wide as the swizzle; twenty rows, so that the pattern
/// repeats.
static std::vector<Copy> swizzledBoxes() {
  std::vector<Copy> copies;
  for (Swizzle swizzle : {Swizzle::b32, Swizzle::b64, Swizzle::b128})
    for (Type type : {Type::u8, Type::f16, Type::f32}) {
      auto bytes = static_cast<std::uint32_t>(swizzle);
      std::uint32_t width = bytes / size_bytes(type);
      int unit = 16 / size_bytes(type);
      struct Variant {
        const char *name;
        std::uint32_t width;
        int x, y;
        std::uint32_t offset;
      };
      for (const Variant &v : {Variant{"inside", width, unit, 3, 0},
                               Variant{"narrow", width / 2, 0, 1, 0},
                               Variant{"over", width, 2 * unit, 20, 0},
                               Variant{"before", width, -unit, -5, 0},
                               Variant{"shifted", width, unit, 2, 128},
                               Variant{"shifted3", width, unit, 2, 384}})
        copies.push_back({fmt::format("b{}_{}_{}", bytes, name(type), v.name),
                          type,
                          {width + 2 * unit + 3, 31},
                          {v.width, 20},
                          {v.x, v.y},
                          swizzle,
                          OobFill::zeros,
                          {},
                          v.offset});
    }
  return copies;
}

static void addRefusals(std::vector<Probe> &list) {
  const Copy misaligned[] = {
      {"u32_x1", Type::u32, {64, 8}, {32, 4}, {1, 0}},
      {"u32_x2_b128", Type::u32, {64, 8}, {32, 4}, {2, 0}, Swizzle::b128},
      {"f16_x4", Type::f16, {64, 8}, {32, 4}, {4, 0}},
      {"u8_x8", Type::u8, {64, 8}, {32, 4}, {8, 0}},
      {"u32_xm3", Type::u32, {64, 8}, {32, 4}, {-3, 0}},
      {"f16_x4_1d", Type::f16, {64}, {32}, {4}},
  };
  for (Copy copy : misaligned) {
    copy.trap = "tma-coordinate";
    list.push_back(loadProbe(copy));
  }
  const Copy stores[] = {
      {"u32_x1", Type::u32, {64, 8}, {32, 4}, {1, 0}},
      {"before_x", Type::u32, {64, 8}, {32, 4}, {-4, 0}},
      {"before_y", Type::u32, {64, 8}, {32, 4}, {0, -1}},
  };
  for (Copy copy : stores) {
    copy.trap = "tma-coordinate";
    list.push_back(storeProbe(copy));
  }
}

/// Loads through a map of tf32, which rounds: numbers of every size, ties, and
/// what is none.
static void addRounded(std::vector<Probe> &list) {
  std::vector<std::uint32_t> numbers, others;
  for (std::uint8_t byte : randomBytes(Type::u8, 1024, 12, 0, 255)) {
    auto i = static_cast<std::uint32_t>(numbers.size());
    std::uint32_t low = i % 3 == 0 ? 0x1000 : i % 3 == 1 ? 0xfff : 0x1001;
    numbers.push_back((byte * 0x01010101u & 0xff7fe000u) | low);
  }
  for (std::uint32_t i = 0; i < 1024; ++i)
    others.push_back((i % 2 ? 0xff800000u : 0x7f800000u) |
                     (i < 16 ? 0 : i * 0x2003u % 0x800000u));
  list.push_back(loadProbe({.name = "tf32_numbers",
                            .type = Type::tf32,
                            .dims = {32, 32},
                            .box = {32, 32},
                            .start = {0, 0},
                            .input = bytesOf(numbers)}));
  list.push_back(loadProbe({.name = "tf32_infinities_and_nans",
                            .type = Type::tf32,
                            .dims = {32, 32},
                            .box = {32, 32},
                            .start = {0, 0},
                            .input = bytesOf(others)}));
}

void addTmaProbes(std::vector<Probe> &list) {
  addRounded(list);
  for (int rank = 1; rank <= 5; ++rank)
    for (const Copy &copy : boxesOfRank(rank)) {
      list.push_back(loadProbe(copy));
      if (!isBefore(copy))
        list.push_back(storeProbe(copy));
      if (rank == 2 || rank == 5)
        list.push_back(bytesProbe(copy));
    }
  for (const Copy &copy : swizzledBoxes()) {
    list.push_back(loadProbe(copy));
    if (!isBefore(copy))
      list.push_back(storeProbe(copy));
    if (copy.type == Type::f16)
      list.push_back(bytesProbe(copy));
  }
  for (Type type : {Type::f16, Type::bf16, Type::f32, Type::f64})
    list.push_back(loadProbe({fmt::format("nan_fill_{}", name(type)),
                              type,
                              {20, 6},
                              {16, 8},
                              {8, -1},
                              Swizzle::none,
                              OobFill::nan}));
  for (auto steps :
       {std::vector<std::uint32_t>{1, 2}, std::vector<std::uint32_t>{1, 3},
        std::vector<std::uint32_t>{2, 1}}) {
    Copy copy{fmt::format("every_{}_{}", steps[0], steps[1]),
              Type::u32,
              {64, 40},
              {32, 12},
              {4, 3},
              Swizzle::b128,
              OobFill::zeros,
              steps};
    list.push_back(loadProbe(copy));
    list.push_back(storeProbe(copy));
    copy.name += "_before";
    copy.start = {-4, -5};
    list.push_back(loadProbe(copy));
    copy.name += "_over";
    copy.start = {48, 33};
    list.push_back(loadProbe(copy));
  }
  Copy copy{"u32", Type::u32, {60, 6}, {32, 4}, {40, 3}};
  for (const char *kind :
       {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    list.push_back(storeProbe(copy, kind));
  copy.name = "i32";
  copy.type = Type::i32;
  for (const char *kind : {"min", "max"})
    list.push_back(storeProbe(copy, kind));
  addRefusals(list);
}

} // namespace kiln::golden
