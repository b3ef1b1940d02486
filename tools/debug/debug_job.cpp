// debug_job: files and captures.
#include "debug/debug_job.h"
#include "run/elf_file.h"
#include "run/run_command.h"
#include "run/scratch_folder.h"
#include "support/InputFile.h"

#include <kiln/base/error.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unistd.h>

namespace kiln::cli {

namespace fs = std::filesystem;

/// Whether a file is something that `kiln run` takes.
static bool is_cuda_program(const std::string &path) {
  if (path.ends_with(".ptx") || path.ends_with(".json"))
    return false;
  if (!fs::exists(path) || path.ends_with(".cu") || path.ends_with(".mlir"))
    return true;
  char head[2] = {};
  InputFile(path).readAt(0, head, sizeof(head));
  return read_elf(path).is_elf || std::string_view(head, 2) == "#!";
}

/// The number of a launch; 0: the text is none.
static std::size_t launch_number(const std::string &text) {
  std::size_t number = 0;
  const char *end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : 0;
}

namespace {
/// While it lives, what is written to stdout goes to stderr.
class StdoutAside {
public:
  explicit StdoutAside(bool is_wanted) {
    if (!is_wanted)
      return;
    std::fflush(stdout);
    kept_ = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~StdoutAside() {
    if (kept_ < 0)
      return;
    std::fflush(stdout);
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  StdoutAside(const StdoutAside &) = delete;
  StdoutAside &operator=(const StdoutAside &) = delete;

private:
  int kept_ = -1;
};
} // namespace

/// Run a program and take the first launch that it was asked for.
static LaunchJob captured_job(const DebugWords &words,
                              const std::string &kernel, bool is_quiet) {
  std::string number =
      words.launch.empty() && kernel.empty() ? std::string("1") : words.launch;
  if (!number.empty() && launch_number(number) == 0)
    throw UserError(fmt::format("--launch is '{}'; of a program it is the "
                                "number of a launch, from 1 on",
                                number));
  ScratchFolder folder("kiln-debug");
  CheckFlags check;
  // What is captured is looked at afterwards.
  check.give("checks", "off");
  check.give("interleaving", "eager");
  check.give("capture", folder.path());
  if (!number.empty())
    check.give("launch", number);
  if (!kernel.empty())
    check.give("kernel", kernel);
  {
    StdoutAside aside(is_quiet);
    run_checked(words.words, check);
  }
  std::vector<std::pair<std::size_t, std::string>> files;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".json") {
      std::string name = entry.path().filename().string();
      files.emplace_back(launch_number(name.substr(0, name.find('-'))),
                         entry.path().string());
    }
  if (files.empty())
    throw UserError(fmt::format(
        "{} made no launch that was asked for: it launched nothing, or no "
        "kernel that --kernel and --launch name",
        words.words.front()));
  std::sort(files.begin(), files.end());
  return LaunchJob::load("", files.front().second);
}

static LaunchJob job_of(const DebugWords &words, const std::string &kernel,
                        DebugOptions &options, bool is_quiet) {
  std::string path = words.words.front();
  if (is_cuda_program(path))
    return captured_job(words, kernel, is_quiet);
  if (words.words.size() > 1)
    throw UserError(fmt::format("'{}' is one word too many; `kiln debug` takes "
                                "PTX and --launch FILE, a launch file, or a "
                                "program and its arguments",
                                words.words[1]));
  if (!kernel.empty())
    throw UserError("--kernel is for programs; a launch file says what it "
                    "launches");
  if (names_its_ptx(path)) {
    options.first_launch =
        words.launch.empty() ? 1 : launch_number(words.launch);
    if (options.first_launch == 0)
      throw UserError(fmt::format("--launch is '{}'; of a launch file that "
                                  "names its PTX it is the number of a launch, "
                                  "from 1 on",
                                  words.launch));
    return LaunchJob::load("", path);
  }
  if (words.launch.empty())
    throw UserError("`kiln debug` takes --launch FILE with PTX; `kiln sim "
                    "KERNEL.ptx --init FILE` writes a first one");
  return LaunchJob::load(path, words.launch);
}

std::unique_ptr<Debugger> open_debugger(const DebugWords &words,
                                        bool is_quiet) {
  CheckSettings settings = words.check.settings();
  DebugOptions options;
  OptionText limit{"--checkpoint-memory", words.checkpoint_memory,
                   "a number of bytes, with K, M or G behind it for units of "
                   "1024"};
  options.checkpoint_memory_bytes = limit.bytes();
  if (words.words.empty())
    throw UserError("`kiln debug` takes PTX and --launch FILE, a launch file, "
                    "or a program and its arguments");
  LaunchJob job = job_of(words, settings.kernel, options, is_quiet);
  std::vector<SeededInterleaving> chosen = settings.interleavings.list();
  options.has_device = true;
  options.sim = settings.sim_options(
      settings.gpu.empty() ? job.device() : DeviceDescription::h200());
  options.sim.interleaving = chosen.front().kind;
  options.sim.seed = chosen.front().seed;
  return std::make_unique<Debugger>(std::move(job), options);
}

} // namespace kiln::cli
