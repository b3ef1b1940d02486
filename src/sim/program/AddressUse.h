// AddressUse: what an instruction does with the addresses that it is given.
//
// An address stays one where it is moved or something is added to it; loads,
// stores and copies tell what lies behind it. The decoder has no need of this:
// it is for those who follow an address through a program that does not run
// (launch/Outline).
#pragma once

#include <cstdint>

namespace kiln::ptx {
struct Instruction;
}

namespace kiln::sim {

/// Operands by their numbers, a bit each.
using OperandSet = std::uint8_t;

struct AddressUse {
  OperandSet passed = 0; ///< the result is one of them, or points near it
  OperandSet read = 0, written = 0; ///< memory is, at these addresses
  OperandSet maps = 0;              ///< tensor maps lie at these
  bool isSum = false;               ///< something is added to what is passed
  bool isConverted = false; ///< what is passed is an address for certain

  static bool has(OperandSet set, std::size_t operand) {
    return operand < 8 && (set >> operand & 1);
  }
};

// For those who describe an instruction, whose address is operand number N.

template <OperandSet Operands, bool IsSum = false>
AddressUse passesOn(const ptx::Instruction &) {
  return {.passed = Operands, .isSum = IsSum};
}
template <int N> AddressUse readsAt(const ptx::Instruction &) {
  return {.read = OperandSet(1 << N)};
}
template <int N> AddressUse writesAt(const ptx::Instruction &) {
  return {.written = OperandSet(1 << N)};
}
template <int N> AddressUse changesAt(const ptx::Instruction &) {
  return {.read = OperandSet(1 << N), .written = OperandSet(1 << N)};
}

} // namespace kiln::sim
