// Reachable: the functions and variables that a launch of an entry may use.
//
// A module may hold many entries, and ptxas gives each only the shared memory
// that it can reach. Reaching is by name: a call, an address that is taken, a
// table of targets, an initialiser that holds an address. A call by a pointer
// reaches every function of the module whose address is taken.
#pragma once

#include "ptx/Ast.h"

#include <set>

namespace kiln::sim {

struct Reachable {
  std::vector<const ptx::Function *> functions; ///< with bodies; entry first
  std::set<std::string> variables;              ///< of the module
};

Reachable reachableFrom(const ptx::Module &module, const ptx::Function &entry);

} // namespace kiln::sim
