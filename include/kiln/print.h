// print.h: printf from a kernel, with types taken from the values.
#pragma once

#include <kiln/value.h>

#include <initializer_list>
#include <string>

namespace kiln {

/// Print a line; each {} takes the next value with the format of its type
/// (i32 %d, i64 %lld, unsigned %u and %llu, index %llu, i1 %i, f32 and f64 %f;
/// smaller integers and half types are widened). A newline is added.
void print(const std::string &format, std::initializer_list<At> values = {},
           std::source_location where = std::source_location::current());

} // namespace kiln
