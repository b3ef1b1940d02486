// Launch: read the line of a launch, make its arguments, judge what it says.
#include "fuzz/Launch.h"
#include "fuzz/Target.h"
#include "kiln/base/error.h"
#include "kiln/check/report.h"
#include "ptx/Ast.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>
#include <sstream>

namespace kiln::fuzz {

/// More than a kernel needs to get anywhere, and little time.
static constexpr std::uint64_t kMaxInstructions = 6000;
static constexpr std::size_t kBufferBytes = 32 << 10;
static constexpr std::string_view kLaunchMark = "// launch ";

void setStrides(TensorMap &map) {
  map.strides_bytes.clear();
  std::uint64_t stride = static_cast<std::uint64_t>(size_bytes(map.type));
  for (std::size_t i = 0; i + 1 < map.dims.size(); ++i) {
    stride = (stride * map.dims[i] + 15) / 16 * 16;
    map.strides_bytes.push_back(stride);
  }
}

std::string Launch::toLine() const {
  static constexpr const char *kOrders[] = {"eager", "lazy", "random"};
  return fmt::format(
      "{}grid={} block={} cluster={} smem={} order={} seed={} checks={:d} "
      "stats={:d} timeline={:d} threads={} registers={} allow={} map={} "
      "dims={} "
      "box={} swizzle={}\n",
      kLaunchMark, fmt::join(grid, ","), fmt::join(block, ","),
      fmt::join(cluster, ","), smemBytes,
      kOrders[static_cast<int>(interleaving)], seed, hasChecks, hasStats,
      hasTimeline, threads, registers, fmt::join(allow, ","), name(map.type),
      fmt::join(map.dims, ","), fmt::join(map.box, ","),
      static_cast<int>(map.swizzle));
}

template <typename T> static void readNumbers(const std::string &text, T &to) {
  std::istringstream stream(text);
  std::size_t count = 0;
  for (std::string number; std::getline(stream, number, ','); ++count) {
    if constexpr (requires { to.resize(1); })
      to.resize(count + 1);
    if (count < to.size())
      to[count] = static_cast<typename T::value_type>(std::stoull(number));
  }
}

static void readWords(const std::string &text, std::vector<std::string> &to) {
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');)
    to.push_back(word);
}

static void readField(Launch &launch, const std::string &key,
                      const std::string &value) {
  auto number = [&] { return std::stoull(value); };
  if (key == "grid")
    readNumbers(value, launch.grid);
  else if (key == "block")
    readNumbers(value, launch.block);
  else if (key == "cluster")
    readNumbers(value, launch.cluster);
  else if (key == "smem")
    launch.smemBytes = static_cast<std::uint32_t>(number());
  else if (key == "order")
    launch.interleaving = parse_interleaving(value);
  else if (key == "seed")
    launch.seed = number();
  else if (key == "checks")
    launch.hasChecks = number() != 0;
  else if (key == "stats")
    launch.hasStats = number() != 0;
  else if (key == "timeline")
    launch.hasTimeline = number() != 0;
  else if (key == "threads")
    launch.threads = static_cast<int>(number());
  else if (key == "registers")
    launch.registers = static_cast<int>(number());
  else if (key == "allow")
    readWords(value, launch.allow);
  else if (key == "map")
    launch.map.type = parse_type(value);
  else if (key == "dims")
    readNumbers(value, launch.map.dims);
  else if (key == "box")
    readNumbers(value, launch.map.box);
  else if (key == "swizzle")
    launch.map.swizzle = static_cast<Swizzle>(number());
  else
    throw std::runtime_error("a launch has no '" + key + "'");
}

static Launch readLine(const std::string &text) {
  Launch launch;
  std::size_t begin = text.find(kLaunchMark);
  if (begin == std::string::npos)
    return launch;
  begin += kLaunchMark.size();
  std::istringstream words(text.substr(begin, text.find('\n', begin) - begin));
  for (std::string word; words >> word;) {
    std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      readField(launch, word.substr(0, equals), word.substr(equals + 1));
  }
  return launch;
}

/// A launch that ends, whatever the line says: it is no part of what is tested.
static Launch bounded(Launch launch) {
  for (auto *size : {&launch.grid, &launch.cluster})
    for (std::uint32_t &one : *size)
      one = std::min(one, 16U);
  launch.threads = std::clamp(launch.threads, 1, 4);
  launch.registers = std::clamp(launch.registers, 0, 255);
  std::erase_if(launch.allow, [](const std::string &id) {
    auto rows = explanations();
    return std::none_of(rows.begin(), rows.end(),
                        [&](const Explanation &row) { return row.id == id; });
  });
  return launch;
}

Launch Launch::ofText(const std::string &text) {
  try {
    return bounded(readLine(text));
  } catch (const std::exception &) {
    return {}; // bytes of the line itself were changed
  }
}

namespace {
/// The arguments of an entry, with the memory they point to.
class Arguments {
public:
  Arguments(Device &device, const Launch &launch)
      : device_(device), launch_(launch), random_(launch.seed) {}

