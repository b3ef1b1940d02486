// case.h: one kernel of bench_scalar, beside the same algorithm in C++.
//
// A case has the arrays and numbers of its launch and a function of the host
// that computes the same from the same arrays. All elements have four bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace scalar {

/// Memory of a launch: what it holds before, and what the host makes of it.
struct Array {
  /// How the two results are compared.
  enum class Result : std::uint8_t {
    none,   ///< an input
    words,  ///< equal
    floats, ///< equal but for `tolerance`, relative to the larger of it and 1
    set,    ///< equal in some order
  };
  Result result = Result::none;
  float tolerance = 0;
  std::vector<std::uint32_t> initial;
  std::vector<std::uint32_t> of_host = {};

  std::size_t bytes() const { return initial.size() * 4; }
  std::int32_t *ints() { return reinterpret_cast<std::int32_t *>(words()); }
  float *floats() { return reinterpret_cast<float *>(words()); }
  std::uint32_t *words() { return of_host.data(); }
};

using Number = std::variant<int, float>;
using Parameter = std::variant<Array, Number>;

/// What a case is about, and what is printed of it.
enum class Group : std::uint8_t {
  kernels,      ///< one of the twelve
  instructions, ///< one kind of instruction
  starts,       ///< what begins before anything is computed
};

struct Case {
  std::string name;
  Group group = Group::kernels;
  std::string file;  ///< kernels/FILE.ptx
  std::string entry; ///< empty: as the file
  bool has_atomics = false;
  std::array<std::uint32_t, 3> grid, block;
  std::vector<Parameter> parameters;
  /// The algorithm on the arrays' `of_host`, which begin as `initial`; empty
  /// where there is nothing to compare with.
  std::function<void(Case &)> on_host = {};
  /// Launches that one measurement has; a kernel of a few instructions has
  /// many.
  int launches = 1;
  /// Rounds of the loops of all threads together; 0: nobody asks.
  double iterations = 0;
  /// Instead of launches: a buffer of so many bytes is allocated and freed.
  std::size_t allocated_bytes = 0;

  Array &array(std::size_t i) { return std::get<Array>(parameters[i]); }
  int whole(std::size_t i) const {
    return std::get<int>(std::get<Number>(parameters[i]));
  }
  float real(std::size_t i) const {
    return std::get<float>(std::get<Number>(parameters[i]));
  }
  std::uint64_t ctas() const {
    return std::uint64_t(grid[0]) * grid[1] * grid[2];
  }
  std::uint64_t warps() const {
    return ctas() * ((block[0] * block[1] * block[2] + 31) / 32);
  }
  void reset_host();
};

/// The twelve kernels, in the order of the report.
std::vector<Case> kernel_cases();
/// What begins before anything is computed: warps that do nothing or store one
/// value, in CTAs of a warp and of eight, launches of one warp, and memory.
std::vector<Case> start_cases();
/// Long runs of one kind of instruction.
std::vector<Case> instruction_cases();

/// Cases of dense arrays (dense_cases.cpp), and of CTAs whose threads work
/// together or on what they find (shared_cases.cpp).
std::vector<Case> dense_cases();
std::vector<Case> shared_cases();

Array random_floats(std::size_t count, std::uint64_t seed, double lo,
                    double hi);
Array random_ints(std::size_t count, std::uint64_t seed, std::int64_t lo,
                  std::int64_t hi);
Array zeros(std::size_t count, Array::Result result, float tolerance = 0);

} // namespace scalar
