// Seeds: kernels, one entry each, and files as Kiln writes them.
#include "fuzz/Seeds.h"
#include "fuzz/Launch.h"
#include "fuzz/Statements.h"
#include "golden/Probes.h"
#include "kiln/run/kernel.h"
#include "sim/units/Units.h"
#include "support/text/Npy.h"
#include "unit/sim/program/SyntaxSamples.h"
#ifdef KILN_FUZZ_PRODUCTS
#include "kiln/kernels/tuning.h"
#endif

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

namespace kiln::fuzz {

namespace fs = std::filesystem;

/// Enough for the tiles of every seed, and little to clear.
static constexpr std::uint32_t kDynamicSmemBytes = 40 << 10;

static std::string readFile(const fs::path &path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw std::runtime_error("cannot read " + path.string());
  return text.str();
}

static std::vector<fs::path> filesIn(const std::string &folder,
                                     const std::string &kind) {
  std::vector<fs::path> paths;
  for (const auto &entry : fs::directory_iterator(std::string(KILN_SOURCE_DIR) +
                                                  "/tests/" + folder))
    if (entry.path().extension() == kind)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The number behind a directive of an entry; 0: it has none.
static std::uint32_t directiveOf(const Statement &head, std::string_view name) {
  for (std::size_t i = 0; i + 1 < head.tokens.size(); ++i)
    if (head.tokens[i].text == name)
      return static_cast<std::uint32_t>(std::stoul(head.tokens[i + 1].text));
  return 0;
}

/// The module with each of its entries alone: what is not run need not be read
/// ten thousand times.
static void addEntries(std::vector<std::string> &seeds, const fs::path &path) {
  std::string text = readFile(path);
  Statements all = readStatements(text);
  auto isEntry = [&](std::size_t i) {
    return all[i].kind == Statement::Kind::head && all[i].has(".entry");
  };
  for (std::size_t chosen = 0; chosen < all.size(); ++chosen) {
    if (!isEntry(chosen))
      continue;
    Statements statements;
    Launch launch = Launch::ofText(text);
    auto &grid = launch.grid, &block = launch.block;
    for (const char *name : {".reqntid", ".maxntid"})
      block[0] = std::max(directiveOf(all[chosen], name), block[0]);
    grid[0] = std::max(directiveOf(all[chosen], ".reqnctapercluster"), grid[0]);
    bool isDynamic = false;
    for (std::size_t i = 0; i < all.size();) {
      if (isEntry(i) && i != chosen) {
        i = endOfFunction(all, i);
        continue;
      }
      isDynamic |= all[i].has(".extern") && all[i].has(".shared");
      statements.push_back(all[i++]);
    }
    launch.smemBytes = isDynamic ? kDynamicSmemBytes : 0;
    seeds.push_back(launch.toLine() + writeStatements(statements));
  }
}

/// One of each text: probes differ in their numbers too.
static void addProbes(std::vector<std::string> &seeds) {
  std::set<std::string> known;
  for (const golden::Probe &probe : golden::probes()) {
    if (!known.insert(probe.ptx).second)
      continue;
    Launch launch;
    launch.grid[0] = std::min(probe.ctas, 4U);
    launch.block[0] = probe.threads;
    launch.cluster[0] = probe.cluster;
    launch.smemBytes = probe.smemBytes;
    if (!probe.maps.empty())
      launch.map = probe.maps.front().map;
    seeds.push_back(launch.toLine() +
                    writeStatements(readStatements(probe.ptx)));
  }
}

static std::vector<std::string> kernels() {
  std::vector<std::string> seeds;
  for (const char *folder : {"corpus", "broken/kernels", "cli/sim"})
    for (const fs::path &path : filesIn(folder, ".ptx"))
      addEntries(seeds, path);
  addProbes(seeds);
  return seeds;
}

static std::vector<std::string> fatbins() {
  std::vector<std::string> seeds;
  for (const fs::path &path : filesIn("unit/cudart/fatbins", ".fatbin"))
    seeds.push_back(readFile(path));
  seeds.push_back(readFile(filesIn("cli/sim", ".ptx").front()));
  return seeds;
}

/// y[i] = x[i] for n numbers, with everything that a contract can have.
static std::string savedKernel() {
  Kernel kernel{"copy",
                "sm_90a",
                R"(.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 smem[];
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n)
{
.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x; setp.ge.u32 %p, %r2, %r1; @%p ret;
mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
ld.global.b32 %r1, [%rd1]; st.global.b32 [%rd2], %r1;
ret;
}
)",
                {}};
  using Argument = ArgumentSpec::Kind;
  using Parameter = ParameterSpec::Kind;
  Dim n = Dim::argument("n");
  kernel.contract.arguments = {
      {.name = "x", .type = Type::f32, .shape = {n}},
      {.name = "y", .type = Type::f32, .shape = {n, 1}, .is_output = true},
      {.name = "n", .kind = Argument::scalar, .type = Type::i32}};
  kernel.contract.parameters = {{.kind = Parameter::buffer, .argument = 0},
                                {.kind = Parameter::buffer, .argument = 1},
                                {.kind = Parameter::scalar, .argument = 2}};
  kernel.contract.grid = {ceil_div(n, 32), 1, 1};
  kernel.contract.block = {32, 1, 1};
  kernel.contract.dynamic_smem_bytes = 1024;
  kernel.contract.shared_objects = {{.name = "full",
                                     .element_bytes = 8,
                                     .count = 2,
                                     .file = "a.cpp",
                                     .line = 3}};
  return kernel.serialize();
}

