// BulkCopy: bulk copies and reductions, plain and by tensor map, and st.async
// and red.async.
#include "sim/machine/memory/TensorMapImage.h"
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

namespace kiln::sim {

/// Thread 0 runs `alone` with an mbarrier for one arrival of `bytes`; all wait.
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
)",
                     bytes, alone);
}

/// Word t of the tile, and of its second 128 bytes, to the output.
static const char *const kStoreWords = R"(
  shl.b32 %r1, %t, 2;
  add.u32 %r2, %s, %r1;
  cvt.u64.u32 %x1, %r1;
  add.u64 %x1, %out, %x1;
  ld.shared.b32 %r3, [%r2];
  st.global.b32 [%x1], %r3;
  ld.shared.b32 %r3, [%r2+128];
  st.global.b32 [%x1+128], %r3;
)";
/// Word t of the input and of its second 128 bytes to the tile.
static const char *const kFillTile = R"(
  shl.b32 %r1, %t, 2;
  add.u32 %r2, %s, %r1;
  cvt.u64.u32 %x1, %r1;
  add.u64 %x1, %in, %x1;
  ld.global.b32 %r3, [%x1];
  st.shared.b32 [%r2], %r3;
  ld.global.b32 %r3, [%x1+128];
  st.shared.b32 [%r2+128], %r3;
  setp.ne.u32 %p1, %t, 0;
  bar.sync 0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 bra done;
)";
/// The same, and then what thread 0 does alone.
static std::string storing(const std::string &alone) {
  return kFillTile + alone + "done:";
}

TEST(BulkCopy, LoadsFromGlobalMemory) {
  for (Interleaving order : kOrders) {
    RunKernel run(
        loading(256, "cp.async.bulk.prefetch.L2.global [%in], 256;"
                     "cp.async.bulk.shared::cluster.global."
                     "mbarrier::complete_tx::bytes [%s], [%in], 256, [%bar];") +
        kStoreWords);
    run.input(counting<std::uint32_t>(64)).runCleanly(order);
    for (std::uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), i);
  }
}

TEST(BulkCopy, CopiesWithinSharedMemory) {
  for (Interleaving order : kOrders) {
    RunKernel run(loading(144, "st.shared.v2.b64 [%s], {5, 6};"
                               "fence.proxy.async.shared::cta;"
                               "cp.async.bulk.shared::cluster.shared::cta."
                               "mbarrier::complete_tx::bytes [%s+128], [%s], "
                               "16, [%bar];"
                               "cp.async.bulk.shared::cta.global."
                               "mbarrier::complete_tx::bytes [%s+256], [%in], "
                               "128, [%bar];") +
                  "ld.shared.v2.b64 {%x1, %x2}, [%s+128];"
                  "ld.shared.b64 %x3, [%s+264];"
                  "st.global.b64 [%out], %x1; st.global.b64 [%out+8], %x2;"
                  "st.global.b64 [%out+16], %x3;");
    run.input(counting<std::uint64_t>(16)).runCleanly(order);
    EXPECT_EQ(run.result<std::uint64_t>(0), 5u);
    EXPECT_EQ(run.result<std::uint64_t>(1), 6u);
    EXPECT_EQ(run.result<std::uint64_t>(2), 1u);
  }
}

TEST(BulkCopy, MulticastGoesToEveryCtaOfTheMask) {
  for (Interleaving order : kOrders) {
    RunKernel run(".reg .b16 %h;"
                  "setp.ne.u32 %p1, %t, 0;"
                  "@%p1 bra ready;"
                  "mbarrier.init.shared.b64 [%bar], 1;"
                  "fence.mbarrier_init.release.cluster;"
                  "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;"
                  "ready:"
                  "barrier.cluster.arrive; barrier.cluster.wait;"
                  "setp.ne.u32 %p2, %rank, 0;"
                  "or.pred %p1, %p1, %p2;"
                  "@%p1 bra wait;"
                  "mov.u32 %r3, 3; cvt.u16.u32 %h, %r3;"
                  "cp.async.bulk.shared::cluster.global."
                  "mbarrier::complete_tx::bytes.multicast::cluster [%s], "
                  "[%in], 64, [%bar], %h;"
                  "wait:"
                  "mbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0;"
                  "@!%p3 bra wait;"
                  "ld.shared.b32 %r1, [%s+60];"
                  "shl.b32 %r2, %rank, 2; cvt.u64.u32 %x1, %r2;"
                  "add.u64 %x1, %out, %x1;"
                  "st.global.b32 [%x1], %r1;");
    run.config.grid = run.config.cluster = {2, 1, 1};
    run.input(counting<std::uint32_t>(16)).runCleanly(order);
    EXPECT_EQ(run.result<std::uint32_t>(0), 15u);
    EXPECT_EQ(run.result<std::uint32_t>(1), 15u);
  }
}

