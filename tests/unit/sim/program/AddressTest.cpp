// Address: what lies outside its memory is a finding, however far outside.
//
// Each case would read or write memory of the host if its address arithmetic
// wrapped around or were cut to 32 bits.
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/units/matrix/MatrixProduct.h"
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

namespace {
struct Outside {
  const char *instructions;
  const char *finding;
};
} // namespace

/// One thread runs the instructions and the finding is told.
static void expectFindings(std::initializer_list<Outside> cases) {
  for (const Outside &outside : cases) {
    SCOPED_TRACE(outside.instructions);
    RunKernel run(outside.instructions);
    run.config.block = {1, 1, 1};
    run.config.registers_at_entry = 0;
    run.input(counting<std::uint32_t>(RunKernel::kBufferBytes / 4));
    expectContains(run.finding(), outside.finding);
  }
}

// LLVM writes addresses of local memory with 32 bits where it may.
TEST(Address, OfLocalMemoryHas32BitsWhereTheyAreAskedFor) {
  RunKernel run(".local .align 4 .b8 a[16]; mov.b32 %r0, a+4;"
                "st.local.u32 [%r0], 7; ld.local.u32 %r1, [a+4];"
                "st.global.u32 [%out], %r1;");
  run.output(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
  run.config.block = {1, 1, 1};
  EXPECT_EQ(run.finding(), "");
}

TEST(Address, LocalMemoryHasTwoEnds) {
  expectFindings({
      {".local .align 4 .b8 a[16]; st.local.u32 [a+-4], %t;",
       "out-of-bounds: a store of 4 bytes at local address -4; a thread has "
       "16"},
      {".local .align 4 .b8 a[16]; st.local.u32 [a-4], %t;",
       "a store of 4 bytes at local address -4; a thread has 16"},
      {".local .align 4 .b8 a[16]; mov.u64 %x0, a; ld.local.u8 %r0, [%x0+-1];",
       "a load of 1 bytes at local address -1; a thread has 16"},
      {".local .align 4 .b8 a[16]; mov.u64 %x0, a-1; st.local.u8 [%x0], %t;",
       "a store of 1 bytes at local address -1; a thread has 16"},
      {".local .align 4 .b8 a[16]; ld.local.u32 %r0, [a+0x7fffffffffffffff];",
       "a load of 4 bytes at local address 9223372036854775807"},
      {".local .align 4 .b8 a[16]; ld.local.u32 %r0, [a+0x100000000];",
       "a load of 4 bytes at local address 4294967296; a thread has 16"},
      {".local .align 4 .b8 a[16]; mov.u64 %x0, a+0x100000000; "
       "ld.local.u32 %r0, [%x0];",
       "a load of 4 bytes at local address 4294967296; a thread has 16"},
      {".local .align 4 .b8 a[16]; st.local.v4.u32 [a+4], {%t, %t, %t, %t};",
       "a store of 16 bytes at local address 4; a thread has 16"},
      {".local .align 4 .b8 a[16]; mov.u64 %x0, a; cvta.local.u64 %x0, %x0; "
       "st.u8 [%x0+-1], %t;",
       "out-of-bounds: a store of 1 bytes at 1099511627775 of 192 bytes of "
       "parameters"},
      {".local .align 4 .b8 a[16]; ld.local.u32 %r0, [a+2];",
       "misaligned: a load of 4 bytes at local address 2, which is not a "
       "multiple of 4"},
  });
}

TEST(Address, ParametersHaveTwoEndsAndAreConstant) {
  expectFindings({
      {"ld.param.u32 %r0, [in+-4];",
       "out-of-bounds: a load of 4 bytes at -4 of 192 bytes of parameters"},
      {"ld.param.u32 %r0, [map+128];",
       "a load of 4 bytes at 192 of 192 bytes of parameters"},
      {"ld.param.u64 %x0, [in+0x7ffffffffffffff8];",
       "a load of 8 bytes at 9223372036854775800 of 192 bytes of parameters"},
      {"st.param.u32 [in+-4], %t;",
       "a store of 4 bytes at -4 of 192 bytes of parameters"},
      {"st.param.u32 [in], %t;",
       "read-only: a store to the parameters of the kernel"},
      {"st.u32 [%map], %t;",
       "read-only: a store to the parameters of the kernel"},
  });
}

TEST(Address, SharedMemoryHasTwoEnds) {
  expectFindings({
      {"st.shared.u32 [tile+-4], %t;",
       "out-of-bounds: a store of 4 bytes at shared address 1020; the CTA has "
       "4104 bytes from address 1024 on"},
      {"st.shared.u32 [tile+4104], %t;",
       "a store of 4 bytes at shared address 5128"},
      {"ld.shared.u32 %r0, [%s+0x7fffffffffffffff];",
       "out-of-bounds: shared address 0x80000000000003ff names CTA"},
      {"ld.shared.u32 %r0, [%s+-2048];", "names CTA"},
      {"mapa.shared::cluster.u32 %r0, %s, 7; "
       "st.shared::cluster.u32 [%r0], %t;",
       "names CTA 7 of a cluster of 1"},
      {"mbarrier.init.shared::cta.b64 [%bar+0x7fffffffffffff00], 1;",
       "out-of-bounds: shared address"},
      {"cp.async.ca.shared.global [%s+-2048], [%in], 4;",
       "out-of-bounds: shared address"},
      {"cp.async.ca.shared.global [%s], [%in+-4], 4;",
       "out-of-bounds: an asynchronous copy of 4 bytes at global address"},
      {"cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], "
       "4294967280;",
       "out-of-bounds: an asynchronous copy of 4294967280 bytes at shared "
       "address 1024"},
      {"atom.shared.add.u32 %r0, [tile+4104], 1;",
       "out-of-bounds: an atomic of 4 bytes at shared address 5128"},
  });
}

TEST(Address, GlobalMemoryHasTwoEnds) {
  expectFindings({
      {"ld.global.u32 %r0, [%in+-4];",
       "out-of-bounds: a load of 4 bytes at global address"},
      {"ld.global.u32 %r0, [%in+0x7fffffffffffffff];",
       "out-of-bounds: a load of 4 bytes at global address"},
      {"mov.b64 %x0, -1; ld.global.u64 %x1, [%x0];",
       "out-of-bounds: a load of 8 bytes at global address 0xffffffffffffffff"},
      {"ld.u64 %x1, [0];", "no buffer is near that address"},
      {"atom.global.add.u32 %r0, [%out+8192], 1;",
       "out-of-bounds: an atomic of 4 bytes at global address"},
  });
}

TEST(Address, RowsOfMatricesHaveTwoEnds) {
  RunKernel run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s+-16];");
  expectContains(run.finding(), "out-of-bounds: a row of ldmatrix of 16 bytes "
                                "at shared address 1008");
}

