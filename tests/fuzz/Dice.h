// Dice: random choices from a seed.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <string>

namespace kiln::fuzz {

class Dice {
public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : random_() % limit;
  }
  bool oneIn(std::size_t count) { return below(count) == 0; }
  template <typename List> const auto &any(const List &list) {
    return list[below(std::size(list))];
  }
  std::uint64_t bits() { return random_(); }

  /// Numbers at which sizes, addresses and counts go wrong.
  std::string integer();
  std::string real();

private:
  std::mt19937_64 random_;
};

} // namespace kiln::fuzz