TEST(BulkCopy, StoresToGlobalMemoryInGroups) {
  for (Interleaving order : kOrders) {
    RunKernel run(storing("cp.async.bulk.global.shared::cta.bulk_group [%out], "
                          "[%s], 256;"
                          "cp.async.bulk.commit_group;"
                          "cp.async.bulk.wait_group 0;"
                          "ld.global.b32 %r4, [%out+252];"
                          "st.global.b32 [%out+256], %r4;"));
    run.input(counting<std::uint32_t>(64)).runCleanly(order);
    for (std::uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), i);
    EXPECT_EQ(run.result<std::uint32_t>(64), 63u) << "done at the wait";
  }
}

TEST(BulkCopy, WaitReadFreesTheSourceAlone) {
  // After the wait the source may change; the destination is not there yet.
  RunKernel run(storing("cp.async.bulk.global.shared::cta.bulk_group [%out], "
                        "[%s], 256;"
                        "cp.async.bulk.commit_group;"
                        "cp.async.bulk.wait_group.read 0;"
                        "st.shared.b32 [%s], 99;"
                        "ld.global.b32 %r4, [%out];"
                        "st.global.b32 [%out+256], %r4;"));
  run.input(counting<std::uint32_t>(64));
  run.output(std::vector<std::uint32_t>(64, 1234));
  run.config.interleaving = Interleaving::lazy;
  expectContains(run.finding(), "copy-not-awaited: this reads global address");
  EXPECT_EQ(run.result<std::uint32_t>(0), 0u) << "not what came later";
  EXPECT_EQ(run.result<std::uint32_t>(64), 1234u) << "not written at the wait";
}

/// `operation` on `old` and the tile, into global memory, as T.
template <typename T>
static T reduced(const std::string &operation, T old, T value) {
  RunKernel run(storing(fmt::format(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%out], [%s], 16;"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
      operation)));
  run.input(std::vector<T>(256 / sizeof(T), value));
  run.output(std::vector<T>(256 / sizeof(T), old)).runCleanly(Interleaving::lazy);
  EXPECT_EQ(run.template result<T>(16 / sizeof(T)), old) << "past the end";
  EXPECT_EQ(run.template result<T>(0),
            run.template result<T>(16 / sizeof(T) - 1));
  return run.template result<T>(0);
}

TEST(BulkCopy, ReducesIntegers) {
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  EXPECT_EQ(reduced<U32>("add.u32", 0xffffffff, 3), 2u);
  EXPECT_EQ(reduced<U64>("add.u64", 0xffffffff, 1), 0x100000000u);
  EXPECT_EQ(reduced<std::int32_t>("min.s32", -5, 3), -5);
  EXPECT_EQ(reduced<U32>("min.u32", U32(-5), 3), 3u);
  EXPECT_EQ(reduced<std::int64_t>("max.s64", -5, 3), 3);
  EXPECT_EQ(reduced<U64>("max.u64", U64(-5), 3), U64(-5));
  EXPECT_EQ(reduced<U32>("inc.u32", 6, 7), 7u);
  EXPECT_EQ(reduced<U32>("inc.u32", 7, 7), 0u);
  EXPECT_EQ(reduced<U32>("dec.u32", 0, 7), 7u);
  EXPECT_EQ(reduced<U32>("dec.u32", 5, 7), 4u);
  EXPECT_EQ(reduced<U32>("and.b32", 12, 10), 8u);
  EXPECT_EQ(reduced<U32>("or.b32", 12, 10), 14u);
  EXPECT_EQ(reduced<U64>("xor.b64", 12, 10), 6u);
}

