// Disassemble: machine code as text, by the toolkit's own programs.
#include "kiln/run/assemble.h"
#include "ptx/tools/FindTool.h"
#include "ptx/tools/Process.h"
#include "ptx/tools/TemporaryFolder.h"
#include "support/Error.h"

namespace kiln {

static constexpr std::chrono::minutes kTimeLimit{2};

/// The command that prints the code of `cubin`.
static std::vector<std::string> disassembler(const std::string &cubin,
                                             const AssembleOptions &options) {
  std::string ptxas = find_ptxas(options).value_or("");
  if (std::optional<std::string> path = findBesidePtxas("cuobjdump", ptxas))
    return {*path, "-sass", cubin};
  if (std::optional<std::string> path = findBesidePtxas("nvdisasm", ptxas))
    return {*path, cubin};
  runtimeError("there is neither cuobjdump nor nvdisasm beside ptxas, in "
               "CUDA_HOME/bin or on PATH; install the CUDA toolkit's binary "
               "utilities to see machine code");
}

std::string disassemble(const Assembly &assembly,
                        const AssembleOptions &options) {
  TemporaryFolder folder;
  std::string_view bytes(reinterpret_cast<const char *>(assembly.cubin.data()),
                         assembly.cubin.size());
  std::string cubin = folder.write("kernel.cubin", bytes).string();
  std::vector<std::string> command = disassembler(cubin, options);
  ProcessResult result = runProcess(command, kTimeLimit);
  if (result.exitCode != 0)
    runtimeError("'{}' failed with exit status {} on {} bytes of machine "
                 "code; it said: {}",
                 command.front(), result.exitCode, bytes.size(), result.output);
  return result.output;
}

} // namespace kiln
