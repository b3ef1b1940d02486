// interleaving.h: one order in which warps run and asynchronous operations take
// effect.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// When copies and MMAs take effect between their issue and the wait that covers
/// them. A correct kernel gives one answer under all of them.
enum class Interleaving : std::uint8_t {
  eager,  ///< at once
  lazy,   ///< as late as possible
  random, ///< at moments drawn from the seed; warps take random turns too
};

/// "eager", "lazy", "random"
const char *name(Interleaving interleaving);
/// Throws UserError where it is none of those.
Interleaving parse_interleaving(std::string_view text);

} // namespace kiln
