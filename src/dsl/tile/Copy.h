// Copy: what collectives ask of a copy beside its two ends.
#pragma once

#include "kiln/language/tile/copy.h"

namespace kiln {

/// The same as copy(scope, to, from, where), with no more than so many bytes in
/// the registers of a thread at once.
void copyInPieces(int bytes, CopyScope scope, const Tensor &to,
                  const SharedTile &from, const Where &where);

} // namespace kiln
