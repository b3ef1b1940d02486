// WgmmaGroups: count groups along the paths of a kernel.
#include "dsl/tensorcore/WgmmaGroups.h"

#include <algorithm>

namespace kiln {

void WgmmaGroups::issue(Id id, const SourceLine &where) {
  point_.products[id] = {kOpen, where, role_};
}

void WgmmaGroups::commit() {
  for (auto &[id, product] : point_.products)
    if (isMine(product))
      ++product.newer;
  for (SinceHead &loop : point_.loops)
    ++loop.commits;
}

std::vector<WgmmaGroups::Id> WgmmaGroups::wait(int groups) {
  std::vector<Id> landed;
  for (const auto &[id, product] : point_.products)
    if (isMine(product) && product.newer >= groups)
      landed.push_back(id);
  for (Id id : landed)
    point_.products.erase(id);
  for (SinceHead &loop : point_.loops)
    loop.covered = std::min(loop.covered, groups - loop.commits);
  return landed;
}

int WgmmaGroups::newer(Id id) const {
  auto found = point_.products.find(id);
  return found == point_.products.end() ? kLanded : found->second.newer;
}

void WgmmaGroups::use(Id id, const SourceLine &where) {
  for (std::size_t i = 0; i < point_.loops.size(); ++i)
    if (point_.loops[i].covered > kOpen)
      uses_[i].push_back({id, point_.loops[i].covered, where});
}

void WgmmaGroups::Point::join(const Point &other) {
  for (const auto &[id, product] : other.products) {
    auto [mine, isNew] = products.try_emplace(id, product);
    if (!isNew && product.newer < mine->second.newer)
      mine->second = product;
  }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    loops[i].commits = std::min(loops[i].commits, other.loops[i].commits);
    loops[i].covered = std::max(loops[i].covered, other.loops[i].covered);
  }
}

WgmmaGroups::Loop::Loop(WgmmaGroups &groups) : groups_(groups) {
  groups.point_.loops.emplace_back();
  groups.uses_.emplace_back();
}

// One look is enough: a turn that issues no product of an accumulator leaves at
// least as many newer groups as it found, and one that does leaves what it left
// the first time.
std::optional<WgmmaGroups::Conflict> WgmmaGroups::Loop::conflict() const {
  for (const Use &use : groups_.uses_.back()) {
    auto end = groups_.point_.products.find(use.id);
    if (end == groups_.point_.products.end() ||
        end->second.newer >= use.covered)
      continue;
    return Conflict{use.id, use.where, end->second.where, end->second.newer};
  }
  return std::nullopt;
}

WgmmaGroups::Loop::~Loop() {
  groups_.point_.loops.pop_back();
  groups_.uses_.pop_back();
}

} // namespace kiln