static std::vector<std::string> arrays() {
  return {npyHeader(Type::f32, {4}) + std::string(16, '\1'),
          npyHeader(Type::u8, {2, 3}) + std::string(6, '\2'),
          npyHeader(Type::bf16, {1}) + std::string(2, '\3')};
}

#ifdef KILN_FUZZ_PRODUCTS
static std::vector<std::string> databases() {
  fs::path path = fs::temp_directory_path() /
                  ("kiln-seed-" + std::to_string(::getpid()) + ".db");
  {
    TuningDatabase database(path.string(), TuningDatabase::Access::write);
    database.put({.device = "NVIDIA H200",
                  .kernels = "gemm",
                  .problem = "64x64x64 f16 -> f32 tn",
                  .schedule = "multistage 64x64x64 stages=2",
                  .us = 2.5});
  }
  std::string bytes = readFile(path);
  for (const char *end : {"", "-wal", "-shm"})
    fs::remove(path.string() + end);
  return {bytes};
}
#endif

std::vector<std::string> seedsOf(std::string_view target) {
  if (target == "ptx")
    return kernels();
  if (target == "fatbin")
    return fatbins();
  if (target == "saved_kernel")
    return {savedKernel()};
  if (target == "npy")
    return arrays();
#ifdef KILN_FUZZ_PRODUCTS
  if (target == "database")
    return databases();
#endif
  return {};
}

std::string dictionaryOf(std::string_view target) {
  std::set<std::string> words;
  if (target == "ptx" || target == "debug_info") {
    for (const sim::Instruction &row : sim::instructionSet().rows())
      words.insert(row.opcode);
    for (const char *sample : sim::kSyntaxSamples)
      for (const Statement &statement : readStatements(sample))
        for (const Token &token : statement.tokens)
          if (token.text.starts_with('.') || token.text.starts_with('%'))
            words.insert(token.text);
    words.insert({".loc", ".file", "inlined_at", "function_name", ".section",
                  ".entry", ".func", ".reg", ".shared", ".global", ".param"});
  }
  std::string text;
  for (const std::string &word : words)
    text += "\"" + word + "\"\n";
  return text;
}

} // namespace kiln::fuzz