TEST(Address, SharedOnesCarryTheRankOfTheCta) {
  // Clearing bit 24 of its own address takes the odd CTA to the even one's.
  RunKernel run(fmt::format(R"(
    getctarank.shared::cluster.u32 %r1, %s;
    setp.eq.u32 %p0, %t, 0;
    setp.eq.u32 %p1, %rank, 1;
    and.pred %p2, %p0, %p1;
    and.b32 %r0, %s, 0xfeffffff;
    add.u32 %r2, %r1, 40;
    @%p2 st.shared::cluster.u32 [%r0], %r2;
    {0}
    setp.eq.and.u32 %p3, %rank, 0, %p0;
    @%p3 ld.shared.u32 %r3, [tile];
    @%p3 st.global.u32 [%out], %r3;
    {0}
  )",
                            "barrier.cluster.arrive.release.aligned;\n"
                            "barrier.cluster.wait.acquire.aligned;"));
  run.config.grid = run.config.cluster = {2, 1, 1};
  for (Interleaving order : kOrders)
    EXPECT_EQ(run.runCleanly(order).result<std::uint32_t>(0), 41u);
}

TEST(Address, CopiesOfSharedMemoryMayOverlap) {
  RunKernel run(R"(
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra end;
    ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in];
    st.shared.v4.u32 [tile], {%r0, %r1, %r2, %r3};
    st.shared.v4.u32 [tile+16], {%r0, %r1, %r2, %r3};
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 %x0, [barrier], 32;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
      [tile+16], [tile], 32, [barrier];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra wait;
    ld.shared.u32 %r4, [tile+36];
    st.global.u32 [%out], %r4;
  end:
  )");
  run.input(counting<std::uint32_t>(4)).run();
  EXPECT_EQ(run.result<std::uint32_t>(0), 1u);
}

