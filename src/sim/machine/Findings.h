// Findings: how a finding is made, graded and kept, and how it ends a launch.
#pragma once

#include "sim/findings/FindingId.h"
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

/// Thrown by a unit that cannot execute an instruction.
struct Unexecuted {};

/// The launch ends with a finding.
struct Fault : Unexecuted {
  explicit Fault(Finding finding) : finding(std::move(finding)) {}
  Finding finding;
};

/// The instruction is left out, since the caller allows what is wrong with it.
struct LeftOut : Unexecuted {};

class Findings {
public:
  /// `sharedVariables` by name, for messages.
  Findings(const ptx::Module &module, const LaunchConfig &config,
           std::vector<std::pair<std::string, Symbol>> sharedVariables);

  /// A finding at `op`. It ends the launch where its row says so and the caller
  /// neither allows the id nor takes it for a warning; else it is told once per
  /// instruction, or once per `cause` where there is one, and the instruction
  /// goes on.
  void report(FindingId id, const Warp &warp, const Op &op, LaneMask lanes,
              const std::string &message, const FindingObject &object = {},
              const Op *cause = nullptr);
  /// The same where the instruction cannot go on: where the launch does, the
  /// instruction is left out.
  [[noreturn]] void fault(FindingId id, const Warp &warp, const Op &op,
                          LaneMask lanes, const std::string &message,
                          const FindingObject &object = {});
  /// Whether findings of that id are wanted at all.
  bool isAllowed(FindingId id) const;
  /// The source line of an instruction, from .loc: where functions were inlined
  /// the innermost line of the kernel's own file.
  SourceLine sourceLine(const ptx::Instruction &instruction) const;
  /// From the innermost function that was inlined out to the kernel, which
  /// follows the innermost where there are many; empty where none was.
  std::vector<Finding::Frame>
  stackOf(const ptx::Instruction &instruction) const;
  /// A finding at `op` by a thread, and by others of its warp's `lanes`, graded
  /// as the caller wants it.
  Finding make(FindingId id, const Dim3 &cta, int thread, LaneMask lanes,
               const Op &op, const std::string &message,
               const FindingObject &object) const;
  /// The shared variable that an address lies in; null: none.
  const std::pair<std::string, Symbol> *
  sharedVariable(std::uint64_t address) const;
  /// "shared address 1040 (byte 16 of tile)"; of what the kernel has named
  /// "v_empty[1] (shared address 1040, declared at gemm.cpp:30)".
  std::string describeShared(std::uint32_t address) const;
  /// Its name, with the number of the element; else of the variable that it is
  /// in, or empty.
  std::string sharedName(std::uint32_t address) const;
  /// "; they were read at gemm.cpp:12: byte 16 of tile"; empty: nobody knows.
  std::string originText(const Warp &warp, std::uint32_t origin) const;
  /// "gemm.cpp:12"
  std::string placeOf(const Op &op) const;
  /// As the row says, or the caller.
  Finding::Grade gradeOf(FindingId id) const;
  /// A finding that ends the launch whatever the caller says, for nobody can
  /// go on: graded as the caller wants it, a note where he allows it.
  Finding ending(FindingId id, Finding finding) const;

private:
  /// Whether a finding of that id ends the launch.
  bool isEnd(FindingId id) const;

  /// An object of the launch's contract, which of them, and the byte in it.
  struct Named {
    const SharedObject *object;
    std::string name;
    std::uint64_t byte;
  };
  /// Every one that lies at `address`.
  std::vector<Named> namedAt(std::uint32_t address) const;
  SourceLine lineOf(const ptx::SourceRef &source) const;
  const ptx::Function *functionOf(const ptx::Instruction &instruction) const;

  const ptx::Module &module_;
  const LaunchConfig &config_;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
  std::uint64_t dynamicShared_ = 0; ///< where the dynamic memory begins
};

} // namespace kiln::sim
