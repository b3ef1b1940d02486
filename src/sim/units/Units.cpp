// Units: one registry of what all of them execute.
#include "sim/units/Units.h"
#include "sim/machine/SpecialRegisters.h"

namespace kiln::sim {

const InstructionSet &instructionSet() {
  static const InstructionSet set = [] {
    std::vector<Instruction> all;
    for (auto unit :
         {scalarInstructions, floatInstructions, conversionInstructions,
          memoryInstructions, multimemInstructions, addressInstructions,
          controlInstructions, stackInstructions,
          warpInstructions, barrierInstructions, mbarrierInstructions,
          tmaInstructions, wgmmaInstructions, tcgen05Instructions,
          matrixInstructions}) {
      std::vector<Instruction> more = unit();
      all.insert(all.end(), more.begin(), more.end());
    }
    return InstructionSet(std::move(all), findSpecialRegister);
  }();
  return set;
}

} // namespace kiln::sim
