// EarlyAccesses: what a dependent launch touches of global memory without
// knowing that the launches which it may overlap have ended.
//
// They are kept by themselves: a later access, which the launch orders behind
// them, takes their place in the shadow.
#pragma once

#include "sim/clocks/SharedHistory.h"

#include <unordered_map>
#include <vector>

namespace kiln::sim {

class EarlyAccesses {
public:
  /// The first access of an instruction to a cell, and what all of them touch.
  struct Access {
    std::uint32_t op = 0;  ///< index of the instruction
    std::uint32_t cta = 0; ///< number in the launch
    std::uint32_t thread = 0;
    std::uint16_t bytes = 0; ///< of the cell
    bool isWrite = false, isStrong = false;
  };

  void add(std::uint64_t cell, const Access &access);
  /// What another cluster did, too.
  void take(const EarlyAccesses &other);
  /// In the order of their addresses.
  std::vector<std::pair<std::uint64_t, Access>> list() const;
  std::size_t bytes() const;

private:
  std::unordered_map<std::uint64_t, std::vector<Access>> cells_;
};

} // namespace kiln::sim
