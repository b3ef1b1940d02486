// TargetNeeds: every instruction against the table (isa/Needs.h).
#include "sim/program/TargetNeeds.h"

#include "isa/Needs.h"
#include "isa/PtxVersion.h"
#include "sim/program/flow/Reachable.h"
#include "support/Error.h"

#include <fmt/format.h>

namespace kiln::sim {

static constexpr int kMostTold = 20;

namespace {
/// The instructions of an entry that lack something.
class Lacks {
public:
  explicit Lacks(const ptx::Module &module)
      : module_(module), target_(isa::findTarget(module.target)) {}

  void check(const ptx::Instruction &instruction);
  /// Throws where there are some.
  void tell(const ptx::Function &entry) const;

private:
  void add(const ptx::Instruction &instruction, const isa::Lack &lack);
  void checkSpecials(const ptx::Instruction &instruction,
                     const ptx::Operand &operand);

  const ptx::Module &module_;
  std::optional<isa::Target> target_;
  isa::Spelled spelled_; ///< one for all: there may be a million
  std::string told_;
  int count_ = 0;
};
} // namespace

void Lacks::add(const ptx::Instruction &instruction, const isa::Lack &lack) {
  if (++count_ > kMostTold)
    return;
  told_ += fmt::format(
      "\n  line {}: {}\n    {} needs {}; this module says {}", instruction.line,
      instruction.text, lack.what, lack.needed(),
      lack.version ? isa::ptxVersionText(module_.version()) : module_.target);
}

void Lacks::checkSpecials(const ptx::Instruction &instruction,
                          const ptx::Operand &operand) {
  for (const ptx::Operand &element : operand.elements)
    checkSpecials(instruction, element);
  if (operand.kind != ptx::Operand::Kind::special)
    return;
  std::string_view name = operand.name;
  isa::Spelled special{name.substr(0, name.find('.')), {}, 0};
  if (auto lack = isa::findLack(special, target_, module_.version()))
    add(instruction, *lack);
}

void Lacks::check(const ptx::Instruction &instruction) {
  spelled_.opcode = instruction.opcode;
  spelled_.modifiers.assign(instruction.modifiers.begin(),
                            instruction.modifiers.end());
  spelled_.operands = static_cast<int>(instruction.operands.size());
  if (auto lack = isa::findLack(spelled_, target_, module_.version()))
    add(instruction, *lack);
  for (const ptx::Operand &operand : instruction.operands)
    checkSpecials(instruction, operand);
}

void Lacks::tell(const ptx::Function &entry) const {
  int version = module_.version();
  if (target_ && version && version < target_->since())
    userErrorAt({"PTX", static_cast<unsigned>(module_.versionLine)},
                "PTX {} does not know the target {}; it came with {}",
                isa::ptxVersionText(version), module_.target,
                isa::ptxVersionText(target_->since()));
  if (count_)
    userErrorAt({"PTX", static_cast<unsigned>(entry.line)},
                "{} cannot be assembled, {} instruction{} another .target or "
                ".version (--target-check off simulates {} all the same):{}{}",
                entry.name, count_, count_ == 1 ? " needs" : "s need",
                count_ == 1 ? "it" : "them", told_,
                count_ > kMostTold ? "\n  ..." : "");
}

void checkNeeds(const ptx::Module &module, const ptx::Function &entry) {
  Lacks lacks(module);
  for (const ptx::Function *function : reachableFrom(module, entry).functions)
    for (const ptx::Instruction &instruction : function->body)
      lacks.check(instruction);
  lacks.tell(entry);
}

} // namespace kiln::sim