TEST(BulkCopy, ReducesFloats) {
  using U16 = std::uint16_t;
  EXPECT_EQ(reduced<float>("add.f32", 1.5f, 0.25f), 1.75f);
  EXPECT_EQ(reduced<double>("add.f64", 1e-9, 1.0), 1.0 + 1e-9);
  EXPECT_EQ(reduced<U16>("add.noftz.f16", floatToHalf(1.5f), floatToHalf(2)),
            floatToHalf(3.5f));
  EXPECT_EQ(reduced<U16>("max.f16", floatToHalf(-1), floatToHalf(-2)),
            floatToHalf(-1));
  EXPECT_EQ(reduced<U16>("min.bf16", floatToBfloat(-1), floatToBfloat(-2)),
            floatToBfloat(-2));
  EXPECT_EQ(
      reduced<U16>("add.noftz.bf16", floatToBfloat(256), floatToBfloat(1)),
      floatToBfloat(256))
      << "rounded to even";
}

TEST(BulkCopy, ReducesIntoSharedMemory) {
  for (Interleaving order : kOrders) {
    RunKernel run(loading(16, "st.shared.v2.b64 [%s], {5, 6};"
                              "st.shared.v2.b64 [%s+16], {50, 60};"
                              "fence.proxy.async.shared::cta;"
                              "cp.reduce.async.bulk.shared::cluster."
                              "shared::cta.mbarrier::complete_tx::bytes.add."
                              "u64 [%s], [%s+16], 16, [%bar];") +
                  "ld.shared.v2.b64 {%x1, %x2}, [%s];"
                  "st.global.b64 [%out], %x1; st.global.b64 [%out+8], %x2;");
    run.runCleanly(order);
    EXPECT_EQ(run.result<std::uint64_t>(0), 55u);
    EXPECT_EQ(run.result<std::uint64_t>(1), 66u);
  }
}

/// A map of 4 rows of 10 words in the output, in boxes of 2 rows of 8.
static TensorMap mapOf(const RunKernel &run, Type type) {
  TensorMap map;
  map.type = type;
  map.address = run.outputAddress();
  map.dims = {10, 4};
  map.strides_bytes = {48};
  map.box = {8, 2};
  map.element_strides = {1, 1};
  return map;
}

static void setMap(RunKernel &run, const TensorMap &map) {
  auto image = encode(map);
  std::memcpy(run.config.params.data() + 64, image.data(), image.size());
}

TEST(BulkCopy, ReducesBoxesOfATensor) {
  for (Interleaving order : kOrders) {
    RunKernel run(storing("mov.u32 %r4, 4; mov.u32 %r5, 3;"
                          "cp.reduce.async.bulk.tensor.2d.global.shared::cta."
                          "add.tile.bulk_group [%map, {%r4, %r5}], [%s];"
                          "cp.async.bulk.commit_group;"
                          "cp.async.bulk.wait_group 0;"));
    setMap(run, mapOf(run, Type::f32));
    run.input(counting<float>(64));
    run.output(std::vector<float>(64, 100)).runCleanly(order);
    for (int row = 0; row < 5; ++row)
      for (int column = 0; column < 12; ++column) {
        // The box starts at (4, 3): one row and six columns of it are inside.
        bool isInside = row == 3 && column >= 4 && column < 10;
        EXPECT_EQ(run.result<float>(row * 12 + column),
                  isInside ? 100.0f + float(column - 4) : 100.0f)
            << row << " " << column;
      }
  }
}

