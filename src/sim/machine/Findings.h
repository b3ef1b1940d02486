// Findings: how a finding is made, graded and kept, and how it ends a launch.
#pragma once

#include "sim/machine/LaunchConfig.h"
#include "sim/program/Program.h"

#include <optional>

namespace kiln::sim {

/// What a finding is about, beside an instruction.
struct FindingObject {
  const char *space = "";
  std::optional<std::uint64_t> address = std::nullopt;
  std::string name = {};
};

/// Thrown by a unit to end the launch with a finding.
struct Fault {
  Finding finding;
};

class Findings {
public:
  /// `sharedVariables` by name, for messages.
  Findings(const ptx::Module &module, const LaunchConfig &config,
           std::vector<std::pair<std::string, Symbol>> sharedVariables)
      : module_(module), config_(config),
        sharedVariables_(std::move(sharedVariables)) {}

  /// A finding that does not end the launch; told once per instruction.
  void warn(const char *id, const Warp &warp, const Op &op, LaneMask lanes,
            const std::string &message, const FindingObject &object = {});
  /// End the launch with a finding at `op`.
  [[noreturn]] void fault(const char *id, const Warp &warp, const Op &op,
                          LaneMask lanes, const std::string &message,
                          const FindingObject &object = {});
  /// The same where the launch could go on: it does if the caller allows the
  /// id, or takes it for a warning, and with an uninitialized-store always.
  void error(const char *id, const Warp &warp, const Op &op, LaneMask lanes,
             const std::string &message, const FindingObject &object = {});
  /// Whether findings of that id are wanted at all.
  bool isAllowed(const std::string &id) const;
  /// The source line of an instruction, from .loc.
  SourceLine sourceLine(const ptx::Instruction &instruction) const;
  /// A finding at `op` by a thread, and by others of its warp's `lanes`, graded
  /// as the caller wants it.
  Finding make(const char *id, Finding::Grade grade, const Dim3 &cta,
               int thread, LaneMask lanes, const Op &op,
               const std::string &message, const FindingObject &object) const;
  /// The shared variable that an address lies in; null: none.
  const std::pair<std::string, Symbol> *
  sharedVariable(std::uint64_t address) const;
  /// "shared address 1040 (byte 16 of tile)"
  std::string describeShared(std::uint32_t address) const;
  /// "gemm.cpp:12"
  std::string placeOf(const Op &op) const;
  /// A finding that ends the launch, graded as the caller wants it.
  Finding ending(Finding finding) const;

private:
  /// A finding that does not end the launch; told once per instruction.
  void keep(const char *id, Finding::Grade grade, const Warp &warp,
            const Op &op, LaneMask lanes, const std::string &message,
            const FindingObject &object);

  const ptx::Module &module_;
  const LaunchConfig &config_;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
};

} // namespace kiln::sim
