// Knobs: every environment variable Kiln reads, in one table.
//
// `kiln env` prints this table with the values in force and where they come
// from; nothing else in Kiln calls getenv.
#pragma once

#include "kiln/base/export.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace KILN_API kiln {

enum class Knob {
  cache,        ///< KILN_CACHE: on | off
  cacheDir,     ///< KILN_CACHE_DIR
  cacheLimitMb, ///< KILN_CACHE_LIMIT_MB
  tuneDb,       ///< KILN_TUNE_DB
  ptxas,        ///< KILN_PTXAS
  xdgCacheHome, ///< XDG_CACHE_HOME
  home,         ///< HOME
  cudaHome,     ///< CUDA_HOME, else CUDA_PATH
  path,         ///< PATH
  noColor,      ///< NO_COLOR
  // Of programs that run on Kiln's CUDA libraries; options of `kiln run`.
  order,           ///< KILN_ORDER
  seed,            ///< KILN_SEED
  checks,          ///< KILN_CHECKS
  threads,         ///< KILN_THREADS
  gpu,             ///< KILN_GPU
  maxInstructions, ///< KILN_MAX_INSTRUCTIONS
  timeLimit,       ///< KILN_TIME_LIMIT
  allow,           ///< KILN_ALLOW
  warn,            ///< KILN_WARN
  kernel,          ///< KILN_KERNEL
  launch,          ///< KILN_LAUNCH
  capture,         ///< KILN_CAPTURE
  device,          ///< KILN_DEVICE
  report,          ///< KILN_REPORT
  status,          ///< KILN_STATUS
};

struct KnobInfo {
  Knob knob;
  const char *variable;
  const char *meaning;
  const char *fallback; ///< default in words
};

std::span<const KnobInfo> allKnobs();
const KnobInfo &info(Knob knob);

/// The variable's value; nothing where it is unset or empty.
std::optional<std::string> value(Knob knob);
/// As a non-negative number. Throws UserError with the value where it is none.
std::optional<std::uint64_t> numberValue(Knob knob);
/// As on/off (on 1 true yes / off 0 false no). Throws UserError otherwise.
std::optional<bool> switchValue(Knob knob);

} // namespace kiln
