// Knobs: the environment variables that Kiln reads, but for those of the checks'
// options (kiln/check/options.h), in one table.
//
// `kiln env` prints both tables with the values in force and where they come
// from; nothing else in Kiln calls getenv.
#pragma once

#include "kiln/base/export.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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
  // Of programs that run on Kiln's libraries. What checks can be told is in the
  // table of kiln/check/options.h.
  device, ///< KILN_DEVICE
  status, ///< KILN_STATUS
};

struct KnobInfo {
  Knob knob;
  const char *variable;
  const char *meaning;
  const char *fallback; ///< default in words
};

std::span<const KnobInfo> allKnobs();
const KnobInfo &info(Knob knob);

/// The value of a variable of another table; nothing where it is unset or empty.
std::optional<std::string> readVariable(const std::string &variable);

/// The variable's value; nothing where it is unset or empty.
std::optional<std::string> value(Knob knob);
/// As a non-negative number. Throws UserError with the value where it is none.
std::optional<std::uint64_t> numberValue(Knob knob);
/// on 1 true yes, off 0 false no; nothing where it is none of them.
std::optional<bool> parseSwitch(std::string_view text);
/// As on/off (on 1 true yes / off 0 false no). Throws UserError otherwise.
std::optional<bool> switchValue(Knob knob);

} // namespace kiln
