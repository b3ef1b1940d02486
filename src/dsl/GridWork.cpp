// GridWork: counters in a workspace, which every launch leaves as it found
// them, and a word in shared memory by which one thread tells the others.
#include "dsl/LocationScope.h"
#include "kiln/atomics.h"
#include "kiln/control.h"
#include "kiln/grid_work.h"
#include "kiln/threads.h"

namespace kiln {

static Value ctaCount() {
  return cast(grid_size(Axis::x) * grid_size(Axis::y) * grid_size(Axis::z),
              u32);
}

/// Repeat a load that acquires until it shows something else than `isEarly`
/// says.
static void waitWhile(const Element &element,
                      const std::function<Value(const Value &)> &isEarly) {
  while_(
      [&] {
        return isEarly(atomic_load(element, {.order = MemoryOrder::acquire}));
      },
      [] {});
}

/// The bit of a counter that changes when all have arrived: the first of them
/// adds what makes the sum 2^31, the others 1, and the rest is 0 again.
static constexpr std::int64_t kTurn = std::int64_t{1} << 31;

/// What one of so many adds to the counter.
static Value step(const Value &isFirst, const Value &count) {
  return select(isFirst, constant(u32, kTurn) - (count - 1), constant(u32, 1));
}

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

/// Another part, where one was not begun for long, or the number of parts.
Value GridWork::find(const Value &before) const {
  Value parts = ctaCount();
  auto isWaiting = [&] {
    Value now = atomic_load(words_(kDone), {.order = MemoryOrder::acquire});
    return now >> 31 == before;
  };
  constexpr int kPatience = 64; // loads: 40 us or so on an H200
  Var found(u32, parts), loads(i32, 0);
  while_([&] { return (parts == found) && isWaiting(); },
         [&] {
           loads = loads + 1;
           if_(loads > kPatience, [&] {
             for_range(0, cast(parts, i32), [&](const Value &part) {
               if_(parts == found, [&] {
                 Element claim = words_(kClaims + part);
                 Value old =
                     atomic_compare_exchange(claim, kFree, before + kByOther,
                                             {.order = MemoryOrder::acquire});
                 // All may be done since, and the claim be free for that.
                 if_(old == kFree, [&] {
                   if_(
                       isWaiting(), [&] { found = cast(part, u32); },
                       [&] { reduce_and(claim, 0); });
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
  Value before = told_(0, kBefore);
  Var mine(u32, told_(0, kFirst)), isOver(i32, 0);
  while_([&] { return isOver == 0; },
         [&] {
           Value hasPart = mine < parts;
           if_(hasPart, [&] {
             part(cast(mine, i32));
             fence_async_global(); // of what this thread wrote
             sync_threads();
             one_thread([&] {
               reduce_add(words_(kDone), step(Value(mine) == 0, parts),
                          {.order = MemoryOrder::release});
             });
           });
           one_thread([&] { told_(0, kNext) = find(before); });
           sync_threads();
           mine = told_(0, kNext);
           isOver = select(parts == mine, constant(i32, 1), constant(i32, 0));
           sync_threads(); // all have read it
         });
  one_thread([&] { reduce_and(words_(kClaims + block_id()), 0); });
  fence_async_global(); // before what others wrote is read
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
  Value added = step(rank == 0, constant(u32, members_));
  Value before =
      atomic_add(arrivals, added, {.order = MemoryOrder::acquire_release});
  Value isLast = ((before + added) & (kTurn - 1)) == 0;
  if_(waits && !isLast, [&] {
    waitWhile(arrivals,
              [&](const Value &now) { return ((now ^ before) & kTurn) == 0; });
  });
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
