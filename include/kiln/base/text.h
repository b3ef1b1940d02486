// text.h: text that somebody else wrote, before it is parsed and before it is
// shown.
//
// PTX, launch files, saved kernels and MLIR come from strangers. Their parsers
// recurse, so how deep a text nests is looked at first; and what is quoted from
// them goes to a terminal, which obeys control characters, so those are shown
// as text.
#pragma once

#include <kiln/base/export.h>

#include <cstddef>
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

/// Longest text of a stranger's that a sentence quotes: a name, an instruction.
inline constexpr std::size_t kQuoteLimitBytes = 4096;

/// The text, or of a longer one its beginning and how long it is: "void f<A, A
/// ... (35651584 bytes)". Characters stay whole.
std::string quote(std::string_view text,
                  std::size_t limit_bytes = kQuoteLimitBytes);

} // namespace kiln
