// interleaving_fuzz: kernels of elected lanes, tickets, spin loops and
// barriers, all of them right: in every interleaving they end, nothing is
// found, and their results are those that the host works out.
//
//     interleaving_fuzz --kernels 300 --seeds 4
//     interleaving_fuzz --seed 7 --only 123 --show    one kernel, and its PTX
#include "DrawOptions.h"
#include "InterleavingKernel.h"
#include "kiln/base/error.h"
#include "kiln/check/sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kiln::fuzz {
namespace {

/// What is wrong with one run; empty: nothing.
std::string run(const Kernel &kernel, const std::string &ptx,
                Interleaving order, std::uint64_t seed) {
  SimOptions options;
  options.interleaving = order;
  options.seed = seed;
  options.threads = 1;
  options.max_instructions = 10'000'000;
  options.device = sim_device_for(ptx);
  auto device = open_sim(options);
  std::vector<std::uint32_t> memory(kernel.words + 1, 0);
  Buffer buffer = device->allocate(4 * memory.size());
  device->copy_in(buffer, memory.data(), 4 * memory.size(), Stream());
  LaunchDescription launch;
  launch.name = "test";
  launch.ptx = ptx;
  launch.grid = {kernel.grid, 1, 1};
  launch.block = {kernel.threads, 1, 1};
  launch.cluster = {kernel.cluster, 1, 1};
  launch.parameters = {{buffer}};
  std::string text;
  try {
    for (const Finding &finding : device->launch(launch, Stream()).findings)
      text += fmt::format("\n  {}: {}", finding.id, finding.message);
  } catch (const Error &error) {
    return fmt::format("\n  {}", error.what());
  }
  device->copy_out(memory.data(), buffer, 4 * memory.size(), Stream());
  for (auto [word, value] : kernel.wanted)
    if (memory[word] != value) {
      text += fmt::format("\n  word {} is {} and should be {}", word,
                          memory[word], value);
      break;
    }
  return text;
}

/// How many interleavings of a kernel went wrong.
int tryKernel(const DrawOptions &options, std::uint64_t number) {
  std::mt19937_64 random(options.seed * 0x9e3779b97f4a7c15 + number);
  Kernel kernel(random);
  std::string ptx = kernel.ptx();
  if (options.isShown)
    std::fputs(ptx.c_str(), stdout);
  int wrong = 0;
  auto look = [&](const char *name, Interleaving order, std::uint64_t seed) {
    std::string text = run(kernel, ptx, order, seed);
    if (text.empty())
      return;
    if (++wrong == 1)
      fmt::print("kernel {} of seed {}, grid {}, block {}, cluster {}, {} with "
                 "seed {}:{}\n",
                 number, options.seed, kernel.grid, kernel.threads,
                 kernel.cluster, name, seed, text);
  };
  look("eager", Interleaving::eager, 0);
  look("lazy", Interleaving::lazy, 0);
  for (std::uint64_t seed = 0; seed < options.limit; ++seed)
    look("random", Interleaving::random, seed);
  return wrong;
}

int run(const DrawOptions &options) {
  std::uint64_t first = options.only.value_or(0);
  std::uint64_t last = options.only ? first + 1 : options.kernels;
  std::uint64_t kernels = 0;
  int wrong = 0;
  for (std::uint64_t number = first; number < last; ++number) {
    int count = tryKernel(options, number);
    kernels += count > 0;
    wrong += count;
  }
  fmt::print("{} kernels in {} interleavings each: {} went wrong, in {} "
             "interleavings\n",
             last - first, options.limit + 2, kernels, wrong);
  return kernels > 0;
}

} // namespace
} // namespace kiln::fuzz

int main(int argc, char **argv) {
  try {
    return kiln::fuzz::run(
        kiln::fuzz::readDrawOptions(argc, argv, "--seeds", 3));
  } catch (const kiln::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
