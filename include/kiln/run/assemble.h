// assemble.h: PTX to machine code with ptxas, where one is found.
//
// Nothing needs this to run a kernel: the driver assembles PTX by itself. It is
// how registers, spills and ptxas' warnings are seen ahead of time. Warnings of
// the C75xx family mean a kernel that is right and several times slower than it
// was written to be (a serialised wgmma, an ignored setmaxnreg), so they are
// errors unless allowed by name.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

struct AssembleOptions {
  std::string ptxas; ///< path; empty: KILN_PTXAS, CUDA_HOME, PATH
  std::string target = "sm_90a";
  std::vector<std::string> allow; ///< diagnostic ids not to fail on: "C7508"
  bool use_cache = true;
};

/// What a kernel takes of the machine, as ptxas counts it.
struct ResourceUse {
  int registers = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
  int static_smem_bytes = 0;
  int barriers = 0;
  int constant_bytes = 0;

  bool operator==(const ResourceUse &) const = default;
};

/// One message of ptxas, with its place in the kernel's source. Where there is
/// an nvdisasm, also of a wgmma.wait_group that it moved up, before arithmetic
/// that was to run beside the products.
struct AssembleDiagnostic {
  std::string id;       ///< "C7508"; empty where ptxas gave none
  std::string severity; ///< "info", "warning", "error", "fatal"
  std::string message;  ///< ptxas' own words
  std::string cause;    ///< ours: why it happens and what to do; may be empty
  std::string function; ///< the entry it speaks of, where it names one
  int ptx_line = 0;     ///< 0: none
  SourceLine where;     ///< from the PTX's .loc at that line

  std::string to_string() const;
};

struct Assembly {
  std::vector<std::byte> cubin;
  ResourceUse resources; ///< of the entry asked for
  std::vector<AssembleDiagnostic> diagnostics;
  std::string ptxas_version; ///< "13.0.88"
};

/// The ptxas that would be used, or nothing.
std::optional<std::string> find_ptxas(const AssembleOptions &options = {});

/// Assemble. Throws UserError where ptxas refuses the PTX or says something of
/// the C75xx family that is not allowed; RuntimeError where there is no ptxas.
/// `entry` says whose resources are reported; empty: the only entry.
Assembly assemble(std::string_view ptx, std::string_view entry = {},
                  const AssembleOptions &options = {});

/// Machine code as text, by the cuobjdump or nvdisasm beside the ptxas that
/// `options` mean, else of the toolkit. Throws RuntimeError where neither is
/// found.
std::string disassemble(const Assembly &assembly,
                        const AssembleOptions &options = {});

} // namespace kiln
