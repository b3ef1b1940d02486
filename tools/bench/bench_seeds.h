// bench_seeds: the tables of the programs that Kiln began with, measured again:
// the multistage and the warp-specialized product of MLIR's Hopper tutorial,
// and the tables of Gluon's on WGMMA.
#pragma once

#include <kiln/run/compile.h>
#include <kiln/measure/cublas.h>
#include <kiln/kernels/gemm.h>
#include <kiln/measure/measure.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::cli {

/// One line of a table: a kernel.
struct SeedRow {
  std::string name;
  std::function<Module()> build;
};

/// Rows that compute the same product, and are measured in turns.
struct SeedGroup {
  std::string table;
  GemmProblem problem;
  std::vector<SeedRow> rows;
  bool has_cublas = true; ///< is measured beside them
};

/// "stages, cublas, small-mma, blocked or pipelined"
std::string seed_table_names();
/// The tables of these names; of none, all. Throws UserError that lists them.
std::vector<SeedGroup> seed_groups(const std::vector<std::string> &names);

/// What is needed to measure them.
struct SeedBench {
  Device &device;
  CublasLt *cublas; ///< null where there is none
  Stopwatch &watch;
  BenchPlan plan;
  bool is_verified = true;
};

/// What a group came to.
struct SeedResult {
  struct Row {
    std::string name;
    Samples us; ///< empty: it was not timed
    std::string note = {};
    bool is_wrong = false;
  };
  std::string table, problem;
  double operations = 0;
  std::vector<Row> rows; ///< with cublaslt last, where it is there
};
SeedResult measure(const SeedGroup &group, const SeedBench &bench);

/// The rows without a time.
void print(const SeedGroup &group);
void print(const SeedResult &result);
/// As JSON, with what was measured on what.
void write_seeds(const std::string &path, const SeedBench &bench,
                 const std::vector<SeedResult> &results);

} // namespace kiln::cli
