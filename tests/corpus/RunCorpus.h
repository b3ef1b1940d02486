// RunCorpus: an entry of the corpus, launched on the simulator under every
// order; a finding is a failure.
#pragma once

#include "kiln/base/error.h"
#include "kiln/check/sim.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace kiln {

/// Fresh numbers in every run; a failure prints the seed.
inline std::mt19937 &corpusRandom() {
  static const unsigned seed = [] {
    unsigned value = std::random_device()();
    ::testing::Test::RecordProperty("seed", std::to_string(value));
    std::printf("seed %u\n", value);
    return value;
  }();
  static std::mt19937 random(seed);
  return random;
}

template <typename T>
std::vector<T> randomNumbers(std::size_t count, double least, double most) {
  std::vector<T> values(count);
  for (T &value : values) {
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(std::uniform_int_distribution<long long>(
          static_cast<long long>(least),
          static_cast<long long>(most))(corpusRandom()));
    else
      value = static_cast<T>(
          std::uniform_real_distribution<double>(least, most)(corpusRandom()));
  }
  return values;
}

/// A device, its buffers, and launches of one PTX file.
class RunCorpus {
public:
  explicit RunCorpus(const std::string &file, Interleaving order = Interleaving::eager,
                     std::uint64_t maxInstructions = kDefaultMaxInstructions) {
    SimOptions options;
    options.interleaving = order;
    options.max_instructions = maxInstructions;
    options.seed = corpusRandom()();
    options.print = [this](const std::string &text) { printed += text; };
    std::ifstream stream(KILN_SOURCE_DIR "/tests/corpus/" + file);
    std::stringstream text;
    text << stream.rdbuf();
    ptx_ = text.str();
    if (ptx_.empty())
      ADD_FAILURE() << file << " is missing";
    options.device = sim_device_for(ptx_);
    device_ = open_sim(options);
  }

  Device &device() { return *device_; }

  template <typename T> Buffer buffer(const std::vector<T> &values) {
    Buffer made = device_->allocate(values.size() * sizeof(T));
    device_->copy_in(made, values.data(), values.size() * sizeof(T), Stream());
    return made;
  }
  /// A buffer whose bytes nobody has written.
  template <typename T> Buffer empty(std::size_t count) {
    return device_->allocate(count * sizeof(T));
  }
  template <typename T>
  std::vector<T> read(const Buffer &buffer, std::size_t count) {
    std::vector<T> values(count);
    device_->copy_out(values.data(), buffer, count * sizeof(T), Stream());
    return values;
  }

  using Size = std::array<std::uint32_t, 3>;
  template <typename... P>
  LaunchResult launch(const std::string &entry, Size grid, Size block,
                      std::uint32_t smemBytes, const P &...parameters) {
    LaunchDescription description;
    description.name = entry;
    description.ptx = ptx_;
    description.grid = grid;
    description.block = block;
    description.dynamic_smem_bytes = smemBytes;
    description.cooperative = isCooperative;
    (description.parameters.push_back(parameter(parameters)), ...);
    return device_->launch(description, Stream());
  }
  /// The same, and nothing may be found.
  template <typename... P>
  void run(const std::string &entry, Size grid, Size block,
           std::uint32_t smemBytes, const P &...parameters) {
    for (const Finding &finding :
         launch(entry, grid, block, smemBytes, parameters...).findings)
      if (std::find(known.begin(), known.end(), finding.id) == known.end())
        ADD_FAILURE() << entry << ": " << finding.id << ": " << finding.message;
  }

  std::string printed;
  bool isCooperative = false; ///< launches from now on
  /// Findings that the compiler is known for.
  std::vector<std::string> known;

private:
  static LaunchParameter parameter(const Buffer &buffer) { return {buffer}; }
  static LaunchParameter parameter(const TensorMap &map) { return {map}; }
  template <typename T>
    requires std::is_arithmetic_v<T>
  static LaunchParameter parameter(T value) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return {bytes};
  }

  std::shared_ptr<Device> device_;
  std::string ptx_;
};

inline constexpr Interleaving kSimOrders[] = {Interleaving::eager, Interleaving::lazy,
                                          Interleaving::random};

} // namespace kiln
