// PtxText: PTX with comments and strings blanked out.
//
// A search for a directive in PTX text must not find it in a comment or in a
// file's name. Blanking keeps every character's place and every line, so a
// position in the result is a position in the text.
#pragma once

#include "kiln/base/export.h"

#include <optional>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// `ptx` with each character of a comment or a string (quotes included) made a
/// space; ends of lines stay.
std::string blankCommentsAndStrings(std::string_view ptx);

/// May this be part of a name? Letters, digits, `_`, `$`, `%`.
bool isNameCharacter(char character);

/// The first place at or after `from` where `word` stands alone, that is
/// neither preceded nor followed by a character of a name (a word that begins
/// with a dot may follow anything); npos where there is none.
std::size_t findWord(std::string_view text, std::string_view word,
                     std::size_t from = 0);

/// Take blanks and then a number off the front of `text`.
std::optional<int> takeNumber(std::string_view &text);

} // namespace kiln
