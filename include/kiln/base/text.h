// text.h: text that somebody else wrote, before it is parsed and before it is
// shown.
//
// PTX, launch files, saved kernels and MLIR come from strangers. Their parsers
// recurse, so how deep a text nests is looked at first; and what is quoted from
// them goes to a terminal, which obeys control characters, so those are shown
// as text.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// A format whose strings and comments `check_nesting` knows.
enum class TextFormat : std::uint8_t {
  json, ///< [] and {}, at most 64 deep
  mlir, ///< [], {}, () and <>, at most 128 deep, aliases counted in
};

/// Refuse text whose brackets nest deeper than its format may, and MLIR whose
/// aliases (`#a1 = [#a0, #a0]`) stand for more text than anyone writes. Throws
/// UserError with the line of `origin` and the limit.
void check_nesting(std::string_view text, TextFormat format,
                   const std::string &origin);

/// The text with everything a terminal would obey written out: control
/// characters and bytes that are not UTF-8 as \x1b, characters that turn the
/// direction of text as \u{202e}. Tabs and line breaks stay.
std::string printable(std::string_view text);

} // namespace kiln
