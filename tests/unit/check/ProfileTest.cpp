// Profiles as tables, JSON, flame graphs and rooflines.
#include "kiln/check/profile.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"
#include "kiln/check/report.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

ProfiledInstruction instruction(unsigned line, const std::string &text) {
  ProfiledInstruction one;
  one.ptx_line = static_cast<int>(line) + 100;
  one.where = SourceLine("a.cu", line);
  one.text = text;
  one.counts[Count::executions] = 4;
  one.counts[Count::threads] = one.counts[Count::threads_on] = 128;
  return one;
}

/// A load of two lines, one with a conflict, and an mma.
Profile sample() {
  Profile profile;
  profile.kernel = "<k&1>";
  profile.launches = {1};
  profile.device = DeviceDescription::h200();
  profile.occupancy = {.by_threads = 8,
                       .by_shared = 2,
                       .by_registers = 4,
                       .by_ctas = 32,
                       .ctas_per_sm = 2,
                       .limit = "shared memory",
                       .registers = 64,
                       .registers_from = "ptxas",
                       .warps_per_cta = 8,
                       .max_warps_per_sm = 64,
                       .ctas = 300,
                       .resident = 264};
  profile.traffic = {.requested_read = 4096,
                     .requested_written = 1024,
                     .read_once = 1024,
                     .read_again = 512,
                     .written = 512};
  ProfiledInstruction load = instruction(12, "ld.shared.b32 %r1, [%r0];");
  load.counts[Count::shared_requests] = 4;
  load.counts[Count::shared_wavefronts] = 32;
  load.counts[Count::shared_wavefronts_ideal] = 4;
  load.access = {.kind = AccessKind::load,
                 .bytes = 4,
                 .alignment = 128,
                 .stride = 32,
                 .worst_wavefronts = 8,
                 .worst_ideal = 1};
  load.stack = {{"inner", SourceLine("a.cu", 12)},
                {"k", SourceLine("a.cu", 40)}};
  ProfiledInstruction product = instruction(13, "mma.sync ...;");
  product.counts[Count::operations] = 16384;
  product.counts[Count::tensor_operations] = 16384;
  product.tensor["m16n8k16.f32.bf16.bf16.f32"] = 4;
  profile.instructions = {load, instruction(12, "add.u32 %r0, %r0, 1;"),
                          product};
  return profile;
}

TEST(ProfileCounters, HaveARowEach) {
  ASSERT_EQ(profile_counters().size(), kCounts);
  for (std::size_t i = 0; i < kCounts; ++i)
    EXPECT_EQ(static_cast<std::size_t>(profile_counters()[i].count), i);
  EXPECT_EQ(static_cast<std::size_t>(Count::wait_time) + 1, kCounts);
}

TEST(ProfileCounters, AreInThePage) {
  std::string page =
      "| counter | Nsight Compute | what is counted |\n|---|---|---|\n";
  for (const ProfileCounter &row : profile_counters()) {
    std::string metric = row.metric;
    page += fmt::format("| `{}` | {} | {} |\n", row.name,
                        metric.empty() ? "" : "`" + metric + "`", row.help);
  }
  EXPECT_THAT(read_file(KILN_SOURCE_DIR "/docs/profile.md"), HasSubstr(page))
      << "put this into docs/profile.md:\n"
      << page;
}

