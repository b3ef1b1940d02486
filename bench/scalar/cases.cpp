// cases: arrays, and the kernels that only start.
#include "case.h"

#include <kiln/base/random.h>

#include <algorithm>

namespace scalar {

void Case::reset_host() {
  for (Parameter &parameter : parameters)
    if (auto *array = std::get_if<Array>(&parameter))
      array->of_host = array->initial;
}

Array random_floats(std::size_t count, std::uint64_t seed, double lo,
                    double hi) {
  Array array;
  array.initial.resize(count);
  kiln::fill_random(kiln::Type::f32, array.initial.data(), count, seed, lo, hi);
  return array;
}

Array random_ints(std::size_t count, std::uint64_t seed, std::int64_t lo,
                  std::int64_t hi) {
  Array array;
  array.initial.resize(count);
  kiln::fill_random(kiln::Type::i32, array.initial.data(), count, seed,
                    static_cast<double>(lo), static_cast<double>(hi));
  return array;
}

Array zeros(std::size_t count, Array::Result result, float tolerance) {
  Array array;
  array.result = result;
  array.tolerance = tolerance;
  array.initial.resize(count);
  return array;
}

std::vector<Case> kernel_cases() {
  std::vector<Case> cases = dense_cases();
  std::vector<Case> others = shared_cases();
  std::move(others.begin(), others.end(), std::back_inserter(cases));
  return cases;
}

/// A kernel of starts.cu that stores a value per thread, or does nothing.
static Case start(const char *name, const char *entry, std::uint32_t ctas,
                  std::uint32_t threads) {
  Case one{.name = name,
           .group = Group::starts,
           .file = "starts",
           .entry = entry,
           .grid = {ctas, 1, 1},
           .block = {threads, 1, 1},
           .parameters = {}};
  if (one.entry == "store")
    one.parameters.emplace_back(
        zeros(std::size_t(ctas) * threads, Array::Result::none));
  return one;
}

std::vector<Case> instruction_cases() {
  constexpr std::uint32_t kWarps = 64, kWords = 64 * 32;
  constexpr int kRounds = 128;
  auto make = [](const char *name, std::vector<Parameter> parameters) {
    return Case{.name = name,
                .group = Group::instructions,
                .file = "instructions",
                .entry = name,
                .grid = {kWarps, 1, 1},
                .block = {32, 1, 1},
                .parameters = std::move(parameters)};
  };
  Array in = random_floats(kWords + 32, 1, -1, 1);
  Array out = zeros(std::size_t(kWarps) * kWords, Array::Result::none);
  return {make("arithmetic", {out, kRounds}),
          make("integers", {out, kRounds}),
          make("loads_broadcast", {in, out, kRounds}),
          make("loads_coalesced", {in, out, kRounds}),
          make("stores_coalesced", {out, kRounds}),
          make("loads_shared", {out, kRounds})};
}

std::vector<Case> start_cases() {
  std::vector<Case> cases = {start("empty_32", "empty", 16384, 32),
                             start("empty_256", "empty", 2048, 256),
                             start("store_32", "store", 16384, 32),
                             start("store_256", "store", 2048, 256),
                             start("launch_32", "store", 1, 32),
                             start("allocate_1gib", "", 1, 32)};
  cases[4].launches = 1000;
  cases[5].allocated_bytes = std::size_t(1) << 30;
  return cases;
}

} // namespace scalar
