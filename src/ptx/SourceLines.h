// SourceLines: from a line of PTX to the line of the kernel's source.
//
// ptxas speaks of lines of PTX that nobody wrote. The `.loc` directives say
// which source line each instruction comes from and the `.file` directives name
// the files:
//
//     .file 1 "gemm.cpp"
//     .visible .entry gemm(...)
//     {
//       .loc 1 41 7                      line 41 from here on
//       wgmma.mma_async ...
//       .loc 1 90 3, function_name $L__info_string0, inlined_at 1 41 7
//       add.f32 ...                      line 90, inlined into line 41
//       .loc 1 0 0                       compiler-made: line 41 stays nearest
//
// A `.loc` holds until the next one or the end of its function. Line 0 means
// that the compiler has no line; the nearest known line before it in the same
// function is then the best answer.
#pragma once

#include "kiln/base/error.h"
#include "ptx/Entries.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class SourceLines {
public:
  explicit SourceLines(std::string_view ptx);

  /// The source line in force at a line of the PTX (from 1), or unknown.
  SourceLine at(int ptxLine) const;

  /// The first source line of a function: where a message names no more than
  /// the function. Unknown where it has no `.loc`.
  SourceLine firstIn(std::string_view function) const;

private:
  struct Loc {
    int ptxLine;
    int file;
    unsigned line;
  };

  std::vector<PtxFunction> functions_;
  std::map<int, std::string> files_;
  std::vector<Loc> locs_; ///< with a known line only, in the order of the text

  SourceLine resolve(const Loc &loc) const;
};

} // namespace kiln
