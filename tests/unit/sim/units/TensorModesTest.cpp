// TensorModes: copies of tensors that are no boxes (four rows, pixels), maps
// that pad or permute in other chunks, and bulk copies of some bytes of each 16.
#include "sim/machine/memory/TensorMapImage.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// Thread 0 runs `alone` with an mbarrier for one arrival of `bytes`; then the
/// first 4096 bytes of the tile go to the output.
static std::string loading(int bytes, const std::string &alone) {
  return fmt::format(R"(
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra started;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {};
  {}
started:
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;
  @!%p2 bra wait;
  shl.b32 %r0, %t, 2;
  cvt.u64.u32 %x0, %r0; add.u64 %x0, %out, %x0; add.u32 %r0, %r0, %s;
  mov.u32 %r1, 0;
next:
  ld.shared.b32 %r2, [%r0];
  st.global.b32 [%x0], %r2;
  add.u32 %r0, %r0, 128; add.u64 %x0, %x0, 128; add.u32 %r1, %r1, 128;
  setp.lt.u32 %p3, %r1, {};
  @%p3 bra next;
)",
                     bytes, alone, (bytes + 127) / 128 * 128);
}

static void setMap(RunKernel &run, const TensorMap &map) {
  check(map, "the map");
  auto image = encode(map);
  std::memcpy(run.config.params.data() + 64, image.data(), image.size());
}

/// `count` rows of 32 words in the input.
static TensorMap rowsOf(const RunKernel &run, std::uint64_t count) {
  TensorMap map;
  map.type = Type::u32;
  map.address = run.inputAddress();
  map.dims = {32, count};
  map.strides_bytes = {128};
  map.box = {8, 1};
  map.element_strides = {1, 1};
  return map;
}

TEST(TensorModes, GathersFourRows) {
  for (Interleaving order : kOrders) {
    RunKernel run(loading(128, "mov.u32 %r4, 8; mov.u32 %r5, 11; mov.u32 %r6, "
                               "2; mov.u32 %r7, 99; mov.u32 %r8, 0;"
                               "cp.async.bulk.tensor.2d.shared::cta.global."
                               "tile::gather4.mbarrier::complete_tx::bytes "
                               "[%s], [%map, {%r4, %r5, %r6, %r7, %r8}], "
                               "[%bar];"),
                  "sm_100a");
    run.input(counting<std::uint32_t>(16 * 32));
    setMap(run, rowsOf(run, 16));
    run.runCleanly(order);
    const int rows[] = {11, 2, -1, 0}; // the third is outside
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i),
                rows[i / 8] < 0 ? 0 : rows[i / 8] * 32 + 8 + i % 8);
  }
}

TEST(TensorModes, ScattersFourRows) {
  for (Interleaving order : kOrders) {
    RunKernel run("shl.b32 %r1, %t, 2; add.u32 %r2, %s, %r1;"
                  "st.shared.b32 [%r2], %t; setp.ne.u32 %p1, %t, 0;"
                  "fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra done;"
                  "mov.u32 %r4, 16; mov.u32 %r5, 3; mov.u32 %r6, 0; mov.u32 "
                  "%r7, 99; mov.u32 %r8, 1;"
                  "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4."
                  "bulk_group [%map, {%r4, %r5, %r6, %r7, %r8}], [%s];"
                  "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                  "done:",
                  "sm_100a");
    TensorMap map = rowsOf(run, 4);
    map.address = run.outputAddress();
    setMap(run, map);
    run.output(std::vector<std::uint32_t>(160, 1000)).runCleanly(order);
    const int source[] = {1, 3, -1, 0}; // of rows 0 to 3
    for (int row = 0; row < 5; ++row)
      for (int i = 0; i < 32; ++i) {
        bool isThere = row < 4 && source[row] >= 0 && i >= 16 && i < 24;
        EXPECT_EQ(run.result<std::uint32_t>(row * 32 + i),
                  isThere ? source[row] * 8 + i - 16 : 1000u)
            << row << " " << i;
      }
  }
}

