// LaneClocks: how knowledge is handed from lanes to lanes.
#include "sim/clocks/LaneClocks.h"

#include <algorithm>

namespace kiln::sim {

static constexpr auto kGeneric = static_cast<std::size_t>(View::generic);
static constexpr auto kCompleted = static_cast<std::size_t>(View::completed);

/// `lanes` of a warp up to now; all of them where they are all it has.
static Epoch upToNow(const WarpClock &warp, LaneMask lanes) {
  if ((warp.started & ~lanes) == 0)
    return {.all = warp.now};
  return {.some = warp.now, .mask = lanes};
}

bool FencedClock::isSame(const FencedClock &other) const {
  if (!clock.isSame(other.clock) || fenced != other.fenced ||
      !apparent.isSame(other.apparent))
    return false;
  for (std::size_t scope = 0; scope < kScopes; ++scope)
    if (!seen[scope].isSame(other.seen[scope]))
      return false;
  return true;
}

/// What two fences have made ready; one of the two where it has all of it.
static std::shared_ptr<const Clock>
joinReady(const std::shared_ptr<const Clock> &one,
          const std::shared_ptr<const Clock> &other) {
  if (!one || !other || one == other)
    return one ? one : other;
  auto joined = std::make_shared<Clock>(*one);
  joined->join(*other);
  return joined->isSame(*one) ? one : joined->isSame(*other) ? other : joined;
}

void FencedClock::join(const FencedClock &other) {
  clock.join(other.clock);
  apparent.join(other.apparent);
  auto mine = fenced;
  for (std::size_t scope = 0; scope < kScopes; ++scope) {
    seen[scope].join(other.seen[scope]);
    // A fence makes the same ready for the scopes below its own.
    bool isAsBefore = scope > 0 && mine[scope] == mine[scope - 1] &&
                      other.fenced[scope] == other.fenced[scope - 1];
    fenced[scope] = isAsBefore ? fenced[scope - 1]
                               : joinReady(mine[scope], other.fenced[scope]);
  }
}

bool Knowledge::isSame(const Knowledge &other) const {
  return own == other.own && self == other.self &&
         tensor.isSame(other.tensor) && FencedClock::isSame(other);
}

bool Knowledge::coversOwn(View view, std::uint32_t time, LaneMask lanes,
                          LaneMask lane) const {
  auto index = static_cast<std::size_t>(view);
  bool isItselfKnown =
      index == kGeneric || index == kCompleted || time <= self[index];
  if (isItselfKnown)
    lanes &= ~lane;
  return !lanes || own[index].covers(time, lanes);
}

void Knowledge::spellOut(LaneMask lanes) {
  for (std::size_t view = 0; view < kViews; ++view)
    if (self[view])
      own[view].join({.some = self[view], .mask = lanes});
  self = {};
}

void Knowledge::meet(const Knowledge &other, LaneMask lanes, LaneMask others) {
  Knowledge theirs = other;
  spellOut(lanes);
  theirs.spellOut(others);
  FencedClock::join(theirs);
  tensor.join(theirs.tensor);
  for (std::size_t view = 0; view < kViews; ++view)
    own[view].join(theirs.own[view]);
}

void Knowledge::learn(const FencedClock &handed, const WarpClock &warp) {
  FencedClock::join(handed);
  for (std::size_t view = 0; view < kViews; ++view)
    if (const Epoch *known =
            handed.clock.find(static_cast<View>(view), warp.lanes))
      own[view].join(*known);
}

void Knowledge::learnCompleted(const Clock &handed, const WarpClock &warp) {
  clock.joinOnly(View::completed, handed);
  if (const Epoch *known = handed.find(View::completed, warp.lanes))
    own[kCompleted].join(*known);
}

void Knowledge::publish(FencedClock &to, const WarpClock &warp,
                        LaneMask lanes) const {
  to.join(*this);
  for (std::size_t view = 0; view < kViews; ++view) {
    Epoch known = own[view];
    if (view == kGeneric || view == kCompleted)
      known.join(upToNow(warp, lanes));
    else if (self[view])
      known.join({.some = self[view], .mask = lanes});
    to.clock.learn(static_cast<View>(view), warp.lanes, known);
  }
}

void Knowledge::fenceProxy(View to, const WarpClock &warp) {
  auto view = static_cast<std::size_t>(to);
  own[view].join(own[kGeneric]);
  self[view] = warp.now;
  clock.fenceProxy(to);
}

void Knowledge::fence(Scope scope, const WarpClock &warp, LaneMask lanes) {
  auto reach = static_cast<std::size_t>(scope);
  for (std::size_t i = 0; i <= reach; ++i) {
    if (seen[i].isEmpty())
      continue;
    learn({.clock = seen[i]}, warp);
    seen[i] = {};
  }
  FencedClock ready;
  publish(ready, warp, lanes);
  auto clock = std::make_shared<Clock>(std::move(ready.clock));
  for (std::size_t i = 0; i <= reach; ++i)
    fenced[i] = clock;
}

LaneClocks LaneClocks::split(LaneMask taken, WarpClock &warp) {
  warp.lastParting = warp.now;
  // Until here they ran together.
  Epoch together = upToNow(warp, lanes_);
  deFacto_.meet(deFacto_, lanes_, lanes_);
  deFacto_.own[kGeneric].join(together);
  deFacto_.own[kCompleted].join(together);
  LaneClocks other(taken);
  other.deFacto_ = deFacto_;
  other.parts_.clear();
  for (const Part &part : parts_)
    if (part.lanes & taken)
      other.parts_.push_back({part.lanes & taken, part.knowledge});
  drop(taken);
  return other;
}

void LaneClocks::drop(LaneMask lanes) {
  lanes_ &= ~lanes;
  for (Part &part : parts_)
    part.lanes &= ~lanes;
  std::erase_if(parts_, [](const Part &part) { return part.lanes == 0; });
}

void LaneClocks::meet(LaneClocks &&other, WarpClock &warp) {
  warp.lastParting = warp.now;
  deFacto_.meet(other.deFacto_, lanes_, other.lanes_);
  lanes_ |= other.lanes_;
  Epoch together = upToNow(warp, lanes_);
  deFacto_.own[kGeneric].join(together);
  deFacto_.own[kCompleted].join(together);
  for (Part &part : other.parts_)
    parts_.push_back(std::move(part));
  mergeParts();
}

void LaneClocks::mergeParts() {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    for (std::size_t j = parts_.size(); j-- > i + 1;) {
      if (!parts_[i].knowledge.isSame(parts_[j].knowledge))
        continue;
      parts_[i].lanes |= parts_[j].lanes;
      parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

void LaneClocks::release(SyncPoint &to, WarpClock &warp, LaneMask lanes) const {
  deFacto_.publish(to.deFacto, warp, lanes_);
  forEachPart(lanes, [&](LaneMask some, const Knowledge &knowledge) {
    knowledge.publish(to.strict, warp, some);
  });
  warp.lastEdge = warp.now;
}

void LaneClocks::acquire(const SyncPoint &from, const WarpClock &warp,
                         LaneMask lanes) {
  deFacto_.learn(from.deFacto, warp);
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.learn(from.strict, warp);
  });
}

void LaneClocks::syncLanes(LaneMask lanes, WarpClock &warp) {
  Part joined{0, {}};
  changeParts(lanes, [&](LaneMask some, Knowledge &knowledge) {
    if (joined.lanes == 0)
      joined.knowledge = knowledge;
    // With itself, too: then what each lane knows is known to all.
    joined.knowledge.meet(knowledge, joined.lanes ? joined.lanes : some, some);
    joined.lanes |= some;
  });
  Epoch together = upToNow(warp, lanes);
  joined.knowledge.own[kGeneric].join(together);
  joined.knowledge.own[kCompleted].join(together);
  std::erase_if(parts_, [&](const Part &part) {
    return (part.lanes & ~joined.lanes) == 0;
  });
  parts_.push_back(std::move(joined));
  warp.lastEdge = warp.now;
}

void LaneClocks::complete(Component component, const Epoch &known,
                          LaneMask lanes) {
  auto learn = [&](Knowledge &knowledge) {
    knowledge.clock.learn(View::generic, component, known);
    knowledge.clock.learn(View::completed, component, known);
  };
  learn(deFacto_);
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) { learn(knowledge); });
}

