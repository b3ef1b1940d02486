// AccessExtents: what grows, and what falls when two meet.
#include "sim/clocks/AccessExtents.h"

#include <algorithm>

namespace kiln::sim {

bool AccessExtents::canCollide(Kind one, Kind other) {
  if (!isDeferred(one) && !isDeferred(other))
    return false; // they meet in the shadow
  return !(isRead(one) && isRead(other)) &&
         !(one == Kind::atomics && other == Kind::atomics);
}

void AccessExtents::makeRoom(Extent &mine) {
  constexpr std::uint64_t kStep = 1 << 16;
  Range wide = {mine.touched.begin / kStep * kStep,
                (mine.touched.end + kStep - 1) / kStep * kStep};
  bool isFree = true;
  for (Extent &one : extents_) {
    if (one.op == mine.op || !canCollide(one.kind, mine.kind))
      continue;
    if (one.room.meets(mine.touched))
      one.room = one.touched;
    isFree &= !one.room.meets(wide);
  }
  mine.room = isFree ? wide : mine.touched;
}

AccessExtents::Answer AccessExtents::noteAnew(Extent *known, std::uint32_t op,
                                              Kind kind, const Range &range) {
  if (!known) {
    extents_.push_back({op, kind, false, range, range});
    known = &extents_.back();
    std::size_t at = placeOf(op);
    while (places_[at])
      at = (at + 1) % places_.size();
    places_[at] = static_cast<std::uint8_t>(extents_.size());
  }
  known->touched = {std::min(known->touched.begin, range.begin),
                    std::max(known->touched.end, range.end)};
  Extent mine = *known;
  mine.kind = std::max(known->kind, kind);
  bool wasDeferred = isDeferred(known->kind);
  bool hasFallen = fall(mine) || (wasDeferred && mine.kind != known->kind);
  if (hasFallen) {
    known->hasFallen = wasDeferred;
    known->kind = mine.kind;
    fall(mine);
    return Answer::touchBehind;
  }
  makeRoom(mine);
  *known = mine;
  return isDeferred(mine.kind) ? Answer::defer : Answer::touch;
}

bool AccessExtents::fall(const Extent &mine) {
  bool isAny = false;
  for (Extent &one : extents_) {
    bool isMet = one.op != mine.op && canCollide(one.kind, mine.kind) &&
                 one.touched.meets(mine.touched);
    isAny |= isMet;
    one.hasFallen |= isMet && isDeferred(one.kind);
  }
  // What lies on the same bytes is put back in one order.
  for (bool isMore = isAny; isMore;) {
    isMore = false;
    for (Extent &one : extents_) {
      auto isBeside = [&](const Extent &other) {
        return other.hasFallen && other.touched.meets(one.touched);
      };
      if (!isDeferred(one.kind) || one.hasFallen ||
          std::none_of(extents_.begin(), extents_.end(), isBeside))
        continue;
      isMore = one.hasFallen = true;
    }
  }
  return isAny;
}

void AccessExtents::settle() {
  for (Extent &one : extents_) {
    if (one.hasFallen && isDeferred(one.kind))
      one.kind = one.kind == Kind::reads ? Kind::directReads : Kind::direct;
    one.hasFallen = false;
    // Who could not collide before may do so now.
    one.room = one.touched;
  }
}

} // namespace kiln::sim
