// run: a CUDA or MLIR program as it is, on the simulator.
//
// A CUDA program finds Kiln's libcudart by LD_LIBRARY_PATH, a source is compiled
// first, one of MLIR's is
// lowered and handed to mlir-runner with Kiln's runtime. Options reach it as
// environment variables; what was found it tells by itself, on stderr, and
// counts in a page that is read here when it has ended, however it has.
#include "build_command.h"
#include "commands.h"
#include "console/output_file.h"
#include "console/say.h"
#include "source_program.h"
#include "elf_file.h"
#include "mlir_program.h"
#include "options/check_flags.h"
#include "program.h"
#include "run_command.h"

#include <kiln/check/run_status.h>
#include <kiln/run/open_device.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cli {

namespace fs = std::filesystem;

namespace {
struct RunCommand {
  std::vector<std::string> program; ///< and its arguments
  std::string device;
  std::string passes; ///< of MLIR, ahead of its pipeline
  bool is_strict = false;
  CheckFlags check;

  /// Whether it is a program of MLIR's, by its name.
  bool is_mlir() const { return program.front().ends_with(".mlir"); }
  /// Or a source of CUDA's, to be compiled.
  bool is_source() const { return program.front().ends_with(".cu"); }
};

/// The page that the program counts in.
class StatusPage {
public:
  StatusPage() {
    // Sealed: a program that makes it shorter would take the page from us.
    file_ = memfd_create("kiln-run", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    path_ = fmt::format("/proc/{}/fd/{}", getpid(), file_);
    void *page = MAP_FAILED;
    if (file_ >= 0 && ftruncate(file_, sizeof(RunStatus)) == 0 &&
        fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
            0)
      page = mmap(nullptr, sizeof(RunStatus), PROT_READ | PROT_WRITE,
                  MAP_SHARED, file_, 0);
    if (page == MAP_FAILED)
      throw RuntimeError(fmt::format("no page for what the program counts: {}",
                                     std::strerror(errno)));
    status_ = new (page) RunStatus;
  }
  ~StatusPage() {
    munmap(status_, sizeof(RunStatus));
    close(file_);
  }
  StatusPage(const StatusPage &) = delete;
  StatusPage &operator=(const StatusPage &) = delete;

  const std::string &path() const { return path_; }
  const RunStatus &status() const { return *status_; }

private:
  std::string path_;
  int file_ = -1;
  RunStatus *status_ = nullptr;
};
} // namespace

/// Kiln's CUDA libraries, beside the command or where it was installed.
static std::string library_folder() {
  fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
  std::string folders = KILN_CUDA_FOLDERS;
  for (std::size_t at = 0; at < folders.size();) {
    std::size_t end = std::min(folders.find(':', at), folders.size());
    fs::path folder = own / folders.substr(at, end - at);
    if (fs::exists(folder / "libcudart.so.13"))
      return fs::canonical(folder).string();
    at = end + 1;
  }
  throw RuntimeError(
      fmt::format("Kiln's libcudart.so.13 was not found beside {} (in {})",
                  own.string(), folders));
}

/// The file that a shell would run.
static std::string find_program(const std::string &name) {
  std::string path = find_in_path(name);
  if (path.empty())
    throw UserError(fmt::format("the program '{}' was not found in PATH; write "
                                "./{} for one in this folder",
                                name, name));
  return path;
}

/// Refuse what cannot be run, with what would help.
static void check_program(const std::string &path) {
  if (access(path.c_str(), X_OK) != 0)
    throw UserError(
        fmt::format("{} cannot be run: {}", path, std::strerror(errno)));
  if (fs::is_directory(path))
    throw UserError(fmt::format("{} cannot be run: it is a folder", path));
  if (!fs::is_regular_file(path))
    throw UserError(
        fmt::format("{} cannot be run: it is not a regular file", path));
  ElfFile elf = read_elf(path);
  bool is_dynamic = std::any_of(elf.needed.begin(), elf.needed.end(),
                                [](const std::string &library) {
                                  return library.starts_with("libcudart.so");
                                });
  if (elf.has_fatbin && !is_dynamic)
    throw UserError(fmt::format(
        "{} is linked with CUDA's static runtime, which Kiln cannot replace; "
        "build it again with the shared one: {} (which sets "
        "NVCC_APPEND_FLAGS=\"{}\")",
        path, build_advice(path), nvcc_flags(DeviceDescription::h200())));
}

/// What is wrong with an option is said before the program runs.
static void check_options(const RunCommand &command) {
  constexpr std::string_view devices[] = {"", "sim", "cuda", "auto"};
  if (std::find(std::begin(devices), std::end(devices), command.device) ==
      std::end(devices))
    throw UserError(fmt::format("--device is '{}'; it takes sim, cuda or auto",
                                command.device));
  if (!command.device.empty() && !command.is_mlir())
    throw UserError("--device is for .mlir programs; a CUDA program runs on a "
                    "GPU without `kiln run`");
  if (!command.passes.empty() && !command.is_mlir())
    throw UserError("--passes is for .mlir programs, which mlir-opt lowers");
  command.check.check_outputs();
}

/// In front of what is there.
static void prepend(const char *name, const std::string &value,
                    const char *separator) {
  std::string there = variable(name);
  setenv(name, (there.empty() ? value : value + separator + there).c_str(), 1);
}

/// A program that is linked with NVRTC gets PTX from it (src/cudart/nvrtc).
static void set_preload(const std::string &program) {
  std::vector<std::string> needed = read_elf(program).needed;
  bool has_nvrtc = std::any_of(needed.begin(), needed.end(),
                               [](const std::string &library) {
                                 return library.starts_with("libnvrtc.so");
                               });
  if (has_nvrtc)
    prepend("LD_PRELOAD", library_folder() + "/libkiln_nvrtc.so", " ");
}

static void set_variables(const RunCommand &command, const StatusPage &page) {
  if (command.is_mlir()) {
    // Its runtime is named to the runner; where it runs kernels is asked here.
    setenv("KILN_DEVICE",
           command.device.empty() ? "sim" : command.device.c_str(), 1);
  } else {
    prepend("LD_LIBRARY_PATH", library_folder(), ":");
  }
  setenv("KILN_STATUS", page.path().c_str(), 1);
  for (const auto &[name, value] : command.check.variables())
    setenv(name.c_str(), value.c_str(), 1);
}

/// The device that a program of MLIR's is lowered for.
static DeviceDescription lowered_for(const RunCommand &command,
                                     const CheckSettings &settings) {
  if (settings.gpu.empty() &&
      (command.device == "cuda" || command.device == "auto"))
    return open_device(command.device)->description();
  return settings.device(DeviceDescription::h200());
}

/// What waitpid says of the program.
static int run_any(const RunCommand &command, const CheckSettings &settings,
                   const StatusPage &page, std::string &path) {
  path = command.program.front();
  if (command.is_source()) {
    // Behind "--" are words for the compiler.
    auto end = std::find(command.program.begin(), command.program.end(), "--");
    std::vector<std::string> words(command.program.begin(), end);
    CudaSource source(path, {end + (end != command.program.end()),
                             command.program.end()},
                      settings.device(DeviceDescription::h200()),
                      library_folder());
    set_variables(command, page);
    set_preload(source.program());
    return run_program(source.program(), words);
  }
  if (!command.is_mlir()) {
    path = find_program(path);
    check_program(path);
    set_variables(command, page);
    set_preload(path);
    return run_program(path, command.program);
  }
  MlirProgram program(path, lowered_for(command, settings), command.passes);
  set_variables(command, page);
  std::string runtime = fs::canonical(fs::path(library_folder()) / ".." / ".." /
                                      "libkiln_mlir_runtime.so");
  return run_program(program.runner(),
                     program.words(runtime, {command.program.begin() + 1,
                                             command.program.end()}));
}

static ExitStatus run_command(const RunCommand &command) {
  if (command.program.empty())
    throw UserError("a program is required: kiln run ./program arguments...");
  CheckSettings settings = command.check.settings();
  check_options(command);
  StatusPage page;
  std::string path;
  int status = run_any(command, settings, page, path);
  if (WIFSIGNALED(status))
    std::fprintf(stderr, "kiln: %s was ended by signal %d (%s)\n", path.c_str(),
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
  // stdout is the program's.
  std::fprintf(stderr, "kiln: %s\n", page.status().to_string().c_str());
  if (WIFSIGNALED(status))
    return static_cast<ExitStatus>(128 + WTERMSIG(status));
  if (WEXITSTATUS(status) != 0)
    return static_cast<ExitStatus>(WEXITSTATUS(status));
  if (page.status().errors)
    return ExitStatus::finding;
  if (page.status().unwritten)
    return ExitStatus::machine;
  return command.is_strict && page.status().unsupported
             ? ExitStatus::unsupported
             : ExitStatus::ok;
}

ExitStatus run_checked(std::vector<std::string> program,
                       const CheckFlags &check) {
  return run_command({.program = std::move(program), .check = check});
}

void add_run_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "run", "run a CUDA program, a source of one (.cu), or a program of "
             "MLIR's (.mlir) on the simulator, and check it: kiln run "
             "[OPTIONS] PROGRAM [ARGUMENTS...] [-- FLAGS OF THE COMPILER]");
  auto options = std::make_shared<RunCommand>();
  options->check.add_to(command, door_programs);
  command.add_option("--device", options->device,
                     "of a .mlir program: sim, cuda (the GPU), or auto");
  command.add_option("--passes", options->passes,
                     "of a .mlir program: passes to run before "
                     "gpu-lower-to-nvvm-pipeline, as mlir-opt takes them in "
                     "--pass-pipeline, for what that pipeline does not lower: "
                     "\"convert-linalg-to-loops,canonicalize\"");
  command.add_flag("--strict", options->is_strict,
                   "exit with 6 where the program called a function that Kiln "
                   "does not have");
  command.prefix_command();
  command.callback([&action, options, command] {
    options->program = command.remaining();
    if (!options->program.empty() && options->program.front() == "--")
      options->program.erase(options->program.begin());
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