TEST(TensorModes, CopiesPixels) {
  // 4 channels of an image of 5 x 4 (W x H), two images; a filter of 3 x 3 with
  // one pixel of padding: the box is one pixel short of the image at its end.
  constexpr int kW = 5, kH = 4, kChannels = 4, kPixels = 40;
  for (auto [offsetW, offsetH, stride] :
       {std::tuple(0, 0, 1), {2, 1, 1}, {1, 2, 2}}) {
    RunKernel run(
        loading(16 * kPixels,
                fmt::format(".reg .b16 %h<2>; mov.u16 %h0, {}; mov.u16 %h1, {};"
                            "mov.u32 %r4, 0; mov.u32 %r5, -1; mov.u32 %r6, -1;"
                            "cp.async.bulk.tensor.4d.shared::cluster.global."
                            "im2col.mbarrier::complete_tx::bytes [%s], [%map, "
                            "{{%r4, %r5, %r6, %r4}}], [%bar], {{%h0, %h1}};",
                            offsetW, offsetH)));
    run.input(counting<std::uint32_t>(2 * kW * kH * kChannels));
    TensorMap map;
    map.type = Type::u32;
    map.address = run.inputAddress();
    map.dims = {kChannels, kW, kH, 2};
    map.strides_bytes = {16, 16 * kW, 16 * kW * kH};
    map.box = {kChannels, 1, 1, 1};
    map.element_strides = {1, std::uint32_t(stride), std::uint32_t(stride), 1};
    map.im2col = Im2col{{-1, -1}, {-1, -1}, kChannels, kPixels};
    setMap(run, map);
    run.runCleanly(Interleaving::lazy);
    int at = 0;
    for (int image = 0; at < kPixels; ++image)
      for (int h = -1; h <= kH - 2 && at < kPixels; h += stride)
        for (int w = -1; w <= kW - 2 && at < kPixels; w += stride, ++at)
          for (int c = 0; c < kChannels; ++c) {
            int x = w + offsetW, y = h + offsetH;
            bool isInside = x >= 0 && x < kW && y >= 0 && y < kH && image < 2;
            ASSERT_EQ(run.result<std::uint32_t>(at * kChannels + c),
                      isInside ? ((image * kH + y) * kW + x) * kChannels + c
                               : 0)
                << "pixel " << at << " channel " << c;
          }
  }
}

TEST(TensorModes, PixelsNeedAMapOfTheirOwn) {
  auto finding = [](bool isPixels) {
    RunKernel run(loading(
        64, isPixels
                ? ".reg .b16 %h; mov.u16 %h, 0; mov.u32 %r4, 0;"
                  "cp.async.bulk.tensor.3d.shared::cluster.global.im2col."
                  "mbarrier::complete_tx::bytes [%s], [%map, {%r4, %r4, %r4}], "
                  "[%bar], {%h};"
                : "mov.u32 %r4, 0; cp.async.bulk.tensor.3d.shared::cluster."
                  "global.tile.mbarrier::complete_tx::bytes [%s], [%map, {%r4, "
                  "%r4, %r4}], [%bar];"));
    TensorMap map;
    map.type = Type::u32;
    map.address = run.inputAddress();
    map.dims = {4, 4, 4};
    map.strides_bytes = {16, 64};
    map.box = {4, 1, 1};
    map.element_strides = {1, 1, 1};
    if (!isPixels)
      map.im2col = Im2col{{0}, {0}, 4, 4};
    setMap(run, map);
    return run.finding();
  };
  expectContains(finding(true), "tensor-map: the copy is of pixels (.im2col), "
                                "and its tensor map of boxes");
  expectContains(finding(false), "tensor-map: the tensor map is of pixels");
}

/// Where a swizzle of 128 bytes puts a byte, by its chunks.
static std::uint32_t permuted(SwizzleAtom atom, std::uint32_t at) {
  std::uint32_t row = at >> 7;
  switch (atom) {
  case SwizzleAtom::b16:
    return at ^ (row & 7) << 4;
  case SwizzleAtom::b32:
    return at ^ (row & 3) << 5;
  case SwizzleAtom::b32_flip8:
    return (at ^ (row & 3) << 5) ^ (row & 1) << 3;
  case SwizzleAtom::b64:
    return at ^ (row & 1) << 6;
  }
  return at;
}

TEST(TensorModes, SwizzlesInChunks) {
  for (SwizzleAtom atom : {SwizzleAtom::b16, SwizzleAtom::b32,
                           SwizzleAtom::b32_flip8, SwizzleAtom::b64}) {
    RunKernel run(loading(1024, "mov.u32 %r4, 0; cp.async.bulk.tensor.2d."
                                "shared::cta.global.tile."
                                "mbarrier::complete_tx::bytes [%s], [%map, "
                                "{%r4, %r4}], [%bar];"),
                  "sm_100a");
    run.input(counting<std::uint32_t>(256));
    TensorMap map = rowsOf(run, 8);
    map.box = {32, 8};
    map.swizzle = Swizzle::b128;
    map.atom = atom;
    setMap(run, map);
    run.runCleanly(Interleaving::eager);
    for (std::uint32_t i = 0; i < 256; ++i)
      ASSERT_EQ(run.result<std::uint32_t>(permuted(atom, 4 * i) / 4), i)
          << int(atom) << " word " << i;
  }
}

TEST(TensorModes, PadsElementsOfSixAndFourBits) {
  for (Type type : {Type::e2m1, Type::e2m3}) {
    std::uint32_t group = type == Type::e2m1 ? 8 : 12; // bytes of 16 elements
    RunKernel run(loading(256, "mov.u32 %r4, 128; mov.u32 %r5, 1;"
                               "cp.async.bulk.tensor.2d.shared::cta.global."
                               "tile.mbarrier::complete_tx::bytes [%s], "
                               "[%map, {%r4, %r5}], [%bar];"),
                  "sm_120a");
    run.input(counting<std::uint8_t>(2048));
    TensorMap map = rowsOf(run, 3);
    map.type = type;
    map.is_padded = true;
    map.dims = {256, 3};
    map.strides_bytes = {224};
    map.box = {128, 2};
    setMap(run, map);
    run.runCleanly(Interleaving::random);
    for (std::uint32_t row = 0; row < 2; ++row)
      for (std::uint32_t i = 0; i < 128; ++i) {
        bool isThere = i % 16 < group;
        ASSERT_EQ(run.result<std::uint8_t>(row * 128 + i),
                  isThere ? std::uint8_t((1 + row) * 224 + 8 * group +
                                         i / 16 * group + i % 16)
                          : 0)
            << int(group) << " " << row << " " << i;
      }
  }
}