void LaneClocks::completeTensor(Component component, const Epoch &known,
                                LaneMask lanes) {
  deFacto_.clock.learn(View::generic, component, known);
  deFacto_.clock.learn(View::completed, component, known);
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.tensor.learn(View::generic, component, known);
    knowledge.clock.learn(View::completed, component, known);
  });
}

void LaneClocks::learnCommitted(const Clock &committed, LaneMask lanes) {
  deFacto_.clock.join(committed);
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.clock.join(committed);
  });
}

void LaneClocks::fenceTensorBefore(LaneMask lanes) {
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.clock.join(knowledge.tensor);
  });
}

void LaneClocks::fenceTensorAfter(LaneMask lanes) {
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.tensor.join(knowledge.clock);
  });
}

void LaneClocks::fenceProxy(View to, WarpClock &warp, LaneMask lanes) {
  deFacto_.fenceProxy(to, warp);
  changeParts(lanes, [&](LaneMask, Knowledge &knowledge) {
    knowledge.fenceProxy(to, warp);
  });
  warp.lastEdge = warp.now;
}

void LaneClocks::fence(Scope scope, WarpClock &warp, LaneMask lanes) {
  deFacto_.fence(scope, warp, lanes_);
  changeParts(lanes, [&](LaneMask some, Knowledge &knowledge) {
    knowledge.fence(scope, warp, some);
  });
  warp.lastEdge = warp.now;
}

bool LaneClocks::hasFenced(Scope scope) const {
  auto reach = static_cast<std::size_t>(scope);
  return deFacto_.fenced[reach] ||
         std::any_of(parts_.begin(), parts_.end(), [&](const Part &part) {
           return part.knowledge.fenced[reach] != nullptr;
         });
}

void LaneClocks::announce(Clock &to, const WarpClock &warp) const {
  to.join(deFacto_.clock);
  to.join(deFacto_.apparent);
  Epoch own = upToNow(warp, lanes_);
  own.join(deFacto_.own[kCompleted]);
  to.learn(View::completed, warp.lanes, own);
}

} // namespace kiln::sim
