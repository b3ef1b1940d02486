// Speedscope: flame graphs for speedscope.app, one for each of a few counters:
// kernel, inlined functions, line, instruction.
#include "check/profile/Rows.h"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln {

using nlohmann::ordered_json;

namespace {
/// The frames of a file, each once.
class Frames {
public:
  std::size_t add(const std::string &name, const SourceLine &where = {}) {
    auto key = std::tuple(name, where.file, where.line);
    auto [at, isNew] = known_.try_emplace(key, list.size());
    if (isNew) {
      list.push_back({{"name", name}});
      if (where.is_known() && where.file != "PTX") {
        list.back()["file"] = where.file;
        list.back()["line"] = where.line;
      }
    }
    return at->second;
  }

  ordered_json list = ordered_json::array();

private:
  std::map<std::tuple<std::string, std::string, unsigned>, std::size_t> known_;
};
} // namespace

/// From the kernel inwards.
static std::vector<std::size_t> stackOf(Frames &frames, const Profile &profile,
                                        const ProfiledInstruction &one) {
  std::vector<std::size_t> stack = {frames.add(profile.kernel)};
  for (auto frame = one.stack.rbegin(); frame != one.stack.rend(); ++frame)
    if (!frame->function.empty())
      stack.push_back(frames.add(frame->function, frame->where));
  stack.push_back(frames.add(placeOf(one), one.where));
  stack.push_back(frames.add(
      fmt::format("{} (PTX line {})", one.text, one.ptx_line), one.where));
  return stack;
}

std::string to_speedscope(std::span<const Profile> profiles) {
  Frames frames;
  ordered_json graphs = ordered_json::array();
  for (Count count :
       {Count::executions, Count::global_sectors, Count::copy_sectors,
        Count::shared_wavefronts, Count::wait_time, Count::operations}) {
    ordered_json samples = ordered_json::array(),
                 weights = ordered_json::array();
    std::uint64_t end = 0;
    for (const Profile &profile : profiles)
      for (const ProfiledInstruction &one : profile.instructions)
        if (std::uint64_t weight = one.counts[count]) {
          samples.push_back(stackOf(frames, profile, one));
          weights.push_back(weight);
          end += weight;
        }
    // Executions are there even where nothing was executed: a file has a graph.
    if (end || count == Count::executions)
      graphs.push_back(
          {{"type", "sampled"},
           {"name", profile_counters()[static_cast<std::size_t>(count)].name},
           {"unit", "none"},
           {"startValue", 0},
           {"endValue", end},
           {"samples", samples},
           {"weights", weights}});
  }
  ordered_json value = {
      {"$schema", "https://www.speedscope.app/file-format-schema.json"},
      {"exporter", "kiln " KILN_VERSION},
      {"name", "kiln profile"},
      {"activeProfileIndex", 0},
      {"shared", ordered_json::object({{"frames", frames.list}})},
      {"profiles", graphs}};
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace kiln
