// Seeds: read the kernels, one entry each.
#include "fuzz/Seeds.h"
#include "golden/Probes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

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

static std::vector<fs::path> filesIn(const std::string &folder) {
  std::vector<fs::path> paths;
  for (const auto &entry : fs::directory_iterator(std::string(KILN_SOURCE_DIR) +
                                                  "/tests/" + folder))
    if (entry.path().extension() == ".ptx")
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
static void addEntries(std::vector<Seed> &seeds, const fs::path &path) {
  std::string text = readFile(path);
  Statements all = readStatements(text);
  auto isEntry = [&](std::size_t i) {
    return all[i].kind == Statement::Kind::head && all[i].has(".entry");
  };
  for (std::size_t chosen = 0; chosen < all.size(); ++chosen) {
    if (!isEntry(chosen))
      continue;
    Seed seed{path.filename().string(), {}, Launch::ofText(text)};
    auto &grid = seed.launch.grid, &block = seed.launch.block;
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
      seed.statements.push_back(all[i++]);
    }
    seed.launch.smemBytes = isDynamic ? kDynamicSmemBytes : 0;
    seeds.push_back(std::move(seed));
  }
}

/// One of each text: probes differ in their numbers too.
static void addProbes(std::vector<Seed> &seeds) {
  std::set<std::string> known;
  for (const golden::Probe &probe : golden::probes()) {
    if (!known.insert(probe.ptx).second)
      continue;
    Seed seed{probe.group + "." + probe.name, readStatements(probe.ptx), {}};
    seed.launch.grid[0] = std::min(probe.ctas, 4U);
    seed.launch.block[0] = probe.threads;
    seed.launch.cluster[0] = probe.cluster;
    seed.launch.smemBytes = probe.smemBytes;
    if (!probe.maps.empty())
      seed.launch.map = probe.maps.front().map;
    seeds.push_back(std::move(seed));
  }
}

Seeds readSeeds() {
  Seeds seeds;
  for (const char *folder : {"corpus", "broken/kernels", "cli/sim"})
    for (const fs::path &path : filesIn(folder))
      addEntries(seeds.kernels, path);
  addProbes(seeds.probes);
  return seeds;
}

} // namespace kiln::fuzz
