// without_compiler: the commands of a build without the compiler, which say what
// is missing.
#include "commands.h"

#include <fmt/format.h>

namespace kiln::cli {

static constexpr const char *kNeedCompiler[] = {
    "gemm", "attention", "grouped-gemm", "emit", "bench", "tune"};

void add_compiler_commands(Command app, Action &action) {
  for (const char *name : kNeedCompiler) {
    Command command = app.add_subcommand(name, "needs Kiln's compiler");
    command.any_words();
    command.callback([&action, name] {
      action = [name]() -> ExitStatus {
        throw RuntimeError(fmt::format(
            "`kiln {}` needs Kiln's compiler, which this installation does not "
            "have: install the distribution kiln-gpu-compiler",
            name));
      };
    });
  }
}

std::string version_line() {
  return "kiln " KILN_VERSION " (without the compiler)";
}

} // namespace kiln::cli
