// compiler_commands: the commands that the compiler has part in.
#include "commands.h"

#include <kiln/run/compile.h>

namespace kiln::cli {

void add_compiler_commands(Command app, Action &action) {
  add_gemm_command(app, action);
  add_attention_command(app, action);
  add_grouped_gemm_command(app, action);
  add_emit_command(app, action);
  add_bench_command(app, action);
  add_tune_command(app, action);
}

std::string version_line() { return "kiln " + version(); }

} // namespace kiln::cli
