// MultimemInstructions: multimem, whose addresses mean the same memory on
// several devices. There is one here: reducing over all of them is a load, and
// a store or a reduction goes to that one.
#include "sim/units/Units.h"
#include "sim/units/memory/AccessTraits.h"

namespace kiln::sim {

static void decodeMultimem(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  if (instruction.has("ld_reduce"))
    return decodeLoad(decoder, instruction, op);
  if (instruction.has("st"))
    return decodeStore(decoder, instruction, op);
  decodeAtomic(decoder, instruction, op);
}

static void multimemEffect(Decoder &decoder,
                           const ptx::Instruction &instruction,
                           Effect &effect) {
  if (instruction.has("ld_reduce"))
    return laneLoadEffect(decoder, instruction, effect);
  if (instruction.has("st"))
    return storeEffect(decoder, instruction, effect);
  atomicEffect(decoder, instruction, effect);
}

static MemorySemantics
multimemSemantics(const ptx::Instruction &instruction) {
  return instruction.has("red") ? reductionSemantics(instruction)
                                : accessSemantics(instruction);
}

static AddressUse multimemAddresses(const ptx::Instruction &instruction) {
  return instruction.has("ld_reduce") ? readsAt<1>(instruction)
                                      : writesAt<0>(instruction);
}

std::vector<Instruction> multimemInstructions() {
  return {
      {"multimem",
       decodeMultimem,
       Unit::memory,
       "ld_reduce, st and red of every type and vector, on one device",
       "ld_reduce add|min|max|and|or|xor, ORDER global acc::f32|acc::f16 "
       "VECTOR DATA HALF EIGHTS -> ={~t} [a]; "
       "st, ORDER global VECTOR DATA HALF EIGHTS -> [a] {~t}; "
       "red add|min|max|and|or|xor, ORDER global VECTOR DATA HALF -> [a] {~t}",
       {.effect = multimemEffect,
        .semantics = multimemSemantics,
        .addresses = multimemAddresses}},
  };
}

} // namespace kiln::sim