TEST(BulkCopy, BoxesGoThereAndBack) {
  // Rows 0 and 1 of a tensor to shared memory, swizzled, and on to rows 2
  // and 3.
  for (Interleaving order : kOrders) {
    RunKernel run(
        loading(64, "mov.u32 %r4, 0;"
                    "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                    "mbarrier::complete_tx::bytes [%s], [%map, {%r4, %r4}], "
                    "[%bar];") +
        "@%p1 bra done;"
        "mov.u32 %r4, 0; mov.u32 %r5, 2;"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
        "[%map, {%r4, %r5}], [%s];"
        "cp.async.bulk.commit_group;"
        "cp.async.bulk.wait_group.read 0;"
        "st.shared.v2.b64 [%s], {7, 7};"
        "done:");
    TensorMap map = mapOf(run, Type::u32);
    map.swizzle = Swizzle::b32;
    setMap(run, map);
    run.output(counting<std::uint32_t>(64)).runCleanly(order);
    for (std::uint32_t row = 0; row < 5; ++row)
      for (std::uint32_t column = 0; column < 12; ++column) {
        bool isCopied = (row == 2 || row == 3) && column < 8;
        EXPECT_EQ(run.result<std::uint32_t>(row * 12 + column),
                  (isCopied ? row - 2 : row) * 12 + column);
      }
  }
}

