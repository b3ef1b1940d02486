// Needs: which .target and which .version an instruction needs.
//
// The table (NeedsTable.cpp) has a row for each group of forms that came
// together; an instruction needs what every row says that it matches. ptxas is
// the judge: tests/unit/isa/ptxas_answers.txt has what it takes.
#pragma once

#include "isa/Target.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {
namespace isa {

/// A row as it is written.
struct NeedsRow {
  std::string_view opcodes; ///< "ld|st"; "*" for all; "%clusterid"
  /// What the instruction has in this order, "arrive|arrive_drop !noComplete":
  /// one of each, and nothing behind a `!`. Empty: anything.
  std::string_view modifiers;
  int version; ///< ten times PTX's own
  /// One of which the module's target must include; some since a version of
  /// their own: "sm_90 sm_89:81". Empty: any.
  std::string_view targets;
  int operands = 0; ///< 0: any number
};
/// All rows, for reading once.
std::span<const NeedsRow> needsTable();

/// An instruction as its text says it, or a special register (its name as the
/// opcode, and nothing else).
struct Spelled {
  std::string_view opcode;
  std::vector<std::string_view> modifiers;
  int operands = 0;
};
/// Whether what a row says is about the instruction.
bool matches(const NeedsRow &row, const Spelled &instruction);
/// Of "@%p1 tcgen05.mma.cta_group::1.kind::f16 [a], b;".
Spelled spell(std::string_view statement);
/// Of each statement of PTX without comments, such as the inside of an asm.
std::vector<Spelled> spellAll(std::string_view text);

/// What a module lacks for an instruction.
struct Lack {
  std::string what;    ///< "wgmma.mma_async"
  int version;         ///< that it needs; 0: it is the target that lacks it
  std::string targets; ///< "sm_90a"
  /// ".target sm_90a", ".version 8.6 or newer"
  std::string needed() const;
};
/// The first that a module of that target and version lacks. Version 0: the
/// module does not say one, and lacks none; so it is with no target.
std::optional<Lack> findLack(const Spelled &instruction,
                             const std::optional<Target> &target, int version);

/// The version that the instruction needs where the target takes it; 0: any.
int neededVersion(const Spelled &instruction, const Target &target);

} // namespace isa
} // namespace kiln
