// Endless: the loops of kernels, each made to go round for ever.
//
// Whatever such a loop waits for, reads or writes, the launch ends with an
// error within seconds; not when it has executed as much as it may.
#include "broken/Mutants.h"
#include "broken/MutationSubjects.h"

namespace kiln {
namespace {

/// Seconds that an answer may take where others use the machine too.
constexpr double kPatienceS = 60;

/// The label that a line jumps to, and whether it always does; empty: none.
std::pair<std::string, bool> jumpOf(const std::string &line) {
  static const std::regex form(
      R"(^\s*(@!?[%\w]+\s+)?bra(?:\.uni)?\s+([$\w]+);)");
  std::smatch parts;
  if (!std::regex_search(line, parts, form))
    return {};
  return {parts[2], !parts[1].matched};
}

/// Whether a jump's label stands before it: in the block of braces that it is
/// in, or in one around that.
bool isBehind(const std::vector<std::string> &lines, std::size_t first,
              std::size_t jump, const std::string &label) {
  auto hasLabel = [&](std::size_t i) {
    return trimmed(lines[i]).starts_with(label + ":");
  };
  int depth = 0;
  for (std::size_t i = jump; i < lines.size() && depth >= 0; ++i) {
    depth += trimmed(lines[i]) == "{";
    depth -= trimmed(lines[i]) == "}";
    if (depth == 0 && hasLabel(i))
      return false;
  }
  for (std::size_t i = first; i < jump; ++i)
    if (hasLabel(i))
      return true;
  return false;
}

/// The line of a jump that a loop is left by, without its condition: nothing
/// where it is none. "@p bra BEGIN" jumps always; "@p bra END; bra BEGIN" is
/// never left.
std::optional<std::string> endless(const std::vector<std::string> &lines,
                                   std::size_t first, std::size_t i) {
  auto [label, isAlways] = jumpOf(lines[i]);
  if (label.empty() || isAlways)
    return std::nullopt;
  if (isBehind(lines, first, i, label))
    return "bra " + label + ";";
  auto [next, isNextAlways] = jumpOf(lines[i + 1]);
  if (isNextAlways && isBehind(lines, first, i, next))
    return "";
  return std::nullopt;
}

/// The id of the error that a launch ends with, which comes soon; empty: none.
std::string errorOf(const Subject &subject, const std::string &ptx) {
  auto device = open_sim({.device = sim_device_for(ptx),
                          .threads = 1,
                          .time_limit_s = kPatienceS});
  Arguments arguments{*device};
  subject.fill(arguments);
  LaunchResult result =
      device->launch({.name = subject.file.empty() ? "" : subject.name,
                      .ptx = ptx,
                      .grid = subject.grid,
                      .block = subject.block,
                      .cluster = subject.cluster,
                      .dynamic_smem_bytes = subject.smemBytes,
                      .parameters = arguments.list});
  return result.is_finished ? "" : result.findings.back().id;
}

class Endless : public testing::TestWithParam<Subject> {};

TEST_P(Endless, EachLoopIsReported) {
  const Subject &subject = GetParam();
  std::vector<std::string> lines = linesOf(subject);
  auto [first, last] = rangeOf(subject, lines);
  for (std::size_t i = first; i + 1 <= last; ++i) {
    std::optional<std::string> line = endless(lines, first, i);
    if (!line)
      continue;
    std::vector<std::string> broken = lines;
    broken[i] = *line;
    std::string id = errorOf(subject, joined(broken));
    if (id.empty()) { // nobody comes there
      broken[i] = "trap;";
      EXPECT_EQ(errorOf(subject, joined(broken)), "")
          << subject.title() << ", line " << i + 1 << ": " << trimmed(lines[i]);
      continue;
    }
    // A counter that overflows is out of bounds in the end.
    EXPECT_THAT(id,
                testing::Not(testing::AnyOf("time-limit", "instruction-limit")))
        << subject.title() << ", line " << i + 1 << ": " << trimmed(lines[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Endless, testing::ValuesIn(allSubjects()),
                         [](const auto &info) { return info.param.title(); });

} // namespace
} // namespace kiln
