// InstructionSet: rows by opcode.
#include "sim/program/InstructionSet.h"

namespace kiln::sim {

const char *nameOf(Unit unit) {
  switch (unit) {
  case Unit::scalar:
    return "scalar";
  case Unit::floating:
    return "float";
  case Unit::conversion:
    return "conversion";
  case Unit::address:
    return "address";
  case Unit::memory:
    return "memory";
  case Unit::control:
    return "control";
  case Unit::warp:
    return "warp";
  case Unit::barrier:
    return "barrier";
  case Unit::mbarrier:
    return "mbarrier";
  case Unit::copies:
    return "tma";
  case Unit::wgmma:
    return "wgmma";
  case Unit::tcgen05:
    return "tcgen05";
  case Unit::matrix:
    return "matrix";
  }
  return "";
}

InstructionSet::InstructionSet(std::vector<Instruction> rows,
                               FindSpecial findSpecial)
    : rows_(std::move(rows)), findSpecial_(findSpecial) {
  for (const Instruction &row : rows_)
    byOpcode_.emplace(row.opcode, &row);
}

const Instruction *InstructionSet::find(std::string_view opcode) const {
  auto found = byOpcode_.find(opcode);
  return found == byOpcode_.end() ? nullptr : found->second;
}

} // namespace kiln::sim
