// Lazy: containers that cost a pointer until they are used.
//
// Most warps have no asynchronous copies, no products and no groups of either,
// and warps are made by the million: an empty std::deque alone is two
// allocations.
#pragma once

#include "sim/program/Lanes.h"

#include <array>
#include <deque>
#include <memory>
#include <utility>

namespace kiln::sim {

/// A std::deque that is made with its first element.
template <typename T> class Queue {
public:
  using Items = std::deque<T>;

  bool empty() const { return !items_ || items_->empty(); }
  std::size_t size() const { return items_ ? items_->size() : 0; }
  T &front() { return items_->front(); }
  const T &front() const { return items_->front(); }
  T &operator[](std::size_t i) { return (*items_)[i]; }
  const T &operator[](std::size_t i) const { return (*items_)[i]; }
  T &back() { return items_->back(); }
  const T &back() const { return items_->back(); }
  template <typename... Args> T &emplace_back(Args &&...args) {
    return all().emplace_back(std::forward<Args>(args)...);
  }
  void push_back(const T &item) { all().push_back(item); }
  void push_back(T &&item) { all().push_back(std::move(item)); }
  void pop_front() { items_->pop_front(); }
  void clear() { items_.reset(); }
  void erase(typename Items::const_iterator at) { items_->erase(at); }
  void erase(typename Items::const_iterator first,
             typename Items::const_iterator last) {
    if (first != last)
      items_->erase(first, last);
  }
  template <typename Condition> void eraseIf(Condition &&condition) {
    if (items_)
      std::erase_if(*items_, condition);
  }

  auto begin() { return items_ ? items_->begin() : typename Items::iterator(); }
  auto end() { return items_ ? items_->end() : typename Items::iterator(); }
  auto begin() const {
    return items_ ? std::as_const(*items_).begin()
                  : typename Items::const_iterator();
  }
  auto end() const {
    return items_ ? std::as_const(*items_).end()
                  : typename Items::const_iterator();
  }

private:
  Items &all() {
    if (!items_)
      items_ = std::make_unique<Items>();
    return *items_;
  }

  std::unique_ptr<Items> items_;
};

/// One for each lane of a warp, made when the first is asked for.
template <typename T> class PerLane {
public:
  T &operator[](int lane) {
    if (!lanes_)
      lanes_ = std::make_unique<std::array<T, kLanes>>();
    return (*lanes_)[static_cast<std::size_t>(lane)];
  }
  /// Whether any has been.
  bool isUsed() const { return lanes_ != nullptr; }

private:
  std::unique_ptr<std::array<T, kLanes>> lanes_;
};

} // namespace kiln::sim
