// WordCopy: rows of small elements that begin anywhere, copied by words.
//
// Where the rows of a matrix are an odd number of elements apart, no two of
// them can be loaded together from every row. But the words of 32 bits they lie
// in can: a lane takes the word its elements begin in and the one behind it,
// and shifts what it needs out of the two. What it stores is one aligned word.
//
//     row r      .. x0 | x1 x2 | x3 x4 | ..        words in global memory
//     tile       | x0 x1 | x2 x3 | ..              words in shared memory
#pragma once

#include "kiln/language/memory/memory.h"

namespace kiln {

/// Whether `threads` can copy it so: elements smaller than a word, neighbours
/// along the rows of both.
bool canCopyWords(const SharedTile &to, const Tensor &from, int threads);

/// Copy from the first element of `from` on, by `threads` threads of which the
/// caller is the `thread`-th; zeros where it ends. `isAligned`: every row
/// begins with a word.
void copyWords(const SharedTile &to, const Tensor &from, bool isAligned,
               int threads, const Value &thread, const Where &where);

} // namespace kiln
