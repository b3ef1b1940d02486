// EntryRegisters: ask ptxas, else the directives.
#include "sim/launch/EntryRegisters.h"
#include "kiln/run/assemble.h"
#include "ptx/tools/Diagnostics.h"
#include "sim/program/EntryRules.h"

#include <algorithm>

namespace kiln::sim {

static constexpr const char *kFromLaunch = "the launch", *kFromPtxas = "ptxas";

int registersByPtxas(std::string_view text, const ptx::Module &module,
                     const ptx::Function &entry) {
  AssembleOptions options;
  options.target = module.target;
  // Slow code has registers too; not so where ptxas ignores setmaxnreg.
  for (const KnownDiagnostic &diagnostic : knownDiagnostics())
    if (std::string_view(diagnostic.instruction) != "setmaxnreg")
      options.allow.push_back(diagnostic.id);
  try {
    if (!text.empty() && find_ptxas(options))
      return assemble(text, entry.name, options).resources.registers;
  } catch (const Error &) {
    // What ptxas says against the PTX is not the simulator's to tell.
  }
  return 0;
}

/// The hardware gives registers to threads in units: 255 are 256.
static int roundUpToUnit(int registers) {
  constexpr int kUnit = 8;
  return (registers + kUnit - 1) / kUnit * kUnit;
}

/// The largest number that a setmaxnreg of the entry names; 0: it has none.
static int mostAskedFor(const ptx::Function &entry) {
  std::uint64_t most = 0;
  for (const ptx::Instruction &instruction : entry.body)
    if (instruction.opcode == "setmaxnreg" && !instruction.operands.empty())
      most = std::max(most, instruction.operands[0].bits);
  return static_cast<int>(
      std::min<std::uint64_t>(most, DeviceDescription::max_role_registers));
}

/// The first number of a directive; 0: it has none.
static int directiveOf(const ptx::Function &entry, const char *name) {
  auto found = entry.directives.find(name);
  return found == entry.directives.end() || found->second.empty()
             ? 0
             : found->second[0];
}

int mostRegisters(const ptx::Function &entry, const DeviceDescription &device) {
  if (int most = directiveOf(entry, "maxnreg"))
    return std::min(most, device.max_registers_per_thread);
  std::uint64_t threads =
      std::max(threadsOf(entry, "reqntid"), threadsOf(entry, "maxntid"));
  if (threads <= 1)
    threads = static_cast<std::uint64_t>(device.max_threads_per_cta);
  auto registers = static_cast<int>(
      static_cast<std::uint64_t>(device.registers_per_sm) / threads / 8 * 8);
  return std::min(registers, device.max_registers_per_thread);
}

/// Before they are rounded up to what the hardware hands out.
static EntryRegisters registersSaid(const ptx::Function &entry,
                                    const SimOptions &options,
                                    const std::function<int()> &byPtxas) {
  if (options.registers_at_entry)
    return {options.registers_at_entry, kFromLaunch};
  auto find = [&](const char *name) { return directiveOf(entry, name); };
  const char *threadsFrom = find("reqntid")   ? "reqntid"
                            : find("maxntid") ? "maxntid"
                                              : nullptr;
  bool isMoving = std::any_of(entry.body.begin(), entry.body.end(),
                              [](const ptx::Instruction &instruction) {
                                return instruction.opcode == "setmaxnreg";
                              });
  if (!find("maxnreg") && !threadsFrom)
    return {};
  // Assembling takes longer than many a launch: only where it matters.
  if (isMoving || options.co_resident)
    if (int count = byPtxas())
      return {count, kFromPtxas};
  if (int most = find("maxnreg"))
    return {std::min(most, options.device.max_registers_per_thread),
            ".maxnreg"};
  std::uint64_t threads = threadsOf(entry, threadsFrom);
  int ctas = std::max(find("minnctapersm"), 1);
  auto registers = static_cast<int>(
      static_cast<std::uint64_t>(options.device.registers_per_sm / ctas) /
      threads / 8 * 8);
  // ptxas gives no thread more than the kernel itself will ask for.
  if (int most = mostAskedFor(entry))
    registers = std::min(registers, most);
  bool isRequired = std::string_view(threadsFrom) == "reqntid";
  return {std::min(registers, options.device.max_registers_per_thread),
          isRequired ? ".reqntid and .minnctapersm"
                     : ".maxntid and .minnctapersm"};
}

EntryRegisters profiledRegisters(const EntryRegisters &atEntry,
                                 const std::function<int()> &byPtxas) {
  std::string_view from = atEntry.from;
  if (from == kFromLaunch || from == kFromPtxas)
    return atEntry;
  int count = byPtxas();
  return count ? EntryRegisters{roundUpToUnit(count), kFromPtxas} : atEntry;
}

EntryRegisters registersAtEntry(const ptx::Function &entry,
                                const SimOptions &options,
                                const std::function<int()> &byPtxas) {
  EntryRegisters result = registersSaid(entry, options, byPtxas);
  result.count = roundUpToUnit(result.count);
  return result;
}

} // namespace kiln::sim
