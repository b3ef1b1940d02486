// dims: dimensions among words and in the names of kernels.
#pragma once

#include <kiln/base/dim.h>

#include <string>
#include <string_view>

namespace kiln::fields {

/// In parentheses where an x or a space is in it.
std::string text_of(const Dim &dim);
/// The inverse; a number is at least `least`. Throws UserError: `what` was
/// written as it.
Dim parse_dim(std::string text, std::string_view what, int least);
/// Digits, its own letter, or an expression spelled out so that no two are
/// alike.
std::string in_name(const Dim &dim, std::string_view own);

} // namespace kiln::fields
