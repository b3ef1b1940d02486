// Tcgen05Move: loads and stores of every shape, whose lanes they take, and when
// they are over; copies; what targets have.
#include "kiln/base/error.h"
#include "unit/sim/units/RunTensor.h"

namespace kiln::sim {

/// Lane and column of register r of thread t, from the figures of the PTX ISA.
static std::pair<int, int> placeOfMove(const std::string &shape, int r, int t,
                                       int split) {
  if (shape == "32x32b")
    return {t, r};
  if (shape == "16x64b")
    return {t / 4 + t % 2 * 8, t / 2 % 2 + 2 * r};
  if (shape == "16x128b")
    return {t / 4 + r % 2 * 8, t % 4 + r / 2 * 4};
  if (shape == "16x256b")
    return {t / 4 + r / 2 % 2 * 8, t % 4 * 2 + r % 2 + r / 4 * 8};
  return {t % 16, r + (t < 16 ? 0 : split)};
}

TEST(Tcgen05Move, MovesRegistersInEveryShape) {
  struct Move {
    const char *shape;
    int repetitions, registers;
  };
  constexpr int kSplit = 32;
  for (Move move :
       {Move{"32x32b", 16, 16}, Move{"16x64b", 8, 8}, Move{"16x128b", 4, 8},
        Move{"16x256b", 4, 16}, Move{"16x32bx2", 8, 8}})
    for (bool isPacked : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", move.shape, isPacked));
      std::string words = registerList(0, 64), body;
      for (int i = 0; i < 64; ++i)
        body += fmt::format("mul.lo.u32 %r{0}, %t, 64;\nadd.u32 %r{0}, %r{0}, "
                            "{0};\n",
                            i);
      std::string list = registerList(64, move.registers);
      std::string split = std::string(move.shape) == "16x32bx2"
                              ? fmt::format(", {}", kSplit)
                              : "";
      // Out in the shape, back into other columns in the same shape, and out.
      body += fmt::format(
          "tcgen05.st.sync.aligned.32x32b.x64.b32 [%mine], {{{0}}};\n"
          "tcgen05.st.sync.aligned.32x32b.x64.b32 [%mine+64], {{{0}}};\n"
          "tcgen05.wait::st.sync.aligned;\n"
          "tcgen05.ld.sync.aligned.{1}.x{2}{5}.b32 {{{3}}}, [%mine]{4};\n"
          "tcgen05.wait::ld.sync.aligned;\n"
          "tcgen05.st.sync.aligned.{1}.x{2}{6}.b32 [%mine+64]{4}, {{{3}}};\n"
          "tcgen05.wait::st.sync.aligned;\n"
          "mul.wide.u32 %x3, %t, 256;\nadd.u64 %x3, %x3, %out;\n",
          words, move.shape, move.repetitions, list, split,
          isPacked ? ".pack::16b" : "", isPacked ? ".unpack::16b" : "");
      for (int i = 0; i < move.registers; ++i)
        body += fmt::format("st.global.b32 [%x3+{}], %r{};\n", 4 * i, 64 + i);
      RunTensor run(body, {}, 128 * 64);
      std::vector<std::uint32_t> out = run.run(Interleaving::lazy);
      for (int t = 0; t < 128; ++t)
        for (int r = 0; r < move.registers; ++r) {
          auto [lane, column] = placeOfMove(move.shape, r, t % 32,
                                            isPacked ? kSplit / 2 : kSplit);
          lane += t / 32 * 32;
          std::uint32_t wanted = lane * 64 + column;
          if (isPacked) {
            std::uint32_t first = lane * 64 + 2 * column;
            wanted = (first & 0xffff) | (first + 1) << 16;
          }
          ASSERT_EQ(out[t * 64 + r], wanted)
              << "thread " << t << " register " << r;
        }
    }
}

TEST(Tcgen05Move, CopiesRowsIntoLanes) {
  struct Copy {
    const char *words;
    int rows, bytes;
    std::vector<int> lanes; ///< that row 33 % rows goes to
  };
  for (const Copy &copy :
       std::vector<Copy>{{"128x256b", 128, 32, {33}},
                         {"128x128b", 128, 16, {33}},
                         {"64x128b.warpx2::02_13", 64, 16, {33, 97}},
                         {"64x128b.warpx2::01_23", 64, 16, {65, 97}},
                         {"32x128b.warpx4", 32, 16, {1, 33, 65, 97}},
                         {"4x256b", 4, 32, {32}}}) {
    SCOPED_TRACE(copy.words);
    std::vector<std::uint8_t> shared(kSharedBytes);
    // Core matrices of 8 rows by 16 bytes, those of a row group together.
    int stride = copy.bytes * 8;
    for (int row = 0; row < copy.rows; ++row)
      for (int byte = 0; byte < copy.bytes; ++byte)
        shared[row / 8 * stride + byte / 16 * 128 + row % 8 * 16 + byte % 16] =
            static_cast<std::uint8_t>(row * 7 + byte);
    std::string list = registerList(0, 8), body;
    for (int i = 0; i < 8; ++i)
      body += fmt::format("mov.u32 %r{}, -1;\n", i);
    body += fmt::format(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%mine], {{{0}}};\n"
        "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
        "bar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
        "and.b32 %r270, %s, 0x3ffff;\nshr.u32 %r270, %r270, 4;\n"
        "cvt.u64.u32 %x0, %r270;\nor.b64 %x0, %x0, {1:#x};\n"
        "@%lead tcgen05.cp.cta_group::1.{2} [%tmem], %x0;\n"
        "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%bar];\n"
        "waiting:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar], 0;\n"
        "@!%p2 bra waiting;\ntcgen05.fence::after_thread_sync;\n"
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{0}}}, [%mine];\n"
        "tcgen05.wait::ld.sync.aligned;\n"
        "mul.wide.u32 %x3, %t, 32;\nadd.u64 %x3, %x3, %out;\n",
        list,
        std::uint64_t(1) << 46 | std::uint64_t(stride >> 4) << 32 |
            std::uint64_t(8) << 16,
        copy.words);
    // The mbarrier's address is generic without a space.
    std::size_t commit = body.find(".b64 [%bar];");
    body.insert(commit, ".shared::cluster");
    for (int i = 0; i < 8; ++i)
      body += fmt::format("st.global.b32 [%x3+{}], %r{};\n", 4 * i, i);
    RunTensor run(body, shared, 128 * 8);
    std::vector<std::uint32_t> out = run.run(Interleaving::random);
    int row = 33 % copy.rows;
    for (int lane : copy.lanes)
      for (int byte = 0; byte < copy.bytes; ++byte)
        ASSERT_EQ(out[lane * 8 + byte / 4] >> 8 * (byte % 4) & 0xff,
                  static_cast<std::uint8_t>(row * 7 + byte))
            << "lane " << lane << " byte " << byte;
  }
}

