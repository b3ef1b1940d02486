// Link: rename what is private, then take the definitions together.
#include "ptx/Link.h"
#include "isa/Target.h"
#include "support/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kiln::ptx {

namespace {
using Renaming = std::unordered_map<std::string, std::string>;

/// Gives the private names of a module that others have too a suffix.
class Renamer {
public:
  explicit Renamer(Renaming names) : names_(std::move(names)) {}

  void apply(Module &module) {
    for (Variable &variable : module.variables)
      apply(variable);
    for (Function &function : module.functions)
      apply(function);
    std::map<std::string, std::string> aliases;
    for (const auto &[alias, target] : module.aliases) {
      std::string name = alias, function = target;
      rename(name);
      rename(function);
      aliases.emplace(std::move(name), std::move(function));
    }
    module.aliases = std::move(aliases);
  }

private:
  void rename(std::string &name) const {
    if (auto found = names_.find(name); found != names_.end())
      name = found->second;
  }
  void apply(Variable &variable) const {
    rename(variable.name);
    for (Variable::Relocation &relocation : variable.relocations)
      rename(relocation.symbol);
  }
  void apply(Function &function) {
    rename(function.name);
    own_.clear();
    for (auto *list :
         {&function.parameters, &function.results, &function.locals})
      for (Variable &variable : *list) {
        own_.insert(variable.name);
        for (Variable::Relocation &relocation : variable.relocations)
          rename(relocation.symbol);
      }
    for (Instruction &instruction : function.body)
      for (Operand &operand : instruction.operands)
        apply(operand);
    for (auto &[table, targets] : function.callTargets)
      for (std::string &target : targets)
        rename(target);
  }
  void apply(Operand &operand) const {
    for (Operand &element : operand.elements)
      apply(element);
    if (operand.kind == Operand::Kind::symbol && !own_.contains(operand.name))
      rename(operand.name);
  }

  Renaming names_;
  std::set<std::string> own_; ///< names of the function at hand
};

bool isPrivate(const Variable &variable) {
  return !variable.isVisible && !variable.isExtern;
}
bool isPrivate(const Function &function) {
  return !function.isVisible && !function.isEntry && function.hasBody;
}

template <typename Body> void forEachName(Module &module, Body &&body) {
  for (Variable &variable : module.variables)
    body(variable.name, isPrivate(variable));
  for (Function &function : module.functions)
    body(function.name, isPrivate(function));
}

/// Source files are numbered by module.
void renumberFiles(Module &module, int first) {
  std::map<int, std::string> files;
  for (auto &[number, path] : module.files)
    files.emplace(number + first, std::move(path));
  module.files = std::move(files);
  auto renumber = [&](SourceRef &source) {
    if (source.file)
      source.file += first;
  };
  for (Function &function : module.functions) {
    for (Instruction &instruction : function.body)
      renumber(instruction.source);
    for (Inlined &inlined : function.inlined)
      renumber(inlined.at);
  }
}

/// Labels of .debug_str are the module's own, and the same in each.
void renameDebugStrings(Module &module, std::size_t number) {
  auto renamed = [&](const std::string &label) {
    return fmt::format("{}$module{}", label, number);
  };
  std::map<std::string, std::string> strings;
  for (auto &[label, text] : module.debugStrings)
    strings.emplace(renamed(label), std::move(text));
  module.debugStrings = std::move(strings);
  for (Function &function : module.functions)
    for (Inlined &inlined : function.inlined)
      inlined.name = renamed(inlined.name);
}
} // namespace

[[noreturn]] static void failTwice(const char *kind, const std::string &name) {
  userError("the {} '{}' is defined in two of the modules that are linked; "
            "one of them must be static or weak",
            kind, name);
}

static void takeVariable(Module &into, Variable &&variable) {
  auto [place, isNew] =
      into.variableIndex.try_emplace(variable.name, into.variables.size());
  if (isNew) {
    into.variables.push_back(std::move(variable));
    return;
  }
  Variable &old = into.variables[place->second];
  if (old.isExtern && !variable.isExtern)
    old = std::move(variable);
  else if (!old.isExtern && !variable.isExtern && !variable.isWeak) {
    if (!old.isWeak)
      failTwice("variable", variable.name);
    old = std::move(variable);
  }
}

static void takeFunction(Module &into, Function &&function) {
  auto [place, isNew] =
      into.functionIndex.try_emplace(function.name, into.functions.size());
  if (isNew) {
    into.functions.push_back(std::move(function));
    return;
  }
  Function &old = into.functions[place->second];
  if (!old.hasBody && function.hasBody)
    old = std::move(function);
  else if (old.hasBody && function.hasBody && !function.isWeak) {
    if (!old.isWeak)
      failTwice("function", function.name);
    old = std::move(function);
  }
}

/// A variable that is wanted and that nobody has. Shared arrays without a size
/// are the launch's.
static void checkExterns(const Module &module) {
  for (const Variable &variable : module.variables)
    if (variable.isExtern && variable.space != StateSpace::shared)
      userError("the variable '{}' is wanted by one of the modules that are "
                "linked, and none of them has it",
                variable.name);
}

/// Whether what `module` is for has all that `other` is for.
static bool includesTarget(const Module &module, const Module &other) {
  auto own = isa::findTarget(module.target);
  auto needed = isa::findTarget(other.target);
  return !needed || (own && isa::includes(*own, *needed));
}

Module link(std::vector<Module> modules) {
  if (modules.size() == 1)
    return std::move(modules.front());
  std::map<std::string, int> uses;
  for (Module &module : modules)
    forEachName(module, [&](const std::string &name, bool) { ++uses[name]; });
  Module result;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    Module &module = modules[i];
    Renaming names;
    forEachName(module, [&](const std::string &name, bool isOwn) {
      if (isOwn && uses[name] > 1)
        names.emplace(name, fmt::format("{}$module{}", name, i + 1));
    });
    if (!names.empty())
      Renamer(std::move(names)).apply(module);
    if (!result.files.empty())
      renumberFiles(module, result.files.rbegin()->first);
    renameDebugStrings(module, i + 1);
    result.files.merge(module.files);
    result.debugStrings.merge(module.debugStrings);
    result.aliases.merge(module.aliases);
    if (i == 0 || module.version() > result.version()) {
      result.versionMajor = module.versionMajor;
      result.versionMinor = module.versionMinor;
      result.versionLine = module.versionLine;
    }
    if (includesTarget(module, result)) {
      result.target = module.target;
      result.targetLine = module.targetLine;
    }
    for (Variable &variable : module.variables)
      takeVariable(result, std::move(variable));
    for (Function &function : module.functions)
      takeFunction(result, std::move(function));
  }
  checkExterns(result);
  return result;
}

} // namespace kiln::ptx
