// SharedHistory: what is visible from where.
#include "sim/clocks/SharedHistory.h"

namespace kiln::sim {

Published *Location::find(Scope scope, const WarpClock &warp) {
  if (scope == Scope::gpu)
    return &everyone;
  auto &published = scope == Scope::cluster ? clusters : ctas;
  auto mine = published.find(scope == Scope::cluster ? warp.cluster : warp.cta);
  return mine == published.end() ? nullptr : &mine->second;
}

} // namespace kiln::sim