TEST(Tcgen05Move, RefusesFormsThatAreNone) {
  auto refusalOf = [](const std::string &target, const std::string &body) {
    try {
      RunTensor(body, {}, 1, 1, target).finding();
    } catch (const UserError &error) {
      return error.message();
    }
    return std::string();
  };
  expectContains(refusalOf("sm_100a",
                           "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0}, "
                           "[%mine];"),
                 "1 registers for .32x32b.x2, which has 2");
  expectContains(refusalOf("sm_100a",
                           "@%lead tcgen05.mma.cta_group::1.kind::f16 [%tmem], "
                           "%x0, %x1, %r0, {%r0, %r1}, %p0;"),
                 "2 masks of disabled lanes; cta_group::1 has 4");
  expectContains(refusalOf("sm_100a",
                           "@%lead tcgen05.mma.cta_group::1.kind::mxf4."
                           "block_scale.scale_vec::4X [%tmem], %x0, %x1, %r0, "
                           "[%tmem], [%tmem], %p0;"),
                 "mxf8f6f4 takes .scale_vec::1X");
}

TEST(Tcgen05Move, FollowsUnwrittenBytes) {
  // The second half of A's rows is never written: those sums are unknown.
  RunTensor run(fmt::format("tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{0}}}, "
                            "[%mine];\ntcgen05.wait::ld.sync.aligned;\n"
                            "mul.wide.u32 %x3, %t, 4;\nadd.u64 %x3, %x3, "
                            "%out;\nst.global.b32 [%x3], %r3;\n",
                            registerList(0, 8)),
                {}, 128);
  expectContains(run.finding(), "uninitialized-store");
  expectContains(run.finding(),
                 ", column 0 of tensor memory, which nobody wrote");
}

TEST(Tcgen05Move, RemembersWhereUnwrittenBytesWereReadFirst) {
  for (const char *shape : {"32x32b.x2", "16x64b.x2"}) {
    RunTensor run(
        fmt::format("ld.global.b32 %r0, [%out];\nmov.u32 %r1, %r0;\n"
                    "tcgen05.st.sync.aligned.{0}.b32 [%mine], {{%r0, %r1}};\n"
                    "tcgen05.wait::st.sync.aligned;\n"
                    "tcgen05.ld.sync.aligned.{0}.b32 {{%r2, %r3}}, [%mine];\n"
                    "tcgen05.wait::ld.sync.aligned;\n"
                    "mul.wide.u32 %x3, %t, 4;\nadd.u64 %x3, %x3, %out;\n"
                    "st.global.b32 [%x3+16], %r2;\n",
                    shape),
        {}, 256);
    expectContains(run.finding(),
                   ": byte 0 of out (1024 bytes), which nobody wrote");
  }
}

/// Each lane's columns 0 to 3 are 64 * lane + column; `load` then fills %r64 to
/// %r67, which go to `out`.
static std::string bodyAround(const std::string &load) {
  std::string body;
  for (int i = 0; i < 4; ++i)
    body += fmt::format(
        "mul.lo.u32 %r{0}, %t, 64;\nadd.u32 %r{0}, %r{0}, {0};\n", i);
  return body +
         fmt::format("tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {{{}}};\n"
                     "tcgen05.wait::st.sync.aligned;\n{}\n"
                     "mul.wide.u32 %x3, %t, 16;\nadd.u64 %x3, %x3, %out;\n"
                     "st.global.v4.b32 [%x3], {{{}}};\n",
                     registerList(0, 4), load, registerList(64, 4));
}

