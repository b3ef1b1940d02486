// BrokenKernel: a kernel of kernels/, how it is launched, and its defects.
#pragma once

#include <kiln/check/sim.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace kiln {

struct Defect {
  std::string id, tag, from, to, line, word;
};

struct BrokenKernel {
  std::string name;
  std::vector<std::string> lines;
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1},
                               cluster = {1, 1, 1};
  std::vector<Defect> defects;
};

inline void PrintTo(const BrokenKernel &kernel, std::ostream *stream) {
  *stream << kernel.name;
}

inline std::string trimmed(const std::string &text) {
  std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos)
    return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The parts of a text between separators.
inline std::vector<std::string> split(const std::string &text,
                                      const std::string &separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(separator, begin)) != std::string::npos;
       begin = at + separator.size())
    parts.push_back(trimmed(text.substr(begin, at - begin)));
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

inline Defect parseDefect(const std::string &text) {
  auto fields = split(text, " |");
  if (fields.size() != 5)
    throw std::runtime_error("not five fields: " + text);
  Defect defect{fields[0], fields[1], "", "", fields[3], fields[4]};
  if (!fields[2].empty()) {
    auto change = split(fields[2], " =>");
    defect.from = change.at(0);
    defect.to = change.at(1);
  }
  return defect;
}

inline BrokenKernel readKernel(const std::filesystem::path &path) {
  BrokenKernel kernel;
  kernel.name = path.stem();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("//! "))
      kernel.defects.push_back(parseDefect(line.substr(4)));
    if (line.starts_with("// launch ")) {
      std::istringstream words(line.substr(10));
      for (std::string word; words >> word;) {
        auto parts = split(word, "=");
        auto count = static_cast<std::uint32_t>(std::stoul(parts.at(1)));
        (parts[0] == "grid"    ? kernel.grid
         : parts[0] == "block" ? kernel.block
                               : kernel.cluster)[0] = count;
      }
    }
    kernel.lines.push_back(line);
  }
  return kernel;
}

inline std::vector<BrokenKernel> allKernels() {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(
           std::string(KILN_SOURCE_DIR) + "/tests/broken/kernels"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<BrokenKernel> kernels;
  for (const auto &path : paths)
    kernels.push_back(readKernel(path));
  return kernels;
}

inline LaunchResult simulate(const BrokenKernel &kernel, const std::string &ptx,
                             Interleaving order, std::uint64_t seed,
                             int threads = 1) {
  constexpr std::size_t kBytes = 8192;
  auto device = open_sim({.device = sim_device_for(ptx),
                          .interleaving = order,
                          .seed = seed,
                          .threads = threads});
  Buffer in = device->allocate(kBytes), out = device->allocate(kBytes);
  std::vector<std::uint8_t> zeros(kBytes);
  device->copy_in(in, zeros.data(), kBytes);
  device->copy_in(out, zeros.data(), kBytes);
  return device->launch({.ptx = ptx,
                         .grid = kernel.grid,
                         .block = kernel.block,
                         .cluster = kernel.cluster,
                         .parameters = {{in}, {out}}});
}

inline std::string textOf(const std::vector<Finding> &findings) {
  std::string text;
  for (const Finding &finding : findings)
    text += fmt::format("\n  {} at line {}: {}", finding.id, finding.ptx_line,
                        finding.message);
  return text;
}

} // namespace kiln