TEST(TensorModes, MapsAreEncodedWhole) {
  RunKernel run("");
  TensorMap map = rowsOf(run, 4);
  map.dims = {64, 20, 30, 8, 2};
  map.strides_bytes = {128, 2560, 76800, 614400};
  map.box = {64, 1, 1, 1, 1};
  map.element_strides = {1, 2, 3, 8, 1};
  map.swizzle = Swizzle::b128;
  map.atom = SwizzleAtom::b64;
  map.type = Type::f16;
  map.im2col = Im2col{{-16, 15, 3}, {-1, 0, -9}, 64, 1000};
  std::optional<TensorMap> read = decode(encode(map).data());
  ASSERT_TRUE(read && read->im2col);
  EXPECT_EQ(*read->im2col, *map.im2col);
  EXPECT_EQ(read->atom, map.atom);
  EXPECT_EQ(read->element_strides, map.element_strides);
  EXPECT_EQ(read->box, map.box);
}

TEST(TensorModes, BulkCopiesSomeBytes) {
  auto text = [](const char *mask) {
    return fmt::format("shl.b32 %r1, %t, 2; add.u32 %r2, %s, %r1;"
                       "mov.u32 %r3, 0x01010101; mul.lo.u32 %r3, %r3, %t;"
                       "st.shared.b32 [%r2], %r3; setp.ne.u32 %p1, %t, 0;"
                       "fence.proxy.async.shared::cta; bar.sync 0;"
                       "@%p1 bra done; .reg .b16 %h; mov.u16 %h, {};"
                       "cp.async.bulk.global.shared::cta.bulk_group.cp_mask "
                       "[%out], [%s], 64, %h;"
                       "cp.async.bulk.commit_group;"
                       "cp.async.bulk.wait_group 0; done:",
                       mask);
  };
  RunKernel run(text("0x80f2"), "sm_100a");
  run.output(std::vector<std::uint8_t>(80, 200)).runCleanly(Interleaving::lazy);
  for (int i = 0; i < 80; ++i)
    EXPECT_EQ(run.result<std::uint8_t>(i),
              i < 64 && 0x80f2 >> i % 16 & 1 ? i / 4 : 200)
        << i;
  // Another thread may write what the mask leaves out, and nothing else.
  for (auto [mask, found] : {std::pair("0x0fff", ""), {"0xf0ff", "proxy-fence"}}) {
    RunKernel other(".reg .b32 %z; mov.u32 %z, 9; setp.eq.u32 %p4, %t, 32;"
                    "@%p4 st.global.b32 [%out+12], %z;" +
                        text(mask),
                    "sm_100a");
    other.config.block = {33, 1, 1};
    other.config.dynamicSmemBytes = 0;
    other.output(std::vector<std::uint8_t>(80, 200));
    std::string finding = other.finding();
    EXPECT_EQ(finding.substr(0, std::strlen(found)), found) << finding;
    EXPECT_EQ(finding.empty(), *found == 0) << finding;
  }
}

/// Rows that nobody gathers are not touched; one that is, is.
TEST(TensorModes, RacesOfRowsAreFound) {
  for (auto [offset, found] : {std::pair(2 * 128, "proxy-fence"), {3 * 128, ""}}) {
    RunKernel run("shl.b32 %r1, %t, 2; add.u32 %r2, %s, %r1;"
                  "setp.eq.u32 %p4, %t, 32;" +
                      fmt::format("@%p4 st.global.b32 [%out+{}], %t;", offset) +
                      "st.shared.b32 [%r2], %t; setp.ne.u32 %p1, %t, 0;"
                      "fence.proxy.async.shared::cta; bar.sync 0;"
                      "@%p1 bra done; mov.u32 %r4, 0; mov.u32 %r5, 2; mov.u32 "
                      "%r6, 0; mov.u32 %r7, 1; mov.u32 %r8, 4;"
                      "cp.async.bulk.tensor.2d.global.shared::cta."
                      "tile::scatter4.bulk_group [%map, {%r4, %r5, %r6, %r7, "
                      "%r8}], [%s]; cp.async.bulk.commit_group;"
                      "cp.async.bulk.wait_group 0; done:",
                  "sm_100a");
    run.config.block = {33, 1, 1};
    TensorMap map = rowsOf(run, 8);
    map.address = run.outputAddress();
    setMap(run, map);
    run.output(std::vector<std::uint32_t>(512, 0));
    std::string finding = run.finding();
    EXPECT_EQ(finding.substr(0, std::strlen(found)), found) << finding;
  }
}

} // namespace kiln::sim
