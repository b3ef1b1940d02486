// mlir_program: gpu-lower-to-nvvm-pipeline as the installed mlir-opt has it,
// with one pass more.
//
// The pipeline keeps no lines for the kernels: nothing in it makes the scopes
// that LLVM hangs lines on. And it lowers no gpu.subgroup_reduce, whose
// instruction every target of Kiln's has. So it is asked for as a list of
// passes; the pass that makes the scopes goes in before the kernels become PTX,
// and the option is set.
#include "mlir_program.h"
#include "program.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cli {

namespace fs = std::filesystem;

/// The newest version of PTX that drivers since CUDA 12.7 take: whatever MLIR
/// has for a target is in it.
static constexpr const char *kPtxFeature = "+ptx86";

/// A tool of MLIR 22, or of whatever version is called without a number.
static std::string find_tool(const std::string &name) {
  for (const std::string &word : {name + "-22", name})
    if (std::string path = find_in_path(word); !path.empty())
      return path;
  throw UserError(fmt::format("{}-22 was not found in PATH, and neither was "
                              "{}; Debian has it in the package mlir-22-tools",
                              name, name));
}

/// The libraries that programs print with lie beside the runner.
static std::vector<std::string> find_libraries(const std::string &runner) {
  fs::path folder = fs::canonical(runner).parent_path().parent_path() / "lib";
  std::vector<std::string> found;
  for (const char *name :
       {"libmlir_runner_utils.so", "libmlir_c_runner_utils.so"}) {
    if (!fs::exists(folder / name))
      throw UserError(fmt::format("{} was not found in {}; Debian has it in "
                                  "the package libmlir-22-dev",
                                  name, folder.string()));
    found.push_back((folder / name).string());
  }
  return found;
}

static bool has_failed(int status) {
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

MlirProgram::MlirProgram(const std::string &path,
                         const DeviceDescription &device,
                         std::string passes)
    : passes_(std::move(passes)) {
  if (!fs::exists(path))
    throw UserError(fmt::format("{} cannot be read: no such file", path));
  static_cast<void>(read_file(path)); // refuses what mlir-opt would wait for
  std::string tool = find_tool("mlir-opt");
  runner_ = find_tool("mlir-runner");
  libraries_ = find_libraries(runner_);
  folder_.emplace("kiln-mlir");
  lower(tool, path, device);
}

std::string MlirProgram::pipeline(const std::string &tool,
                                  const DeviceDescription &device) const {
  std::string asked =
      fmt::format("builtin.module(gpu-lower-to-nvvm-pipeline{{cubin-format=isa "
                  "cubin-chip={} cubin-features={}}})",
                  device.target(), kPtxFeature);
  std::string listing = folder_->file("passes");
  int status = run_program(
      tool,
      {tool, "--pass-pipeline=" + asked, "--dump-pass-pipeline", "/dev/null"},
      folder_->file("nothing"), listing);
  std::string text = read_file(listing);
  constexpr std::string_view kModule = "builtin.module(";
  std::size_t begin = text.find(kModule);
  std::size_t binary = text.find("gpu-module-to-binary");
  if (has_failed(status) || begin == std::string::npos ||
      binary == std::string::npos)
    throw UserError(
        fmt::format("{} has no gpu-lower-to-nvvm-pipeline that Kiln can use; "
                    "it said: {}",
                    tool, text));
  constexpr std::string_view kNoRedux = "has-redux=false";
  if (std::size_t at = text.find(kNoRedux); at < binary) {
    text.replace(at, kNoRedux.size(), "has-redux=true");
    --binary;
  }
  text.insert(binary, "ensure-debug-info-scope-on-llvm-func{emission-kind="
                      "DebugDirectivesOnly},\n");
  if (!passes_.empty())
    text.insert(begin + kModule.size(), passes_ + ",\n");
  return text.substr(begin);
}

/// What the function main returns; empty: there is no such function.
static std::string result_of_main(const std::string &lowered) {
  std::size_t at = lowered.find("llvm.func @main(");
  if (at == std::string::npos)
    return "";
  std::string line = lowered.substr(at, lowered.find('{', at) - at);
  for (const char *type : {"i32", "i64", "f32"})
    if (line.find(fmt::format("-> {}", type)) != std::string::npos)
      return type;
  return "void";
}

void MlirProgram::lower(const std::string &tool, const std::string &path,
                        const DeviceDescription &device) {
  std::string lowered = folder_->file("lowered.mlir");
  int status =
      run_program(tool, {tool, "--pass-pipeline=" + pipeline(tool, device),
                         path, "-o", lowered});
  if (has_failed(status))
    throw UserError(
        fmt::format("{} was not lowered: {} says why above", path, tool));
  std::string text = read_file(lowered);
  if (text.find("gpu.binary @") == std::string::npos)
    throw UserError(fmt::format(
        "{} has no kernel: it has neither a gpu.launch nor a gpu.module with a "
        "gpu.func that is a kernel",
        path));
  result_ = result_of_main(text);
  if (result_.empty())
    throw UserError(fmt::format(
        "{} has no function to begin with; add a func.func @main() that calls "
        "the others",
        path));
}

std::vector<std::string>
MlirProgram::words(const std::string &runtime,
                   const std::vector<std::string> &words) const {
  std::vector<std::string> all = {runner_, folder_->file("lowered.mlir"),
                                  "--entry-point-result=" + result_, "-O2"};
  for (const std::string &library : libraries_)
    all.push_back("--shared-libs=" + library);
  all.push_back("--shared-libs=" + runtime);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

} // namespace kiln::cli
