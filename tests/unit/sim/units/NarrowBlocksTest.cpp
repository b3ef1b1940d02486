// NarrowBlocks: ldmatrix and stmatrix of bytes, by the layouts that CUTLASS has
// for them, in bits from the start of a matrix.
#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// The input's first 1024 bytes to the tile; %r0: the lane's row of 16 bytes,
/// %x2: the lane's 16 bytes of the output.
static const char *const kRows = R"(
  shl.b32 %r1, %t, 4;
  add.u32 %r0, %s, %r1;
  cvt.u64.u32 %x0, %r1;
  add.u64 %x1, %in, %x0;
  add.u64 %x2, %out, %x0;
  ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%x1];
  st.shared.v4.b32 [%r0], {%r4, %r5, %r6, %r7};
  ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%x1+512];
  st.shared.v4.b32 [%r0+512], {%r4, %r5, %r6, %r7};
  mov.u32 %r9, 0; mov.u32 %r10, 0; mov.u32 %r11, 0;
  bar.sync 0;
)";

static const char *listOf(int count) {
  return count == 1   ? "{%r0}"
         : count == 2 ? "{%r0, %r9}"
                      : "{%r0, %r9, %r10, %r11}";
}

/// SM100_U8x8_LDSM_T and SM100_U8x16_LDSM_T: where thread `thread` finds its
/// row, and where value `value` of a lane stands.
static int rowBits(int thread) {
  return thread % 2 * 128 + thread / 2 % 2 * 1024 + thread / 4 % 4 * 256 +
         thread / 16 * 2048;
}
static int valueBits(int lane, int value) {
  return lane % 4 * 256 + lane / 4 * 8 + value % 2 * 128 + value / 2 % 2 * 64 +
         value / 4 * 1024;
}

TEST(NarrowBlocks, LdmatrixTransposesBytes) {
  for (int count : {1, 2}) {
    RunKernel run(std::string(kRows) +
                      fmt::format("ldmatrix.sync.aligned.m16n16.x{}.trans."
                                  "shared.b8 {}, [%r0];",
                                  count, listOf(2 * count)) +
                      "st.global.v4.b32 [%x2], {%r0, %r9, %r10, %r11};",
                  "sm_120a");
    std::vector<std::uint8_t> tile;
    for (int i = 0; i < 1024; ++i)
      tile.push_back(static_cast<std::uint8_t>(i * 37 >> 3));
    run.input(tile).runCleanly(Interleaving::eager);
    // The matrix as the values have it, row by row of the threads.
    std::vector<std::uint8_t> matrix(512);
    for (int thread = 0; thread < 16 * count; ++thread)
      std::copy_n(tile.begin() + 16 * thread, 16,
                  matrix.begin() + rowBits(thread) / 8);
    for (int lane = 0; lane < 32; ++lane)
      for (int value = 0; value < 8 * count; ++value)
        ASSERT_EQ(run.result<std::uint8_t>(16 * lane + value),
                  matrix[valueBits(lane, value) / 8])
            << "x" << count << " lane " << lane << " value " << value;
  }
}

TEST(NarrowBlocks, LdmatrixSpreadsSixAndFourBits) {
  for (int bits : {6, 4})
    for (int count : {1, 2, 4}) {
      RunKernel run(std::string(kRows) +
                        fmt::format("ldmatrix.sync.aligned.m8n16.x{}.shared."
                                    "b8x16.b{}x16_p{} {}, [%r0];",
                                    count, bits, bits == 6 ? 32 : 64,
                                    listOf(count)) +
                        "st.global.v4.b32 [%x2], {%r0, %r9, %r10, %r11};",
                    "sm_121a");
      std::vector<std::uint8_t> tile;
      for (int i = 0; i < 1024; ++i)
        tile.push_back(static_cast<std::uint8_t>(i * 91 + (i >> 3)));
      run.input(tile).runCleanly(Interleaving::eager);
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < count; ++i)
          for (int part = 0; part < 4; ++part) {
            // Matrix i, row lane / 4, element 4 * (lane % 4) + part.
            int first = bits * (4 * (lane % 4) + part), value = 0;
            const std::uint8_t *row = &tile[16 * (8 * i + lane / 4)];
            for (int bit = 0; bit < bits; ++bit)
              value |= (row[(first + bit) / 8] >> (first + bit) % 8 & 1) << bit;
            ASSERT_EQ(run.result<std::uint8_t>(16 * lane + 4 * i + part), value)
                << bits << " bits x" << count << " lane " << lane;
          }
    }
}

TEST(NarrowBlocks, StmatrixTransposesBytes) {
  for (int count : {1, 2, 4}) {
    RunKernel run(std::string(kRows) +
                      "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%x1];" +
                      fmt::format("stmatrix.sync.aligned.m16n8.x{}.trans."
                                  "shared.b8 [%r0+1024], {};",
                                  count,
                                  count == 1   ? "{%r4}"
                                  : count == 2 ? "{%r4, %r5}"
                                               : "{%r4, %r5, %r6, %r7}") +
                      "bar.sync 0;" +
                      fmt::format("setp.ge.u32 %p1, %t, {};", 8 * count) +
                      "@%p1 bra done;"
                      "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0+1024];"
                      "st.global.v4.b32 [%x2], {%r4, %r5, %r6, %r7}; done:",
                  "sm_100a");
    run.input(counting<std::uint8_t>(1024)).runCleanly(Interleaving::eager);
    for (int lane = 0; lane < 32; ++lane)
      for (int value = 0; value < 4 * count; ++value)
        ASSERT_EQ(run.result<std::uint8_t>(valueBits(lane, value) / 8),
                  static_cast<std::uint8_t>(16 * lane + value))
            << "x" << count << " lane " << lane << " value " << value;
  }
}

TEST(NarrowBlocks, UnwrittenAndDistantRowsAreFound) {
  RunKernel unwritten(std::string(kRows) +
                          "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16."
                          "b4x16_p64 {%r9}, [%r0+2048];"
                          "st.global.b32 [%x2], %r9;",
                      "sm_120a");
  unwritten.input(counting<std::uint8_t>(1024));
  expectContains(unwritten.finding(), "uninitialized-store");
  RunKernel distant("mov.u32 %r0, 65536; ldmatrix.sync.aligned.m16n16.x1.trans."
                    "shared.b8 {%r1, %r2}, [%r0];",
                    "sm_120a");
  expectContains(distant.finding(), "out-of-bounds: a row of ldmatrix");
  RunKernel skew("add.u32 %r0, %s, 8; ldmatrix.sync.aligned.m16n16.x1.trans."
                 "shared.b8 {%r1, %r2}, [%r0];",
                 "sm_120a");
  expectContains(skew.finding(), "misaligned: a row of ldmatrix");
}

/// Another thread writes a row that stmatrix writes.
TEST(NarrowBlocks, RacesAreFound) {
  RunKernel run("mov.u32 %r4, %t; shl.b32 %r1, %t, 4; add.u32 %r0, %s, %r1;"
                "setp.ge.u32 %p1, %t, 32; @%p1 bra other;"
                "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r0], {%r4};"
                "bra done; other: st.shared.b32 [%s], %r4; done:",
                "sm_120a");
  run.config.block = {64, 1, 1};
  expectContains(run.finding(), "race");
}

} // namespace kiln::sim