TEST(BulkCopy, MapsOfFourBitsCountElements) {
  // From element 32 on, 32 elements of two rows: 16 bytes of each. Rows have 96
  // elements, and the second box ends outside.
  for (int start : {32, 64}) {
    RunKernel run(
        loading(32, fmt::format(
                        "mov.u32 %r4, {}; mov.u32 %r5, 1;"
                        "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                        "mbarrier::complete_tx::bytes [%s], [%map, {{%r4, "
                        "%r5}}], [%bar];",
                        start)) +
        "@%p1 bra done;"
        "ld.shared.v2.b64 {%x1, %x2}, [%s];"
        "st.global.v2.b64 [%out], {%x1, %x2};"
        "ld.shared.v2.b64 {%x1, %x2}, [%s+16];"
        "st.global.v2.b64 [%out+16], {%x1, %x2};"
        "done:");
    TensorMap map = mapOf(run, Type::e2m1);
    map.address = run.inputAddress();
    map.dims = {90, 4};
    map.box = {32, 2};
    setMap(run, map);
    run.input(counting<std::uint8_t>(192)).runCleanly(Interleaving::lazy);
    for (int row = 0; row < 2; ++row)
      for (int byte = 0; byte < 16; ++byte) {
        int column = start / 2 + byte;
        EXPECT_EQ(run.result<std::uint8_t>(row * 16 + byte),
                  column < 45 ? (row + 1) * 48 + column : 0)
            << start << " " << row << " " << byte;
      }
  }
  RunKernel run(
      loading(32, "mov.u32 %r4, 16;"
                  "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                  "mbarrier::complete_tx::bytes [%s], [%map, {%r4, %r4}], "
                  "[%bar];"));
  TensorMap map = mapOf(run, Type::e2m1);
  map.dims = {96, 4};
  map.box = {32, 2};
  setMap(run, map);
  expectContains(run.finding(), "the innermost coordinate 16 is 8 bytes into a "
                                "row; the hardware traps unless it is a "
                                "multiple of 16");
}

TEST(BulkCopy, TensorsOfEightBitsHaveNoReduction) {
  RunKernel run(storing("mov.u32 %r4, 0;"
                        "cp.reduce.async.bulk.tensor.2d.global.shared::cta."
                        "add.tile.bulk_group [%map, {%r4, %r4}], [%s];"));
  TensorMap map = mapOf(run, Type::e4m3);
  map.box[0] = 16;
  setMap(run, map);
  run.input(counting<float>(64));
  expectContains(run.finding(),
                 "tensor-map: the operation add is not one of tensors of e4m3");
}

TEST(BulkCopy, StoresAndReducesAcrossTheCluster) {
  for (Interleaving order : kOrders) {
    // CTA 0 sends to CTA 1: two words, and two additions to a third.
    RunKernel run("setp.ne.u32 %p1, %t, 0;"
                  "@%p1 bra end;"
                  "mbarrier.init.shared.b64 [%bar], 1;"
                  "st.shared.b32 [%s+8], 1000;"
                  "setp.ne.u32 %p2, %rank, 0;"
                  "@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;"
                  "barrier.cluster.arrive; barrier.cluster.wait;"
                  "@%p2 bra wait;"
                  "mapa.shared::cluster.u32 %r1, %s, 1;"
                  "mapa.shared::cluster.u32 %r2, %bar, 1;"
                  "mov.u32 %r3, 11; mov.u32 %r4, 22;"
                  "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes."
                  "v2.b32 [%r1], {%r3, %r4}, [%r2];"
                  "red.async.relaxed.cluster.shared::cluster."
                  "mbarrier::complete_tx::bytes.add.u32 [%r1+8], %r3, [%r2];"
                  "red.async.relaxed.cluster.shared::cluster."
                  "mbarrier::complete_tx::bytes.max.u32 [%r1+8], %r4, [%r2];"
                  "bra end;"
                  "wait:"
                  "mbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0;"
                  "@!%p3 bra wait;"
                  "ld.shared.b32 %r5, [%s]; st.global.b32 [%out], %r5;"
                  "ld.shared.b32 %r5, [%s+4]; st.global.b32 [%out+4], %r5;"
                  "ld.shared.b32 %r5, [%s+8]; st.global.b32 [%out+8], %r5;"
                  "end:"
                  "barrier.cluster.arrive; barrier.cluster.wait;");
    run.config.grid = run.config.cluster = {2, 1, 1};
    run.config.block = {1, 1, 1};
    run.runCleanly(order);
    EXPECT_EQ(run.result<std::uint32_t>(0), 11u);
    EXPECT_EQ(run.result<std::uint32_t>(1), 22u);
    EXPECT_EQ(run.result<std::uint32_t>(2), 1011u);
  }
}

/// What is found when thread 0 does this with an mbarrier at hand.
static std::string finding(const std::string &alone) {
  RunKernel run(loading(16, alone));
  run.input(counting<std::uint32_t>(64));
  run.config.grid = run.config.cluster = {2, 1, 1};
  return run.finding();
}

TEST(BulkCopy, FindsWhatIsWrong) {
  const std::string load = "cp.async.bulk.shared::cluster.global."
                           "mbarrier::complete_tx::bytes ";
  expectContains(finding(load + "[%s], [%in], 20, [%bar];"),
                 "bulk-size: a bulk copy of 20 bytes; its size is a multiple "
                 "of 16");
  expectContains(finding(load + "[%s], [%in], %r9, [%bar];"),
                 "uninitialized-size: the size depends on bytes that nobody "
                 "wrote");
  expectContains(finding(load + "[%s+8], [%in], 16, [%bar];"),
                 "misaligned: an asynchronous copy of 16 bytes at shared "
                 "address 1032, which is not a multiple of 16");
  expectContains(finding(load + "[%s], [%in+8], 16, [%bar];"),
                 "misaligned: a bulk copy of 16 bytes at global address");
  expectContains(finding(load + "[%s+4080], [%in], 64, [%bar];"),
                 "out-of-bounds: an asynchronous copy of 64 bytes at shared "
                 "address 5104; the CTA has");
  expectContains(finding(load + "[%s], [%in+8192], 16, [%bar];"),
                 "out-of-bounds: a bulk copy of 16 bytes at global address");
  expectContains(
      finding(load + "[%s], [%in], 16, [%s+64];"),
      "mbarrier-uninitialized: a copy completes on shared address "
      "1088 (byte 64 of tile), where there is no initialised mbarrier");
  expectContains(finding("mapa.shared::cluster.u32 %r1, %s, 1;" + load +
                         "[%r1], [%in], 16, [%bar];"),
                 "bulk-barrier: the bytes go to CTA 1 of the cluster and their "
                 "mbarrier is in CTA 0; it must be where the bytes go");
  expectContains(
      finding("cp.async.bulk.shared::cluster.global."
              "mbarrier::complete_tx::bytes.multicast::cluster [%s], [%in], "
              "16, [%bar], 5;"),
      "tma-multicast: the mask 0x5 names CTAs outside a cluster of 2");
  expectContains(
      finding("cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 16;"),
      "uninitialized-store: an asynchronous copy takes bytes that nobody wrote "
      "to global memory");
}

TEST(BulkCopy, RefusesByReason) {
  expectRefusals({
      {"cp.async.bulk.global.global.bulk_group [%d], [%d], 16;",
       "a bulk copy goes from global to shared memory or back, or from shared "
       "to shared memory"},
      {"cp.async.bulk.shared::cluster.global.bulk_group [%r], [%d], 16;",
       "copies to shared memory complete on an mbarrier, those to global "
       "memory in a bulk_group"},
      {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d], [%r], 16;",
       "takes 4 operands (address, address, value, value), not 3"},
      {"cp.async.bulk.global.shared::cta.bulk_group [%d], [%r];",
       "cp.async.bulk.bulk_group takes 3 operands (address, address, value), "
       "not 2"},
      {"cp.reduce.async.bulk.shared::cluster.global."
       "mbarrier::complete_tx::bytes.add.u32 [%r], [%d], 16, [%r];",
       "reductions take their values from shared memory"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.u32 [%d], [%r], 16;",
       "it names none of the operations add min max inc dec and or xor"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.f32 [%d], [%r], "
       "16;",
       "the operation inc is not one of its type"},
      {"st.async.shared::cluster.b32 [%r], %r, [%r];",
       "st.async needs one of .mbarrier::complete_tx::bytes .release "
       ".relaxed"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r], %h, "
       "[%r];",
       "the modifier .b16 is not known for "
       "st.async.mbarrier::complete_tx::bytes"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v8.b32 [%r], "
       "{%r, %r, %r, %r, %r}, [%r];",
       "the modifier .v8 is not known for st"},
      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
       "add.f32 [%r], %r, [%r];",
       "the modifier .f32 is not known for red"},
  });
}

