// Trace: what the GEMMs print while they are debugged, line by line.
//
// The expected lines are written out here as loops over the K tiles, one print
// after the other, in the order of the hand-written kernels that Kiln's
// schedules come from.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <fmt/format.h>

using namespace conformance;

namespace {
constexpr int kTiles = 5, kTileBytes = 128 * 64 * 2, kPanelBytes = 64 * 64 * 2;

/// The lines a GEMM of one output tile prints in the simulator.
std::vector<std::string> traced(GemmKind kind, int stages) {
  GemmProblem problem{
      .m = 128, .n = 128, .k = 64 * kTiles, .layout = GemmLayout::tt};
  GemmSchedule schedule{.kind = kind, .stages = stages};
  Kernel kernel = compile(build_gemm(problem, schedule, {.is_traced = true}));
  std::string text;
  auto device = open_sim({.print = [&](const std::string &s) { text += s; }});
  auto a = random_elements(f16, 128 * 64 * kTiles, 1);
  auto b = random_elements(f16, 128 * 64 * kTiles, 2);
  std::vector<float> d(128 * 128, -1);
  EXPECT_TRUE(try_run(*device, kernel, a, b, d).ok());
  std::vector<std::string> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string::npos;
       text.erase(0, end + 1))
    lines.push_back(text.substr(0, end));
  return lines;
}

/// Those of one role: the roles' lines come in any order among each other.
std::vector<std::string> of(const std::string &role,
                            const std::vector<std::string> &lines) {
  std::vector<std::string> result;
  for (const std::string &line : lines)
    if (line.starts_with(role))
      result.push_back(line);
  return result;
}

struct Slots {
  int stages;
  int a(int slot) const { return slot * kTileBytes; }
  int b(int slot) const { return slot * kTileBytes + stages * kTileBytes; }
  int b2(int slot) const { return b(slot) + kPanelBytes; }
};
} // namespace

TEST(Trace, WarpSpecialized) {
  for (int stages : {1, 2, 3}) {
    std::vector<std::string> producer, consumer;
    Slots slots{stages};
    for (int iv = 0; iv < kTiles; ++iv) {
      int stage = iv % stages, phase = iv / stages % 2;
      auto wait = fmt::format("[prod] iv={}  | mbarDONE[{}] try_wait  phase={}",
                              iv, stage, 1 - phase);
      auto arrive =
          fmt::format("[prod] iv={}  | mbarTMA[{}] arrive", iv, stage);
      producer.insert(
          producer.end(),
          {wait, wait + " [done]",
           fmt::format("[prod] a_offset={} b_offset={} b_offset2={}",
                       slots.a(stage), slots.b(stage), slots.b2(stage)),
           arrive, arrive + " [done]"});
      auto full = fmt::format("[cons] iv={}  | mbarTMA[{}] try_wait   phase={}",
                              iv, stage, phase);
      consumer.insert(consumer.end(),
                      {full, full + " [done]",
                       fmt::format("[cons] a_offset={} b_offset={}",
                                   slots.a(stage), slots.b(stage))});
      if (stages > 1 && iv == 0)
        continue;
      auto done = fmt::format("[cons] iv={}  | mbarDONE[{}] arrive ", iv,
                              (stage + stages - 1) % stages);
      consumer.insert(consumer.end(), {done, done + "[done]"});
    }
    consumer.push_back("[cons]  | Storing");
    auto lines = traced(GemmKind::warp_specialized, stages);
    EXPECT_EQ(of("[prod]", lines), producer) << stages;
    EXPECT_EQ(of("[cons]", lines), consumer) << stages;
    EXPECT_EQ(lines.size(), producer.size() + consumer.size());
  }
}

TEST(Trace, Multistage) {
  for (int stages : {1, 2, 3}) {
    int ahead = stages == 1 ? 1 : stages - 1;
    std::vector<std::string> expected;
    Slots slots{stages};
    auto place = [&](int tile) {
      int slot = tile % stages;
      return fmt::format(
          "TMA Load a_offset={} b_offset={} b_offset2={} @ a=({},0) b=(0,{})",
          slots.a(slot), slots.b(slot), slots.b2(slot), 64 * tile, 64 * tile);
    };
    for (int i = 0; i < ahead; ++i)
      expected.insert(expected.end(),
                      {"[Prologue] " + place(i),
                       fmt::format("[Prologue] mbarTMA[{}] arrive", i),
                       fmt::format("[Prologue] mbarTMA[{}] arrive [done]", i)});
    for (int iv = 0; iv < kTiles; ++iv) {
      int stage = iv % stages, next = iv + ahead;
      auto wait = fmt::format("[MainLoop] mbarTMA[{}] try_wait   phase={}",
                              stage, iv / stages % 2);
      expected.insert(
          expected.end(),
          {wait, wait + " [done]",
           fmt::format("[MainLoop] iv={} MMA a_offset={} b_offset={}", iv,
                       slots.a(stage), slots.b(stage))});
      if (next >= kTiles)
        continue;
      auto arrive = fmt::format("[MainLoop] mbarTMA[{}] arrive", next % stages);
      expected.insert(expected.end(),
                      {arrive, arrive + " [done]",
                       fmt::format("[MainLoop] iv={} {}", iv, place(next))});
    }
    expected.push_back("Storing");
    EXPECT_EQ(traced(GemmKind::multistage, stages), expected) << stages;
  }
}

TEST(Trace, CostsNothingWhereItIsOff) {
  for (GemmKind kind : {GemmKind::multistage, GemmKind::warp_specialized})
    EXPECT_EQ(count(compile(build_gemm({}, {.kind = kind})).ptx, "vprintf"), 0);
}
