// EntryRegisters: the registers per thread that an entry is launched with.
#pragma once

#include "kiln/check/sim.h"
#include "ptx/Ast.h"

#include <functional>

namespace kiln::sim {

struct EntryRegisters {
  int count = 0; ///< per thread; 0: nobody says
  const char *from = "";
};

/// As ptxas gives them, where one is found and takes the PTX; else 0.
int registersByPtxas(std::string_view text, const ptx::Module &module,
                     const ptx::Function &entry);

/// Registers per thread that setmaxnreg starts from; none where ptxas would
/// ignore it. `byPtxas` is asked where it matters; 0: it does not say.
EntryRegisters registersAtEntry(const ptx::Function &entry,
                                const SimOptions &options,
                                const std::function<int()> &byPtxas);

/// Registers per thread that a GPU would hand out: those of the launch where
/// somebody has said them, else as ptxas gives them where one is found, else
/// `atEntry`.
EntryRegisters profiledRegisters(const EntryRegisters &atEntry,
                                 const std::function<int()> &byPtxas);

/// At most so many: what .maxnreg says, or what the largest CTA leaves.
int mostRegisters(const ptx::Function &entry, const DeviceDescription &device);

} // namespace kiln::sim
