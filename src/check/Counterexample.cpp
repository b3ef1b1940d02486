// Counterexample: the choices that lead to an error, as a JSON file. Paths in
// it are relative to its folder.
#include "kiln/base/file.h"
#include "kiln/check/prove.h"
#include "support/Error.h"
#include "support/text/JsonNode.h"

#include <filesystem>

namespace kiln {

namespace fs = std::filesystem;

/// What the file says it is.
static constexpr const char *kFormat = "kiln-counterexample";
static constexpr int kVersion = 1;

/// Turns of one process that follow each other are one pair.
static nlohmann::json turnsOf(const std::vector<std::string> &path) {
  auto turns = nlohmann::json::array();
  for (std::size_t first = 0; first < path.size();) {
    std::size_t last = first;
    while (last < path.size() && path[last] == path[first])
      ++last;
    turns.push_back(nlohmann::json::array({path[first], last - first}));
    first = last;
  }
  return turns;
}

void Counterexample::save(const std::string &file) const {
  fs::path folder = fs::absolute(file).parent_path();
  auto relative = [&](const std::string &path) {
    return fs::absolute(path).lexically_relative(folder).string();
  };
  nlohmann::json json = {{"format", kFormat},
                         {"version", kVersion},
                         {"ptx", nlohmann::json::array()},
                         {"launch_file", relative(launch_path)},
                         {"launch", launch},
                         {"cluster", cluster},
                         {"turns", turnsOf(path)}};
  for (const std::string &ptx : ptx_paths)
    json["ptx"].push_back(relative(ptx));
  write_file(file, {json.dump(1), "\n"});
}

/// A counterexample has as many turns at most.
static constexpr std::uint64_t kMostTurns = 100'000'000;

Counterexample Counterexample::load(const std::string &file) {
  nlohmann::json json = readJson(file);
  JsonNode root(json, file);
  root.checkKeys({"format", "version", "ptx", "launch_file", "launch",
                  "cluster", "turns"});
  root.at("format").choice<int>({{kFormat, 0}});
  root.at("version").choice<int>({{kVersion, 0}});
  fs::path folder = fs::absolute(file).parent_path();
  auto pathOf = [&](const JsonNode &node) {
    return (folder / node.text("the path of a file")).lexically_normal();
  };
  Counterexample example;
  for (const JsonNode &ptx : root.at("ptx").list("paths of PTX files"))
    example.ptx_paths.push_back(pathOf(ptx).string());
  example.launch_path = pathOf(root.at("launch_file")).string();
  example.launch = root.at("launch").whole(0, kMostTurns);
  example.cluster = root.at("cluster").whole(0, kMostTurns);
  std::uint64_t turns = 0;
  for (const JsonNode &turn : root.at("turns").list("[who, how often]")) {
    std::vector<JsonNode> pair = turn.list("who goes, and how often");
    if (pair.size() != 2)
      turn.refuse("who goes, and how often: [\"cta0.warp1.lane0\", 3]");
    std::uint64_t count = pair[1].whole(1, kMostTurns - turns);
    turns += count;
    example.path.insert(example.path.end(), count,
                        pair[0].text("who goes: \"cta0.warp1.lane0\""));
  }
  return example;
}

} // namespace kiln
