// AddressSpaces: from modifiers to spaces.
#include "sim/program/AddressSpaces.h"

namespace kiln::sim {

Space spaceOf(const ptx::Instruction &instruction) {
  for (const std::string &modifier : instruction.modifiers) {
    if (modifier == "global" || modifier == "const")
      return Space::global;
    if (modifier == "shared" || modifier == "shared::cta" ||
        modifier == "shared::cluster")
      return Space::shared;
    if (modifier == "local")
      return Space::local;
    if (modifier == "param" || modifier == "param::entry" ||
        modifier == "param::func")
      return Space::param;
  }
  return Space::generic;
}

} // namespace kiln::sim
