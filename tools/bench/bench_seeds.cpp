// bench_seeds: which kernels the tables have, and how long they take.
#include "bench_seeds.h"
#include "bench_report.h"
#include "kernels/gemm_sets.h"
#include "console/say.h"
#include "support/Date.h"
#include "tile_configs.h"

#include "tutorial/lessons.h"

#include <kiln/base/file.h>
#include <kiln/kernels/gemm_reference.h>

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {

namespace {

/// f16 into f32, all row-major, as the programs have it.
GemmProblem row_major(int m, int n, int k) {
  return {.m = m, .n = n, .k = k, .layout = GemmLayout::tt};
}

SeedRow row_of(std::string name, const GemmProblem &problem,
               const GemmSchedule &schedule) {
  return {std::move(name),
          [=] { return build_gemm(problem, fit(problem, schedule)); }};
}

/// 7296 x 256 x K: what more slots bring, from one to as many as fit or K has
/// tiles for.
std::vector<SeedGroup> stages_table() {
  std::vector<SeedGroup> groups;
  for (int k : {128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    SeedGroup group{"stages", row_major(7296, 256, k), {}};
    GemmSchedule schedule{.kind = GemmKind::multistage};
    int most =
        std::min(max_gemm_stages(group.problem, schedule), k / schedule.tile_k);
    for (schedule.stages = 1; schedule.stages <= most; ++schedule.stages)
      group.rows.push_back(
          row_of(fmt::format("multistage, {} stage{}", schedule.stages,
                             schedule.stages == 1 ? "" : "s"),
                 group.problem, schedule));
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Both kernels at their tile of 128x128x64, three slots.
std::vector<SeedGroup> cublas_table() {
  std::vector<SeedGroup> groups;
  for (int size : {1024, 2048, 4096, 8192}) {
    SeedGroup group{"cublas", row_major(size, size, size), {}};
    for (GemmKind kind : {GemmKind::multistage, GemmKind::warp_specialized})
      group.rows.push_back(row_of(std::string(name(kind)), group.problem,
                                  {.kind = kind, .stages = 3}));
    groups.push_back(std::move(group));
  }
  return groups;
}

/// One product of one tile, plus C.
std::vector<SeedGroup> small_mma_table() {
  constexpr int kM = 64, kN = 128, kK = 128;
  SeedGroup group{"small-mma", row_major(kM, kN, kK), {}, false};
  group.problem.has_beta = true;
  for (bool is_a_in_registers : {false, true})
    for (int n : {16, 32, 64, 128}) {
      lessons::WgmmaOptions options{.tile_m = kM,
                                    .tile_n = kN,
                                    .tile_k = kK,
                                    .warpgroups = 1,
                                    .instruction_n = n,
                                    .is_a_in_registers = is_a_in_registers,
                                    .starts_from_c = true,
                                    .keeps_one_in_flight = false};
      group.rows.push_back(
          {fmt::format("A in {}, N {}",
                       is_a_in_registers ? "registers" : "shared memory", n),
           [=] { return lessons::gemm_wgmma({kM, kN, kK}, options); }});
    }
  return {group};
}

/// The blocks of find_configs, with each product awaited (one buffer) or one in
/// flight (two).
std::vector<SeedGroup> blocks_table(const char *table, int buffers) {
  constexpr int kM = 8192, kN = 8192, kK = 16384;
  SeedGroup group{table, row_major(kM, kN, kK), {}};
  std::vector<TileConfig> configs;
  for (int occupancy : {1, 2})
    for (const TileConfig &one :
         find_configs(occupancy, buffers, f16, DeviceDescription::h200()))
      configs.push_back(one);
  if (buffers == 2) // the tutorial's own addition
    configs.push_back({64, 256, 128, 4, 256, 2});
  for (const TileConfig &one : configs) {
    lessons::WgmmaOptions options{.tile_m = one.block_m,
                                  .tile_n = one.block_n,
                                  .tile_k = one.block_k,
                                  .warpgroups = one.warps / 4,
                                  .instruction_n = one.instruction_n,
                                  .keeps_one_in_flight = buffers == 2};
    group.rows.push_back(
        {fmt::format("{}x{}x{}, {} warps, N {}, occupancy {}", one.block_m,
                     one.block_n, one.block_k, one.warps, one.instruction_n,
                     one.occupancy),
         [=] { return lessons::gemm_wgmma({kM, kN, kK}, options); }});
  }
  return {group};
}

struct Table {
  std::string_view name;
  std::vector<SeedGroup> (*groups)();
};
constexpr Table kTables[] = {
    {"stages", stages_table},
    {"cublas", cublas_table},
    {"small-mma", small_mma_table},
    {"blocked", [] { return blocks_table("blocked", 1); }},
    {"pipelined", [] { return blocks_table("pipelined", 2); }}};

} // namespace

std::string seed_table_names() {
  std::vector<std::string_view> names;
  for (const Table &table : kTables)
    names.push_back(table.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<SeedGroup> seed_groups(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (std::ranges::find(kTables, name, &Table::name) == std::end(kTables))
      throw UserError(fmt::format("'{}' is not a table of the seeds; there are "
                                  "{}",
                                  name, seed_table_names()));
  std::vector<SeedGroup> all;
  for (const Table &table : kTables)
    if (names.empty() || std::ranges::find(names, table.name) != names.end())
      for (SeedGroup &group : table.groups())
        all.push_back(std::move(group));
  return all;
}

/// The contenders, each with the row it is for; one that cannot be built or is
/// wrong has a note instead.
static std::vector<Contender>
contenders_of(const SeedGroup &group, const SeedBench &bench, GemmSets &sets,
              std::deque<Kernel> &kernels, SeedResult &result) {
  std::vector<Contender> contenders;
  auto add = [&](const std::string &name, auto make) {
    result.rows.push_back({name, {}});
    SeedResult::Row &row = result.rows.back();
    try {
      Contender contender = make();
      if (bench.is_verified && !sets.verify(contender).ok) {
        row.note = "WRONG; not timed";
        row.is_wrong = true;
      } else {
        contenders.push_back(std::move(contender));
      }
    } catch (const UserError &error) {
      row.note = error.message();
    }
  };
  for (const SeedRow &row : group.rows)
    add(row.name, [&] {
      kernels.push_back(compile(row.build()));
      return sets.contender(row.name, kernels.back());
    });
  if (group.has_cublas && bench.cublas)
    add("cublaslt", [&] {
      return sets.contender("cublaslt",
                            bench.cublas->plans(sets.gemm()).front());
    });
  return contenders;
}

SeedResult measure(const SeedGroup &group, const SeedBench &bench) {
  ReferenceGemm gemm = reference_of(group.problem);
  gemm.beta = group.problem.has_beta ? 1 : 0;
  GemmSets sets(bench.device, gemm, group.problem.has_beta, 0);
  SeedResult result{
      group.table, group.problem.to_string(), sets.operations(), {}};
  std::deque<Kernel> kernels;
  std::vector<Contender> contenders =
      contenders_of(group, bench, sets, kernels, result);
  std::vector<Samples> samples =
      measure_rested(bench.watch, contenders, bench.plan);
  for (std::size_t i = 0; i < contenders.size(); ++i)
    std::ranges::find(result.rows, contenders[i].name, &SeedResult::Row::name)
        ->us = samples[i];
  return result;
}

void print(const SeedGroup &group) {
  say("\n{}: {}\n", group.table, group.problem.to_string());
  for (const SeedRow &row : group.rows)
    say("  {}\n", row.name);
  if (group.has_cublas)
    say("  cublaslt\n");
}

void print(const SeedResult &result) {
  say("\n{}: {}\n", result.table, result.problem);
  const SeedResult::Row &last = result.rows.back();
  bool has_cublas = last.name == "cublaslt" && !last.us.empty();
  for (const SeedResult::Row &row : result.rows) {
    if (row.us.empty()) {
      say("  {:<44} {}\n", row.name, row.note);
      continue;
    }
    double us = median(row.us);
    say("  {:<44} {:9.2f} us {:7.1f} TFLOP/s +-{:.1f}%", row.name, us,
        result.operations / us / 1e6, 50 * spread(row.us));
    if (has_cublas && &row != &last)
      say("  {:.3f} of cublaslt", median(last.us) / us);
    say("\n");
  }
  std::fflush(stdout);
}

void write_seeds(const std::string &path, const SeedBench &bench,
                 const std::vector<SeedResult> &results) {
  nlohmann::json json = {
      {"machine", bench.device.name()},
      {"driver", driver_version()},
      {"cublaslt", bench.cublas ? bench.cublas->version() : ""},
      {"kiln", version()},
      {"date", dateNow()},
      {"data", "normally distributed, deviation 1"},
      {"tables", nlohmann::json::array()}};
  for (const SeedResult &result : results) {
    nlohmann::json group = {{"table", result.table},
                            {"problem", result.problem},
                            {"operations", result.operations},
                            {"rows", nlohmann::json::array()}};
    for (const SeedResult::Row &row : result.rows) {
      nlohmann::json one = {{"name", row.name}};
      if (row.us.empty())
        one["note"] = row.note;
      else
        one.update({{"rested_us", row.us}, {"median_us", median(row.us)}});
      group["rows"].push_back(std::move(one));
    }
    json["tables"].push_back(std::move(group));
  }
  write_file(
      path, {json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace),
             "\n"});
}

} // namespace kiln::cli
