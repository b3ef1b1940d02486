// build: somebody's build with the flags that `kiln run` needs, and how to get
// to a program that was built without them.
#include "build_command.h"
#include "commands.h"
#include "cuda_source.h"
#include "program.h"

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

static ExitStatus build_command(std::vector<std::string> words,
                                const std::string &gpu) {
  if (words.empty())
    throw UserError("a command is required: kiln build make");
  const DeviceDescription &device = gpu.empty()
                                        ? DeviceDescription::h200()
                                        : DeviceDescription::by_name(gpu);
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
  auto gpu = std::make_shared<std::string>();
  command.add_option("--gpu", *gpu, "build for this GPU; otherwise for an H200");
  command.prefix_command();
  command.callback([&action, gpu, command] {
    std::vector<std::string> words = command.remaining();
    if (!words.empty() && words.front() == "--")
      words.erase(words.begin());
    action = [=] { return build_command(words, *gpu); };
  });
}

} // namespace kiln::cli
