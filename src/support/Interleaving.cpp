// Interleaving: its words.
#include "kiln/check/interleaving.h"
#include "support/Error.h"

namespace kiln {

const char *name(Interleaving interleaving) {
  return interleaving == Interleaving::eager  ? "eager"
         : interleaving == Interleaving::lazy ? "lazy"
                                              : "random";
}

Interleaving parse_interleaving(std::string_view text) {
  for (Interleaving one :
       {Interleaving::eager, Interleaving::lazy, Interleaving::random})
    if (text == name(one))
      return one;
  userError("'{}' is not a valid interleaving; use eager, lazy or random",
            text);
}

} // namespace kiln
