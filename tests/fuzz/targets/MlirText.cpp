// mlir_text: what stands between a stranger's MLIR and MLIR's own parser, which
// is LLVM's to fuzz: how deep the text nests and what its aliases stand for.
#include "fuzz/Target.h"
#include "kiln/base/text.h"

namespace kiln::fuzz {

void runMlirText(std::string_view input) {
  check_nesting(input, TextFormat::mlir, "input.mlir");
}

} // namespace kiln::fuzz
