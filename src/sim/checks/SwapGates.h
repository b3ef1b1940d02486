// SwapGates: loops of atom.cas that store only what is greater, or less.
//
// A maximum of floats is made so: `old = *p; while (old < value) { found =
// atomicCAS(p, old, value); if (found == old) break; old = found; }`. The value
// of the plain load decides whether there is anything to store. Where every way
// to the atom.cas passes that comparison with the very value that it stores,
// and all go by it the same way, the place only grows: who leaves because of
// what it held earlier would leave because of what it holds now. Anybody else
// who leaves by the plain value relies on more.
#pragma once

#include "sim/program/Program.h"

#include <set>

namespace kiln::sim {

class SwapGates {
public:
  /// `ops` are those of the function among `all`, in order; `swaps` the
  /// atom.cas at the address of the load.
  SwapGates(const Op *all, const std::vector<const Op *> &ops,
            const std::vector<const Op *> &swaps, const Op &load);

  /// Whether it compares what was read with what atom.cas stores.
  bool isGate(const Op &op) const { return gates_.contains(&op); }
  /// Whether no way leads to atom.cas but by such comparisons, all alike.
  bool areAllAlike() const;

private:
  void findCopies(std::set<int> &registers, bool isBackwards) const;
  bool isComparison(const Op &op) const;
  /// Whether nothing but branches goes by its answer.
  bool isForBranches(const Op &op) const;
  const Op *gateOf(const Op &branch) const;
  /// Whether an atom.cas is reached from there, past no gate and no load.
  bool leadsToSwap(std::size_t from) const;
  /// Whether what is stored is greater (1) or less (-1) where a branch leads to
  /// atom.cas; 0: both ways do, or none.
  int direction(const Op &branch, const Op &gate) const;
  std::size_t indexOf(const Op &op) const;

  const Op *all_;
  const std::vector<const Op *> &ops_, &swaps_;
  const Op &load_;
  std::set<int> read_, stored_; ///< registers of the PTX
  std::set<const Op *> gates_;
};

} // namespace kiln::sim
