// Reduction: what atom, red and cp.reduce.async.bulk do to each element.
#pragma once

#include "kiln/language/tile/reduction.h"
#include "kiln/base/types.h"
#include "sim/program/Program.h"

#include <cstddef>
#include <optional>

namespace kiln::sim {

using ReductionKind = kiln::Reduction;

/// An operation on elements of one type.
struct Reduction {
  ReductionKind kind = ReductionKind::add;
  ptx::ScalarType type = ptx::ScalarType::u32;

  int elementBytes() const { return ptx::sizeBytes(type); }
  /// Whether PTX has the operation for the type: inc and dec are for u32, and,
  /// or and xor for bits and integers.
  bool isKnown() const;
  /// to[i] = to[i] op from[i] for the elements of `bytes`, which are a multiple
  /// of an element's.
  void apply(std::uint8_t *to, const std::uint8_t *from,
             std::size_t bytes) const;
};

/// The operation that .add, .min, ... name; refuses where none is named.
ReductionKind reductionKind(const Decoder &decoder,
                            const ptx::Instruction &instruction);
/// The operation and the type of an instruction.
Reduction decodeReduction(const Decoder &decoder,
                          const ptx::Instruction &instruction);
/// The type of a tensor's elements as PTX names it; nothing where reductions
/// have no such type.
std::optional<ptx::ScalarType> reducedType(Type type);
/// "add", for messages.
const char *name(ReductionKind kind);

} // namespace kiln::sim
