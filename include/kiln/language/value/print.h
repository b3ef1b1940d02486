// print.h: printf from a kernel, with types taken from the values.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace KILN_API kiln {

/// Who prints, and whether the print is there at all.
struct PrintOptions {
  std::optional<Value> predicate; ///< i1: print where it holds
  int thread = -1;       ///< print in this thread of each CTA (x); -1: in all
  bool is_debug = false; ///< build it under KernelOptions::debug_print alone
  bool force = false;    ///< build it although debugging is off
};

/// Print a line; each {} takes the next value with the format of its type
/// (i32 %d, i64 %lld, unsigned %u and %llu, index %llu, i1 %i, f32 and f64 %f;
/// smaller integers and half types are widened). A newline is added.
void print(const std::string &format, std::initializer_list<At> values = {},
           Where where = Where::current());

/// The same by some threads, or only while debugging. A predicate and a thread
/// together: that thread, where the predicate holds. A debug print that is not
/// built costs nothing; its format is checked all the same.
///
///     print("row {} sum {}", {row, sum}, {.predicate = row < m, .thread = 0});
///     print("stage {}", {stage}, {.thread = 0, .is_debug = true});
void print(const std::string &format, std::initializer_list<At> values,
           const PrintOptions &options, Where where = Where::current());

} // namespace kiln