/// A copy of a box of that map, by thread 0.
static std::string copyOf(const TensorMap &map,
                          const std::function<void(std::uint8_t *)> &spoil) {
  std::string zeros = "0";
  for (std::size_t i = 1; i < map.dims.size(); ++i)
    zeros += ", 0";
  RunKernel run(fmt::format(R"(
    mbarrier.init.shared::cta.b64 [barrier], 1;
    cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes
      [tile], [%map, {{{}}}], [barrier];
  )",
                            map.dims.size(), zeros));
  run.config.block = {1, 1, 1};
  TensorMap mine = map;
  mine.address = run.inputAddress();
  auto image = encode(mine);
  spoil(image.data());
  std::memcpy(run.config.params.data() + 64, image.data(), image.size());
  return run.finding();
}

TEST(Address, BoxesOfTensorsAreCountedIn64Bits) {
  auto keep = [](std::uint8_t *) {};
  TensorMap large{.type = u8,
                  .dims = {16, 1, 1, 1, 1},
                  .strides_bytes = {16, 16, 16, 16},
                  .box = {256, 256, 256, 256, 256},
                  .element_strides = {1, 1, 1, 1, 1}};
  expectContains(copyOf(large, keep),
                 "out-of-bounds: an asynchronous copy of 1099511627776 bytes "
                 "at shared address 1024");
  TensorMap far{.type = u8,
                .dims = {16, std::uint64_t(1) << 32},
                .strides_bytes = {(std::uint64_t(1) << 40) - 16},
                .box = {16, 1},
                .element_strides = {1, 1}};
  expectContains(copyOf(far, keep), "out-of-bounds: a tensor of "
                                    "18446744073709551615 bytes at global");
  TensorMap interleaved{.type = u8,
                        .dims = {16, 1, 1},
                        .strides_bytes = {32, 32},
                        .box = {256, 1, 1},
                        .element_strides = {1, 1, 1},
                        .swizzle = Swizzle::b32,
                        .interleave = Interleave::b32};
  expectContains(copyOf(interleaved, keep),
                 "tensor-map: the simulator does not know interleaved tensor "
                 "maps");
}

TEST(Address, WordsOfATensorMapMeanSomethingOrItIsNone) {
  TensorMap map{.type = u8,
                .dims = {16, 1},
                .strides_bytes = {16},
                .box = {16, 1},
                .element_strides = {1, 1},
                .swizzle = Swizzle::b32};
  int refused = 0;
  // Any byte of the image may be any number: nothing but findings come of it.
  for (int byte = 0; byte < 64; ++byte)
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff})
      refused += !copyOf(map, [&](std::uint8_t *image) {
                    image[byte] = static_cast<std::uint8_t>(value);
                  }).empty();
  EXPECT_GT(refused, 64);
  expectContains(copyOf(map, [](std::uint8_t *image) { image[4] = 200; }),
                 "tensor-map: the bytes at the tensor map's address are not a "
                 "tensor map");
}

TEST(Address, EveryElementOfAnOperandIsBehindItsLastByte) {
  ProductShape shape{.n = 96, .k = 16};
  for (bool isTransposed : {false, true})
    for (std::uint64_t swizzle = 0; swizzle < 4; ++swizzle)
      for (std::uint64_t leading : {0, 1, 8, 64})
        for (std::uint64_t stride : {0, 1, 8, 64})
          for (std::uint64_t start : {64, 65, 71, 200}) {
            shape.isATransposed = shape.isBTransposed = isTransposed;
            std::uint64_t descriptor =
                swizzle << 62 | stride << 32 | leading << 16 | start;
            for (bool isA : {false, true}) {
              OperandView view = viewOf(descriptor, shape, isA);
              std::uint32_t last = 0;
              for (int row = 0; row < view.rows; ++row)
                for (int k = 0; k < view.k; ++k)
                  last =
                      std::max(last, view.address(row, k) + view.elementBytes);
              ASSERT_LE(last, view.lastByte()) << std::hex << descriptor;
            }
          }
}

} // namespace kiln::sim
