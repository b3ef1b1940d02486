// Knobs: the table of environment variables, and the only calls of getenv.
#include "support/Knobs.h"

#include "support/Error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace kiln {

static constexpr std::array<KnobInfo, 12> kKnobs = {{
    {Knob::cache, "KILN_CACHE", "keep what was compiled on disk: on or off",
     "on"},
    {Knob::cacheDir, "KILN_CACHE_DIR", "the folder of the cache",
     "$XDG_CACHE_HOME/kiln, else ~/.cache/kiln"},
    {Knob::cacheLimitMb, "KILN_CACHE_LIMIT_MB",
     "how large the cache may grow, in MiB", "1024"},
    {Knob::tuneDb, "KILN_TUNE_DB",
     "the file where `kiln tune` keeps schedules and `auto` looks them up; "
     "off: "
     "none",
     "tune.db in the folder of the cache"},
    {Knob::ptxas, "KILN_PTXAS", "the ptxas to assemble with",
     "the one of CUDA_HOME, else of PATH"},
    {Knob::xdgCacheHome, "XDG_CACHE_HOME", "where caches of all programs are",
     "~/.cache"},
    {Knob::home, "HOME", "the home folder, for ~/.cache/kiln",
     "none: no cache unless KILN_CACHE_DIR is set"},
    {Knob::cudaHome, "CUDA_HOME", "the CUDA toolkit, for ptxas and cuobjdump",
     "CUDA_PATH"},
    {Knob::path, "PATH", "where ptxas, cuobjdump and nvdisasm are looked for",
     "none"},
    {Knob::noColor, "NO_COLOR", "set to anything: no colours on a terminal",
     "colours"},
    {Knob::device, "KILN_DEVICE",
     "MLIR programs: where kernels run: auto, sim, cuda",
     "auto: the GPU where there is one"},
    {Knob::status, "KILN_STATUS",
     "CUDA programs: where `kiln run` reads the counts; a file of its own",
     "none"},
}};

std::span<const KnobInfo> allKnobs() { return kKnobs; }

const KnobInfo &info(Knob knob) {
  for (const KnobInfo &entry : kKnobs)
    if (entry.knob == knob)
      return entry;
  internalError("knob {} is not in the table", static_cast<int>(knob));
}

std::optional<std::string> readVariable(const std::string &variable) {
  const char *text = std::getenv(variable.c_str());
  if (!text || !*text)
    return std::nullopt;
  return text;
}

std::optional<std::string> value(Knob knob) {
  std::optional<std::string> text = readVariable(info(knob).variable);
  if (!text && knob == Knob::cudaHome)
    return readVariable("CUDA_PATH");
  return text;
}

std::optional<std::uint64_t> numberValue(Knob knob) {
  std::optional<std::string> text = value(knob);
  if (!text)
    return std::nullopt;
  std::uint64_t number = 0;
  const char *end = text->data() + text->size();
  auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end)
    userError("{} is \"{}\"; it must be a whole number from 0 on",
              info(knob).variable, *text);
  return number;
}

std::optional<bool> parseSwitch(std::string_view text) {
  for (const char *word : {"on", "1", "true", "yes"})
    if (text == word)
      return true;
  for (const char *word : {"off", "0", "false", "no"})
    if (text == word)
      return false;
  return std::nullopt;
}

std::optional<bool> switchValue(Knob knob) {
  std::optional<std::string> text = value(knob);
  if (!text)
    return std::nullopt;
  if (std::optional<bool> isOn = parseSwitch(*text))
    return isOn;
  userError("{} is \"{}\"; it must be on, 1, true or yes, or off, 0, false or "
            "no",
            info(knob).variable, *text);
}

} // namespace kiln
