// Operations: the floating-point operations of an instruction, for those who
// count them.
#pragma once

#include "ptx/Ast.h"

#include <cstdint>
#include <string>

namespace kiln::sim {

struct Operations {
  std::uint64_t perLane = 0; ///< of arithmetic
  std::uint64_t perWarp = 0; ///< of the tensor core
  std::string tensor = {};   ///< its shape and types; empty: it is arithmetic
};

/// Of arithmetic that does so many to each element; none where the type is no
/// float. As Nsight Compute counts: an fma is two.
Operations floatOperations(const ptx::Instruction &instruction, int perElement);
template <int perElement>
Operations floatOperations(const ptx::Instruction &instruction) {
  return floatOperations(instruction, perElement);
}

/// Of a product of matrices, "m16n8k16", that so many warps execute together.
Operations productOperations(const ptx::Instruction &instruction, int warps);
template <int warps>
Operations productOperations(const ptx::Instruction &instruction) {
  return productOperations(instruction, warps);
}

} // namespace kiln::sim