TEST(BulkCopy, TheFirstHalfOfAMapIsTheMap) {
  // Kernels that change maps copy 64 bytes.
  TensorMap map;
  map.type = Type::bf16;
  map.address = 0x7000'1234'5670;
  map.dims = {1, 77, std::uint64_t(1) << 32, 5, 6};
  map.strides_bytes = {16, 0xff'ffff'fff0, 48, 64};
  map.box = {256, 1, 2, 3, 4};
  map.element_strides = {1, 8, 2, 3, 7};
  map.swizzle = Swizzle::b64;
  map.l2 = L2Promotion::b256;
  map.oob = OobFill::nan;
  auto image = encode(map);
  std::fill(image.begin() + 64, image.end(), 0);
  auto back = decode(image.data());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->dims, map.dims);
  EXPECT_EQ(back->strides_bytes, map.strides_bytes);
  EXPECT_EQ(back->box, map.box);
  EXPECT_EQ(back->element_strides, map.element_strides);
  EXPECT_EQ(back->address, map.address);
  EXPECT_EQ(back->type, map.type);
  EXPECT_EQ(back->swizzle, map.swizzle);
  EXPECT_EQ(back->l2, map.l2);
  EXPECT_EQ(back->oob, map.oob);
}

/// Every lane of a warp stores one box of 32 words, waits and reads its word.
static RunKernel &storeByAWarp(RunKernel &run) {
  TensorMap map = mapOf(run, Type::u32);
  map.dims = {32};
  map.strides_bytes = {};
  map.box = {32};
  map.element_strides = {1};
  setMap(run, map);
  return run.input(counting<std::uint32_t>(64));
}
static std::string byAWarp(const std::string &opcode) {
  return R"(
  shl.b32 %r1, %t, 2;
  add.u32 %r2, %s, %r1;
  st.shared.b32 [%r2], %t;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.u32 %r4, 0;
  )" + opcode +
         R"( [%map, {%r4}], [%s];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  bar.sync 0;
  st.shared.b32 [%r2], 7;
)";
}

