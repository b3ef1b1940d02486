// EntryRules: directives of an entry held against a launch.
#include "sim/program/EntryRules.h"
#include "isa/PtxVersion.h"
#include "sim/findings/FindingId.h"
#include "support/Error.h"
#include "support/LaunchShape.h"

namespace kiln::sim {

/// The sizes that a directive names, 1 where it leaves one out; nothing where
/// the entry does not have it.
static std::optional<Dim3> shapeOf(const ptx::Function &entry,
                                   const char *directive) {
  auto found = entry.directives.find(directive);
  if (found == entry.directives.end())
    return std::nullopt;
  Dim3 shape = {1, 1, 1};
  for (std::size_t i = 0; i < found->second.size() && i < 3; ++i)
    shape[i] = static_cast<std::uint32_t>(found->second[i]);
  return shape;
}

std::uint64_t threadsOf(const ptx::Function &entry, const char *directive) {
  return volume(shapeOf(entry, directive).value_or(Dim3{1, 1, 1}));
}

Dim3 clusterOf(const ptx::Function &entry, const Dim3 &launched) {
  Dim3 required = shapeOf(entry, "reqnctapercluster").value_or(launched);
  if (launched != Dim3{1, 1, 1} && launched != required)
    userError("{} is launched with clusters of {}; its PTX requires {}",
              entry.name, formatShape(launched), formatShape(required));
  return required;
}

void checkBlock(const ptx::Function &entry, const Dim3 &block) {
  Dim3 required = shapeOf(entry, "reqntid").value_or(block);
  if (block != required)
    userError("{} is launched with blocks of {}; its PTX requires {} "
              "(.reqntid)",
              entry.name, formatShape(block), formatShape(required));
  if (entry.directives.contains("maxntid") &&
      volume(block) > threadsOf(entry, "maxntid"))
    userError("{} is launched with blocks of {} threads; its PTX allows {} "
              "(.maxntid)",
              entry.name, volume(block), threadsOf(entry, "maxntid"));
}

std::optional<Finding> checkVersion(const ptx::Module &module) {
  if (module.version() <= isa::newestPtxVersion())
    return std::nullopt;
  return Finding{.id = std::string(rowOf(FindingId::ptxVersion).id),
                 .grade = rowOf(FindingId::ptxVersion).grade,
                 .message = fmt::format(
                     "the PTX is of version {} and the simulator knows {}: "
                     "what is newer may mean something else",
                     isa::ptxVersionText(module.version()),
                     isa::ptxVersionText(isa::newestPtxVersion())),
                 .where = {"PTX", static_cast<unsigned>(module.versionLine)},
                 .ptx_line = module.versionLine};
}

} // namespace kiln::sim