  LaunchParameter of(const ptx::Variable &parameter) {
    if (parameter.bytes == 128)
      return {map()};
    if (parameter.bytes == 8)
      return {buffer(kBufferBytes)};
    if (parameter.bytes == 4)
      return {Scalar(static_cast<unsigned>(random_() % 97))};
    // A launch with more than that is refused, whatever the bytes are.
    std::vector<std::byte> bytes(
        std::min<std::uint64_t>(parameter.bytes, 1 << 16));
    for (std::byte &byte : bytes)
      byte = static_cast<std::byte>(random_() % 7);
    return {bytes};
  }

private:
  Device &device_;
  const Launch &launch_;
  std::mt19937_64 random_;
  std::vector<Buffer> mapped_; ///< that only a tensor map refers to

  Buffer buffer(std::size_t bytes) {
    Buffer made = device_.allocate(bytes);
    std::vector<std::uint64_t> words((bytes + 7) / 8);
    for (std::uint64_t &word : words)
      word = random_();
    device_.copy_in(made, words.data(), bytes);
    return made;
  }
  TensorMap map() {
    TensorMap made = launch_.map;
    setStrides(made);
    made.element_strides.assign(made.dims.size(), 1);
    std::uint64_t bytes =
        made.dims.back() *
        (made.strides_bytes.empty()
             ? static_cast<std::uint64_t>(size_bytes(made.type))
             : made.strides_bytes.back());
    mapped_.push_back(buffer(std::min<std::uint64_t>(bytes, 1 << 20)));
    made.address = mapped_.back().address();
    return made;
  }
};
} // namespace

static void checkError(const Error &error) {
  // A refused instruction has its line in the text. A launch has none, and what
  // finds no memory is named instead.
  bool hasLine = error.where().is_known();
  for (const char *word : {"line ", "launch", "not enough memory for ",
                           "the PTX has ", "parameter "})
    hasLine |= error.message().find(word) != std::string::npos;
  if (!hasLine)
    throw Misbehaviour{fmt::format("no line in the message: {}", error.what())};
}

static void judge(const LaunchResult &result, const std::string &text) {
  // Where a table names no file, an inlined line has none.
  bool hasLines = text.find("inlined_at") == std::string::npos;
  for (const Finding &finding : result.findings) {
    checkMessage(finding.to_string());
    if (hasLines && !finding.where.is_known())
      throw Misbehaviour{"no line in the finding: " + finding.to_string()};
  }
  checkMessage(result.to_string());
  kiln::Report report;
  report.add({}, kiln::Exploration{.runs = {{.launches = {result}}}});
  checkReport(report.to_json());
  checkReport(report.to_sarif());
  report.to_html();
  result.timeline.to_table();
}

static LaunchResult launchText(const std::string &text, const Launch &launch,
                               const ptx::Module &module) {
  auto device = open_sim({.interleaving = launch.interleaving,
                          .seed = launch.seed,
                          .checks = launch.hasChecks,
                          .threads = launch.threads,
                          .max_instructions = kMaxInstructions,

                          .registers_at_entry = launch.registers,
                          .stats = launch.hasStats,
                          .timeline = launch.hasTimeline,
                          .print = [](const std::string &) {}});
  LaunchDescription description{.ptx = text,
                                .grid = launch.grid,
                                .block = launch.block,
                                .cluster = launch.cluster,
                                .dynamic_smem_bytes = launch.smemBytes};
  Arguments arguments(*device, launch);
  auto entries = module.entries();
  if (!entries.empty()) {
    description.name = entries.front()->name;
    for (const ptx::Variable &parameter : entries.front()->parameters)
      description.parameters.push_back(arguments.of(parameter));
  }
  return device->launch(description);
}

void runInput(const std::string &text, const Launch &launch) {
  try {
    ptx::Module module = ptx::parse(text);
    judge(launchText(text, launch, module), text);
  } catch (const InternalError &) {
    throw;
  } catch (const Error &error) {
    checkMessage(error.what());
    checkError(error);
  }
}

void runPtx(std::string_view input) {
  std::string text(input);
  runInput(text, Launch::ofText(text));
}

} // namespace kiln::fuzz