TEST(BulkCopy, AWholeWarpMayIssueOneStore) {
  for (Interleaving order : kOrders) {
    RunKernel run(byAWarp("cp.async.bulk.tensor.1d.global.shared::cta.tile."
                          "bulk_group"));
    storeByAWarp(run).runCleanly(order);
    for (std::uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), i);
  }
}

TEST(BulkCopy, AReductionByAWholeWarpCountsForEachLane) {
  for (Interleaving order : kOrders) {
    RunKernel run(byAWarp("cp.reduce.async.bulk.tensor.1d.global.shared::cta."
                          "add.tile.bulk_group"));
    storeByAWarp(run).output(std::vector<std::uint32_t>(64, 1));
    run.runCleanly(order);
    for (std::uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), 1 + 32 * i);
  }
}

/// What is found where 128 threads, or those that `guard` lets through, load 64
/// bytes to `to`, and `bytes` are expected in all.
static std::string findingOfLoads(const std::string &guard,
                                  const std::string &to, int bytes,
                                  const std::vector<std::string> &allow = {}) {
  RunKernel run(fmt::format(R"(
  setp.eq.u32 %p0, %t, 0;
  and.b32 %r0, %t, 31;
  setp.eq.u32 %p1, %r0, 0;
  shl.b32 %r1, %t, 4;
  add.u32 %r1, %s, %r1;
  @%p0 mbarrier.init.shared.b64 [%bar], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {};
  bar.sync 0;
  {} cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [%in], 64, [%bar];
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;
  @!%p2 bra wait;
)",
                            bytes, guard, to));
  run.config.block = {128, 1, 1};
  run.config.allow = allow;
  run.input(counting<std::uint32_t>(16));
  return run.finding();
}

TEST(BulkCopy, CountsTheThreadsThatIssueOneLoad) {
  expectContains(findingOfLoads("", "%s", 128 * 64),
                 "copy-not-awaited: 128 threads issue this copy to the same "
                 "bytes, shared address 1024 (byte 0 of tile); nothing orders "
                 "them; missing: one thread that issues it for all "
                 "(elect.sync, or threadIdx.x == 0)");
  expectContains(findingOfLoads("@%p1", "%s", 4 * 64),
                 "copy-not-awaited: 4 threads issue this copy to the same "
                 "bytes");
  EXPECT_EQ(findingOfLoads("@%p0", "%s", 64), "");
  // Each thread has bytes of its own, or shares some with its neighbours.
  expectContains(findingOfLoads("", "%r1", 128 * 64),
                 "copy-not-awaited: this writes shared address");
  EXPECT_EQ(findingOfLoads("@%p1", "%r1", 4 * 64), "");
  EXPECT_EQ(findingOfLoads("", "%s", 128 * 64, {"copy-not-awaited"}), "");
}

TEST(BulkCopy, CountsTheThreadsThatIssueOneStore) {
  auto found = [](const std::string &guard) {
    RunKernel run(R"(
  shl.b32 %r1, %t, 2;
  add.u32 %r1, %s, %r1;
  st.shared.b32 [%r1], %t;
  fence.proxy.async.shared::cta;
  and.b32 %r0, %t, 31;
  setp.eq.u32 %p3, %r0, 0;
  setp.eq.u32 %p4, %t, 0;
  bar.sync 0;
)" + guard + R"( cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
)");
    run.config.block = {64, 1, 1};
    return run.finding();
  };
  expectContains(found("@%p3"), "copy-not-awaited: 2 threads issue this copy "
                                "to the same bytes, global address");
  expectContains(found(""), "copy-not-awaited: 64 threads issue this copy");
  EXPECT_EQ(found("@%p4"), "");
}

/// One thread that loads twice in a phase is told as before.
TEST(BulkCopy, TwoLoadsOfOneThreadAreNotRepeated) {
  RunKernel run(loading(128, R"(mov.u32 %r5, 0;
again:
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 64, [%bar];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p5, %r5, 2;
  @%p5 bra again;)"));
  run.input(counting<std::uint32_t>(16));
  expectContains(run.finding(), "copy-not-awaited: this writes shared address");
}

} // namespace kiln::sim
