// GridWork: counters in a workspace, which every launch leaves as it found
// them, and a word in shared memory by which one thread tells the others.
#include "dsl/kernel/LocationScope.h"
#include "dsl/collective/TurnCounter.h"
#include "kiln/language/threads/dependent_launch.h"
#include "kiln/language/collective/grid_work.h"
#include "kiln/language/threads/threads.h"

namespace kiln {

static Value ctaCount() { return cast(grid_size(Axis::x), u32); }

// A counter of parts that are done, and the claims, one for each part: by the
// CTA of that number, or by another, which tells it the turn that the counter
// had. They are far from the counter, which all CTAs ask.
static constexpr int kDone = 0, kClaims = 64;
static constexpr int kFree = 0, kOwn = 1, kByOther = 2;
// What one thread tells the others.
static constexpr int kFirst = 0, kBefore = 1, kNext = 2;

GridWork::GridWork(KernelBuilder &kb, const Dim &ctas, const std::string &name,
                   Where where)
    : words_(kb.workspace(name, Type::u32, {ctas + kClaims}, {}, where)),
      told_(kb.shared({.type = Type::u32, .rows = 1, .columns = 4},
                      {.name = name}, where)) {}

void GridWork::begin(Where where) const {
  LocationScope scope(where);
  one_thread([&] {
    Value claim = atomic_exchange(words_(kClaims + block_id()), kOwn,
                                  {.order = MemoryOrder::acquire});
    told_(0, kFirst) =
        select(claim == kFree, cast(block_id(), u32), ctaCount());
    // As long as this part is not done the counter has its turn.
    Value now = atomic_load(words_(kDone));
    told_(0, kBefore) = select(claim == kFree, now >> 31, claim - kByOther);
  });
}

/// Of the one thread that looks for parts, from one time to the next.
struct GridWork::Search {
  Value before;      ///< the turn of the counter
  Var loads{i32, 0}; ///< of the counter, in vain
  Var tried{i32, 0}; ///< parts behind this CTA's
};

/// A part that nobody had begun for long, or, once all are done, the number of
/// parts.
Value GridWork::find(Search &search) const {
  Value parts = ctaCount();
  auto isWaiting = [&] {
    Value now = atomic_load(words_(kDone), {.order = MemoryOrder::acquire});
    return (now >> 31) == search.before;
  };
  constexpr int kPatience = 64; // loads: 40 us or so on an H200
  Var found(u32, parts);
  while_([&] { return (parts == found) && isWaiting(); },
         [&] {
           search.loads = search.loads + 1;
           auto hasOthers = [&] {
             return (parts == found) && cast(search.tried, u32) < parts - 1;
           };
           if_(search.loads > kPatience, [&] {
             while_(hasOthers, [&] {
               search.tried = search.tried + 1;
               Value part =
                   (cast(block_id(), u32) + cast(search.tried, u32)) % parts;
               Element claim = words_(kClaims + cast(part, i32));
               Value old = atomic_compare_exchange(
                   claim, kFree, search.before + kByOther,
                   {.order = MemoryOrder::acquire});
               // All may be done since, and the claim be free for that.
               if_(old == kFree, [&] {
                 if_(
                     isWaiting(), [&] { found = part; },
                     [&] {
                       reduce_and(claim, 0);
                       search.tried = cast(parts, i32);
                     });
               });
             });
           });
         });
  return found;
}

void GridWork::run(const std::function<void(const Value &part)> &part,
                   Where where) const {
  LocationScope scope(where);
  sync_threads();
  Value parts = ctaCount();
  Search search{.before = told_(0, kBefore)};
  Var mine(u32, told_(0, kFirst)), isOver(i32, 0);
  while_([&] { return isOver == 0; },
         [&] {
           Value hasPart = mine < parts;
           if_(hasPart, [&] {
             part(cast(mine, i32));
             fence_async_global(); // of what this thread wrote
             sync_threads();
             one_thread([&] {
               reduce_add(words_(kDone), turnStep(Value(mine) == 0, parts),
                          {.order = MemoryOrder::release});
             });
           });
           one_thread([&] { told_(0, kNext) = find(search); });
           sync_threads();
           mine = told_(0, kNext);
           isOver = select(parts == mine, constant(i32, 1), constant(i32, 0));
           sync_threads(); // all have read it
         });
  fence_async_global(); // before what others wrote is read
}

void GridWork::finish(bool launches, Where where) const {
  LocationScope scope(where);
  // The next launch claims at its very beginning: it must find the claim free.
  // So the thread that frees it has its answer before it lets that one begin.
  one_thread([&] {
    Value old = atomic_exchange(words_(kClaims + block_id()), kFree,
                                {.order = MemoryOrder::release});
    if (launches)
      if_(old != kFree, [] { launch_dependents(); });
  });
}

// Arrivals have words of their own: whatever comes next, another kernel too,
// finds words that differ in the turn alone. The other words are 0 when a
// launch ends.
static constexpr int kBegun = 0, kLeft = 1, kLeftBy = 2;

GroupWork::GroupWork(KernelBuilder &kb, const Options &options, Where where)
    : members_(options.members),
      arrivals_(
          kb.workspace(options.name, Type::u32, {options.groups}, {}, where)),
      state_(kb.workspace(options.name + "_shares", Type::u32,
                          {options.groups, kLeftBy + options.members}, {},
                          where)),
      roles_(kb.shared_array({.type = Type::u32, .rows = 1, .columns = 4},
                             options.warpgroups, {.name = options.name},
                             where)) {}

void GroupWork::begin(const Member &member, Where where) const {
  LocationScope scope(where);
  one_thread([&] { reduce_add(state_(member.group, kBegun), 1); });
}

// What a member has to do behind its part: nothing, its share, or that and what
// others left.
static constexpr int kNothing = 0, kShare = 1, kLast = 2;

void GroupWork::arrive(const Member &member, const Value &begun) const {
  Tensor state = state_.index(0, member.group);
  Element arrivals = arrivals_(member.group);
  Value rank = value_of(member.rank);
  Value waits = begun == members_;
  if_(!waits, [&] {
    reduce_add(state(kLeft), 1);
    reduce_or(state(kLeftBy + rank), 1);
  });
  Value added = turnStep(rank == 0, constant(u32, members_));
  Value before =
      atomic_add(arrivals, added, {.order = MemoryOrder::acquire_release});
  Value isLast = ((before + added) & (kTurn - 1)) == 0;
  if_(waits && !isLast, [&] { waitForTurn(arrivals, before); });
  roles_[value_of(member.warpgroup)](0, 0) =
      select(isLast, constant(u32, kLast),
             select(waits, constant(u32, kShare), constant(u32, kNothing)));
}

void GroupWork::finish(const Member &member, const std::function<void()> &part,
                       const std::function<void(const Value &share)> &share,
                       Where where) const {
  LocationScope scope(where);
  Tensor state = state_.index(0, member.group);
  Value rank = value_of(member.rank);
  Value begun = atomic_load(state(kBegun)); // on its way beside the part
  part();
  sync_warpgroup();
  one_thread([&] { arrive(member, begun); });
  sync_warpgroup();
  Value role = roles_[value_of(member.warpgroup)](0, 0);
  Value isLast = role == kLast;
  Value left = atomic_load(state(kLeft)); // on its way beside the share
  Value none = constant(i32, members_);
  Var mine(i32, select(role == kNothing, none, rank));
  Var other(i32, 0);
  while_([&] { return mine < none; },
         [&] {
           share(mine);
           mine = none;
           if_(isLast && left != 0, [&] {
             while_([&] { return none == mine && other < none; },
                    [&] {
                      Value leftIt = atomic_load(state(kLeftBy + other)) != 0;
                      mine = select(leftIt && rank != other, other, none);
                      other = other + 1;
                    });
           });
         });
  if_(isLast, [&] {
    sync_warpgroup(); // all have read what is cleared
    one_thread([&] { reduce_and(state(kBegun), 0); });
    if_(left != 0, [&] {
      one_thread([&] { reduce_and(state(kLeft), 0); });
      for_range(warpgroup_thread_id(), members_, 128, [&](const Value &number) {
        reduce_and(state(kLeftBy + number), 0);
      });
    });
  });
}

} // namespace kiln
