// build: somebody's build with the flags that `kiln run` needs, and how to get
// to a program that was built without them.
#include "build_command.h"
#include "commands.h"
#include "source_program.h"
#include "program.h"

#include <kiln/check/options.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

namespace kiln::cli {

namespace fs = std::filesystem;

std::string build_advice(const std::string &program) {
  std::error_code error;
  fs::path folder = fs::canonical(program, error).parent_path();
  // Builds put programs a few folders down.
  for (int i = 0; i < 4 && !folder.empty() && folder != folder.root_path();
       ++i, folder = folder.parent_path()) {
    if (fs::exists(folder / "CMakeCache.txt"))
      return fmt::format("kiln build cmake {0} && kiln build cmake --build {0} "
                         "--clean-first",
                         folder.string());
    if (fs::exists(folder / "build.ninja"))
      return fmt::format("ninja -C {0} -t clean && kiln build ninja -C {0}",
                         folder.string());
    for (const char *name : {"Makefile", "makefile", "GNUmakefile"})
      if (fs::exists(folder / name))
        return fmt::format("kiln build make -B -C {}", folder.string());
  }
  return "kiln build COMMAND, with the command that builds it";
}

/// CMake names the runtime library by itself; a call that configures is told
/// which one.
static void add_for_cmake(std::vector<std::string> &words) {
  bool is_cmake = fs::path(words.front()).filename() == "cmake";
  bool is_other = std::any_of(words.begin(), words.end(), [](const auto &word) {
    return word == "--build" || word == "--install" || word == "-E" ||
           word == "-P";
  });
  if (is_cmake && !is_other)
    words.insert(words.begin() + 1, "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared");
}

/// The GPU that programs are to run on, as `kiln run` will have it.
static DeviceDescription target_device() {
  CheckSettings settings;
  set_from_environment(
      settings, door_programs,
      [](const std::string &name) -> std::optional<std::string> {
        std::string value = variable(name.c_str());
        return value.empty() ? std::nullopt : std::optional(value);
      });
  return settings.device(DeviceDescription::h200());
}

static ExitStatus build_command(std::vector<std::string> words) {
  if (words.empty())
    throw UserError("a command is required: kiln build make");
  DeviceDescription device = target_device();
  std::string flags = variable("NVCC_APPEND_FLAGS");
  flags += fmt::format("{}-lineinfo {}", flags.empty() ? "" : " ",
                       nvcc_flags(device));
  setenv("NVCC_APPEND_FLAGS", flags.c_str(), 1);
  std::string path = find_in_path(words.front());
  if (path.empty())
    throw UserError(
        fmt::format("the command '{}' was not found in PATH", words.front()));
  add_for_cmake(words);
  std::fprintf(stderr, "kiln: NVCC_APPEND_FLAGS=\"%s\" %s\n", flags.c_str(),
               fmt::format("{}", fmt::join(words, " ")).c_str());
  int status = run_program(path, words);
  return static_cast<ExitStatus>(
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

void add_build_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "build", "run a build so that `kiln run` can run its CUDA programs: kiln "
               "build COMMAND...");
  command.prefix_command();
  command.callback([&action, command] {
    std::vector<std::string> words = command.remaining();
    if (!words.empty() && words.front() == "--")
      words.erase(words.begin());
    action = [=] { return build_command(words); };
  });
}

} // namespace kiln::cli
