// source_program: which compiler, with which words, and what is in the cache.
//
// clang makes the PTX and the host's code in two calls; in between the PTX is
// put into a fat binary here, because clang would ask NVIDIA's ptxas and
// fatbinary for one.
#include "source_program.h"
#include "program.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/run/cache.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace kiln::cli {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string nvcc_flags(const DeviceDescription &device) {
  std::string target = device.target();
  std::string compute = "compute_" + target.substr(target.find('_') + 1);
  return fmt::format("-cudart shared -gencode arch={0},code={0}", compute);
}

static Words split(const std::string &text) {
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// nvcc in PATH or where the toolkit puts it; empty: there is none.
static std::string find_nvcc() {
  if (std::string found = find_in_path("nvcc"); !found.empty())
    return found;
  for (const std::string &root :
       {variable("CUDA_HOME"), variable("CUDA_PATH"),
        std::string("/usr/local/cuda")})
    if (!root.empty() && fs::exists(root + "/bin/nvcc"))
      return root + "/bin/nvcc";
  return "";
}

/// The folder whose include/ has CUDA's headers; empty: there is none.
static std::string find_headers() {
  std::vector<std::string> roots = {variable("CUDA_HOME"),
                                    variable("CUDA_PATH"), "/usr/local/cuda",
                                    "/usr"};
  // As pip installs them.
  if (std::string environment = variable("VIRTUAL_ENV"); !environment.empty()) {
    std::error_code error;
    for (const auto &python :
         fs::directory_iterator(environment + "/lib", error))
      for (const char *wheel : {"cu13", "cuda_runtime"})
        roots.push_back(
            (python.path() / "site-packages" / "nvidia" / wheel).string());
  }
  for (const std::string &root : roots)
    if (!root.empty() && fs::exists(root + "/include/cuda_runtime.h"))
      return root;
  return "";
}

static void run_compiler(const Words &words, const std::string &source) {
  int status = run_program(words.front(), words);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UserError(fmt::format("{} was not compiled: {} says why above",
                                source, words.front()));
}

/// A container with one plain PTX entry, which ends with a zero.
static std::string fatbin_of(const std::string &ptx,
                             const DeviceDescription &device) {
  std::string text = ptx;
  text.resize((ptx.size() / 8 + 1) * 8);
  std::string bytes;
  auto add = [&](auto value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  constexpr std::uint32_t header = 64;
  constexpr std::uint64_t arch_specific = 0x100000;
  bool is_specific = device.target().ends_with('a');
  add(std::uint32_t(0xBA55ED50));
  add(std::uint16_t(1));
  add(std::uint16_t(16));
  add(std::uint64_t(header + text.size()));
  add(std::uint16_t(1)); // PTX
  add(std::uint16_t(0x101));
  add(header);
  add(std::uint64_t(text.size()));
  add(std::uint64_t(0));
  add(std::uint16_t(0)); // the text has its own version
  add(std::uint16_t(9));
  add(std::uint32_t(device.compute_major * 10 + device.compute_minor));
  add(std::uint64_t(0));
  add(is_specific ? arch_specific : std::uint64_t(0));
  add(std::uint64_t(0));
  add(std::uint64_t(0));
  return bytes + text;
}

namespace {
/// A compiler and its words.
struct Compiler {
  std::string path;
  std::string headers; ///< for clang; empty: this is nvcc

  bool is_clang() const { return !headers.empty(); }
};
} // namespace

static Compiler find_compiler(const std::string &source) {
  if (std::string nvcc = find_nvcc(); !nvcc.empty())
    return {nvcc, ""};
  std::string headers = find_headers();
  for (const char *name : {"clang++-22", "clang++"})
    if (std::string clang = find_in_path(name);
        !clang.empty() && !headers.empty())
      return {clang, headers};
  throw UserError(fmt::format(
      "{} cannot be compiled: there is no nvcc, and {}; install CUDA's nvcc, or "
      "clang++-22 and CUDA's headers (pip install nvidia-cuda-runtime "
      "nvidia-cuda-crt)",
      source,
      headers.empty() ? "cuda_runtime.h was not found in CUDA_HOME, "
                        "/usr/local/cuda or the virtual environment"
                      : "no clang++-22"));
}

/// When and how large each of those files is, and of the compiler.
static std::string stamp(const Words &files) {
  std::string text;
  for (const std::string &file : files) {
    struct stat info{};
    if (stat(file.c_str(), &info) != 0)
      return "";
    text += fmt::format("{} {} {}.{}\n", file, info.st_size,
                        info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return text;
}

/// The files of a rule of make, "x.o : a.cu b.h \".
static Words files_of(const std::string &rule) {
  Words files;
  std::string word;
  bool is_target = true;
  for (std::size_t i = 0; i <= rule.size(); ++i) {
    char c = i < rule.size() ? rule[i] : ' ';
    if (c == '\\' && i + 1 < rule.size() && rule[i + 1] == ' ') {
      word += rule[++i];
      continue;
    }
    if (c != ' ' && c != '\n' && c != '\\') {
      word += c;
      continue;
    }
    if (word.empty())
      continue;
    if (is_target)
      is_target = !word.ends_with(':');
    else
      files.push_back(word);
    word.clear();
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

CudaSource::CudaSource(const std::string &path, const Words &flags,
                       const DeviceDescription &device,
                       const std::string &libraries) {
  if (!fs::exists(path))
    throw UserError(fmt::format("{} cannot be read: no such file", path));
  static_cast<void>(read_file(path)); // refuses what nvcc would wait for
  program_ = folder_.file(fs::path(path).stem().string());
  compile(path, flags, device, libraries);
}

void CudaSource::compile(const std::string &path, const Words &flags,
                         const DeviceDescription &device,
                         const std::string &libraries) {
  Compiler compiler = find_compiler(path);
  std::string depends = folder_.file("depends");
  std::string about = fmt::format(
      "cu|{}|{}|{}|{}|{}|{}", stamp({compiler.path}), compiler.headers,
      fs::absolute(path).string(), fmt::join(flags, "\x1f"), device.target(),
      fs::current_path().string());
  // The first entry says what the program is made of, the second has it.
  if (auto files = cache_get(about))
    if (auto program = cache_get(about + stamp(files_of(": " + *files)))) {
      write_file(program_, {*program});
      fs::permissions(program_, fs::perms::owner_all);
      return;
    }
  if (compiler.is_clang()) {
    std::string ptx = folder_.file("kernels.ptx"),
                fatbin = folder_.file("kernels.fatbin");
    Words common = {compiler.path,
                    "-x",
                    "cuda",
                    "-std=c++17",
                    "-Wno-unknown-cuda-version",
                    "--cuda-path=" + compiler.headers,
                    "--cuda-gpu-arch=" + device.target()};
    if (!fs::exists(compiler.headers + "/nvvm/libdevice"))
      common.push_back("-nocudalib");
    auto with = [&](const Words &more) {
      Words words = common;
      words.insert(words.end(), flags.begin(), flags.end());
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    run_compiler(with({"-O2", "-gline-directives-only", "--cuda-device-only",
                       "-S", path, "-o", ptx}),
                 path);
    write_file(fatbin, {fatbin_of(read_file(ptx), device)});
    run_compiler(with({"--cuda-host-only", "-Xclang", "-fcuda-include-gpubinary",
                       "-Xclang", fatbin, "-MD", "-MF", depends, path,
                       "-o", program_, "-L" + libraries,
                       "-l:libcudart.so.13"}),
                 path);
  } else {
    Words words = {compiler.path, "-lineinfo"};
    for (const std::string &word : split(nvcc_flags(device)))
      words.push_back(word);
    words.insert(words.end(), flags.begin(), flags.end());
    for (const char *word : {"-MD", "-MF"})
      words.push_back(word);
    words.insert(words.end(), {depends, path, "-o", program_});
    run_compiler(words, path);
  }
  std::string rule = fs::exists(depends) ? read_file(depends) : path;
  Words files = files_of(rule);
  cache_put(about, fmt::format("{}", fmt::join(files, " ")));
  cache_put(about + stamp(files), read_file(program_));
}

} // namespace kiln::cli