TEST(Tcgen05Move, TakesTheLanesOfTheWarpWhateverTheAddressNames) {
  struct Load {
    const char *shape;
    int named, taken; ///< lanes: of the address; where the warp's begin
  };
  // All warps name the same lanes; those of 16 choose a half of 32.
  for (Load load : {Load{"32x32b.x4", 0, 0}, Load{"16x256b.x1", 0, 0},
                    Load{"16x256b.x1", 80, 16}, Load{"32x32b.x4", 128, 0},
                    Load{"16x256b.x1", 208, 16}}) {
    SCOPED_TRACE(fmt::format("{} {}", load.shape, load.named));
    RunTensor run(bodyAround(fmt::format(
                      "tcgen05.ld.sync.aligned.{}.b32 {{{}}}, "
                      "[%tmem+{}];\ntcgen05.wait::ld.sync.aligned;",
                      load.shape, registerList(64, 4), load.named << 16)),
                  {}, 128 * 4);
    bool isWide = load.shape[0] == '1';
    // Columns 4 to 7 of the wide shape were never written.
    run.config.allow = {"uninitialized-store"};
    expectContains(run.finding(), "tcgen05-lanes: warp");
    run.config.allow.push_back("tcgen05-lanes");
    std::vector<std::uint32_t> out = run.run();
    for (int t = 0; t < 128; ++t)
      for (int r = 0; r < 4; ++r) {
        auto [lane, column] =
            placeOfMove(isWide ? "16x256b" : "32x32b", r, t % 32, 0);
        if (column < 4) {
          ASSERT_EQ(out[t * 4 + r],
                    64 * (t / 32 * 32 + load.taken + lane) + column)
              << "thread " << t << " register " << r;
        }
      }
  }
}

TEST(Tcgen05Move, StoresToTheLanesOfTheWarpWhateverTheAddressNames) {
  for (int named : {32, 160}) {
    SCOPED_TRACE(named);
    // Columns 0 to 3, stored once more as 8 to 11.
    RunTensor run(
        bodyAround(fmt::format(
            "tcgen05.st.sync.aligned.32x32b.x4.b32 [%tmem+{}], {{{}}};\n"
            "tcgen05.wait::st.sync.aligned;\n"
            "tcgen05.ld.sync.aligned.32x32b.x4.b32 {{{}}}, [%mine+8];\n"
            "tcgen05.wait::ld.sync.aligned;",
            (named << 16) + 8, registerList(0, 4), registerList(64, 4))),
        {}, 128 * 4);
    expectContains(run.finding(), "tcgen05-lanes: warp");
    run.config.allow = {"tcgen05-lanes"};
    std::vector<std::uint32_t> out = run.run(Interleaving::lazy);
    for (int i = 0; i < 128 * 4; ++i)
      ASSERT_EQ(out[i], 64 * (i / 4) + i % 4) << "word " << i;
  }
}

TEST(Tcgen05Move, ALoadIsOverWhereItsRegistersWereUsed) {
  const std::string load =
      fmt::format("tcgen05.ld.sync.aligned.32x32b.x4.b32 {{{}}}, [%mine];\n",
                  registerList(64, 4));
  // Each warp overwrites what it has loaded.
  const std::string store =
      fmt::format("tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {{{}}};\n"
                  "tcgen05.wait::st.sync.aligned;\n",
                  registerList(0, 4));
  const std::string use = "add.u32 %r4, %r65, 1;\n";
  const std::string other =
      fmt::format("tcgen05.ld.sync.aligned.32x32b.x2.b32 {{{}}}, [%mine+2];\n",
                  registerList(68, 2));
  auto found = [](const std::string &body) {
    return RunTensor(bodyAround(body), {}, 128 * 4).finding();
  };
  EXPECT_EQ(found(load + "tcgen05.wait::ld.sync.aligned;\n" + store), "");
  std::string unused = found(load + store + use);
  expectContains(unused, "tcgen05-not-awaited: this writes lane");
  expectContains(unused, "nothing orders the two; missing: tcgen05.wait::ld");
  std::string used = found(load + use + store);
  expectContains(used, "tcgen05-wait: this writes lane");
  expectContains(used, "only released hardware, not the PTX text, orders the "
                       "two; missing: tcgen05.wait::ld");
  // The second load is used, the first is not.
  expectContains(found(load + other + "add.u32 %r4, %r68, 1;\n" + store),
                 "tcgen05-not-awaited");
  expectContains(found(load + other + "add.u32 %r4, %r68, %r64;\n" + store),
                 "tcgen05-wait");
  // Who only uses the registers needs no wait.
  EXPECT_EQ(found(load + use + "tcgen05.wait::ld.sync.aligned;\n"), "");
}

} // namespace kiln::sim