TEST(ProfileTable, SaysWhatLimitsAndWhatCosts) {
  Profile profile = sample();
  std::string text = to_table({&profile, 1});
  for (const char *part :
       {"profile    <k&1>, grid 1x1x1, block 1x1x1 on NVIDIA H200\n",
        "occupancy  2 CTAs on each SM, 25.0% of its warps, limited by shared "
        "memory: threads 8, shared memory 2, registers 4 (64 per thread by "
        "ptxas), CTAs 32\n",
        "waves      1.14: 300 CTAs, 264 at once; the last wave leaves 86.4% of "
        "the device idle\n",
        "memory     1.5 KiB read, 1.0 KiB of it once and 512 bytes more than "
        "once (2.5 KiB asked for again); 512 bytes written\n",
        "intensity  8.0 FLOP for each byte that has to move, 3.2 for each that "
        "is requested\n",
        "tensor     4 of m16n8k16.f32.bf16.bf16.f32\n",
        "line     warps  lanes  wavefronts  n-way   FLOP\n"
        "a.cu:12      8   32.0          32    8.0\n"
        "a.cu:13      4   32.0                     16384\n",
        "hint       a.cu:12: 8-way bank conflict: each request takes 8 "
        "wavefronts where 1 would do; consecutive lanes are 32 bytes apart; "
        "pad or swizzle the rows\n"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(ProfileTable, SortsAndDivides) {
  Profile profile = sample();
  std::string text = to_table(
      {&profile, 1},
      {.by = ProfileBy::instruction, .sort = "operations", .rows = 1});
  EXPECT_THAT(text, HasSubstr("a.cu:13      4   32.0  16384  mma.sync ...;\n"
                              "and 2 more\n"));
  Profile both[] = {profile, profile};
  EXPECT_THAT(to_table(both, {.by = ProfileBy::kernel}),
              HasSubstr("<k&1>      12   32.0          32    8.0  16384\n"
                        "<k&1>      12   32.0          32    8.0  16384\n"));
  try {
    to_table({&profile, 1}, {.sort = "luck"});
    FAIL() << "there is a counter named luck";
  } catch (const UserError &error) {
    EXPECT_THAT(error.what(),
                HasSubstr("there is no counter 'luck'; there are executions, "
                          "threads, "));
  }
  EXPECT_THROW(parse_profile_by("luck"), UserError);
}

TEST(ProfileHints, AreCertainOrAreNotThere) {
  Profile profile = sample();
  // Some requests have no conflict: nothing is said.
  profile.instructions[0].counts[Count::shared_wavefronts] = 31;
  EXPECT_TRUE(hints(profile).empty());
}

TEST(ProfileJson, HasItsForm) {
  Profile profile = sample();
  json value = json::parse(to_json({&profile, 1}));
  EXPECT_EQ(value["version"], kProfileVersion);
  const json &one = value["profiles"][0];
  EXPECT_EQ(one["occupancy"]["limit"], "shared memory");
  EXPECT_EQ(one["traffic_bytes"]["read_again"], 512);
  EXPECT_EQ(one["lines"][0]["counts"]["executions"], 8);
  EXPECT_EQ(one["instructions"][0]["access"]["stride"], 32);
  EXPECT_EQ(one["instructions"][0]["stack"][1]["function"], "k");
  EXPECT_FALSE(one["instructions"][1]["counts"].contains("operations"));
  EXPECT_EQ(one["hints"][0]["line"], 12);
}

TEST(ProfileJson, IsInTheReport) {
  LaunchResult result;
  result.profile = std::make_shared<Profile>(sample());
  Report report;
  ExploredRun run{.launches = {result}};
  report.add({.kernel = "k"}, {.runs = {run, run}});
  report.add({.kernel = "k"}, {.runs = {run}});
  json value = json::parse(report.to_json());
  // One kernel, one shape; and of two interleavings the first.
  ASSERT_EQ(value["profiles"].size(), 1u);
  EXPECT_EQ(value["profiles"][0]["launches"], json({1, 2}));
  EXPECT_EQ(value["profiles"][0]["counts"]["executions"], 24);
  EXPECT_FALSE(json::parse(Report().to_json()).contains("profiles"));
}

TEST(Profile, AddsUp) {
  std::vector<Profile> all;
  add_profile(all, sample());
  add_profile(all, sample());
  Profile other = sample();
  other.grid = {2, 1, 1};
  add_profile(all, other);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].total()[Count::executions], 24u);
  EXPECT_EQ(all[0].traffic.written, 1024u);
  EXPECT_EQ(all[0].instructions.size(), 3u);
}

TEST(ProfileSpeedscope, HasAGraphForEachCounter) {
  Profile profile = sample();
  json value = json::parse(to_speedscope({&profile, 1}));
  ASSERT_EQ(value["profiles"].size(), 3u); // executions, wavefronts, operations
  const json &graph = value["profiles"][1];
  EXPECT_EQ(graph["name"], "shared_wavefronts");
  EXPECT_EQ(graph["endValue"], 32);
  std::vector<std::string> stack;
  for (std::size_t frame : graph["samples"][0])
    stack.push_back(value["shared"]["frames"][frame]["name"]);
  EXPECT_THAT(stack, testing::ElementsAre(
                         "<k&1>", "k", "inner", "a.cu:12",
                         "ld.shared.b32 %r1, [%r0]; (PTX line 112)"));
  EXPECT_EQ(graph["samples"].size(), graph["weights"].size());
}

TEST(ProfileRoofline, DrawsTheDeviceAndEscapesNames) {
  Profile profile = sample();
  std::string svg = to_roofline({&profile, 1});
  EXPECT_THAT(svg, HasSubstr("memory: 4800 GB/s"));
  EXPECT_THAT(svg, HasSubstr("tensor cores, f16 and bf16: 989.4 TFLOP/s"));
  EXPECT_THAT(svg, HasSubstr("&lt;k&amp;1&gt;: 3.2 FLOP for a requested byte, "
                             "8.0 for a compulsory one"));
  EXPECT_THAT(svg, Not(HasSubstr("<k&1>")));
  EXPECT_THAT(svg, Not(HasSubstr("f32:"))); // nothing but tensor cores
  // 132 SMs, 128 fma, 1.98 GHz.
  profile.instructions[1].counts[Count::operations] = 1;
  EXPECT_THAT(to_roofline({&profile, 1}), HasSubstr("f32: 66.91 TFLOP/s"));
  EXPECT_THAT(to_roofline({}), HasSubstr("not known"));
}

TEST(ProfileFiles, AreWhatTheirNamesSay) {
  Profile profile = sample();
  auto saved = [&](const std::string &name) {
    std::string path =
        (std::filesystem::path(testing::TempDir()) / name).string();
    save_profile({&profile, 1}, path);
    std::string text = read_file(path);
    std::filesystem::remove(path);
    return text;
  };
  EXPECT_EQ(saved("p.json"), to_json({&profile, 1}));
  EXPECT_EQ(saved("p.speedscope.json"), to_speedscope({&profile, 1}));
  EXPECT_EQ(saved("p.svg"), to_roofline({&profile, 1}));
  EXPECT_THAT(saved("p.txt"), HasSubstr("occupancy  2 CTAs"));
}

} // namespace
} // namespace kiln
