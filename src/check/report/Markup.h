// Markup: texts of strangers in HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

/// The text as content or as an attribute in quotes: & < > " and ' as entities,
/// and what neither format may have written out as Printable does.
std::string escaped(std::string_view text);

} // namespace kiln
