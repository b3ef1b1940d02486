// AddressTable: values by address, found in some nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln {

/// Open addressing with linear probing; nothing is ever taken out of it alone.
/// ~0 is no key.
template <typename Value> class AddressTable {
public:
  /// The value of a key, made where there is none. Others may move.
  Value &operator[](std::uint64_t key) {
    if (2 * (count_ + 1) > slots_.size())
      grow();
    Slot &slot = slots_[placeOf(key)];
    if (slot.key == kNone) {
      slot.key = key;
      ++count_;
    }
    return slot.value;
  }
  /// null: there is none.
  const Value *find(std::uint64_t key) const {
    if (slots_.empty())
      return nullptr;
    const Slot &slot = slots_[placeOf(key)];
    return slot.key == kNone ? nullptr : &slot.value;
  }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
  static constexpr std::uint64_t kNone = ~std::uint64_t(0);
  struct Slot {
    std::uint64_t key = kNone;
    Value value{};
  };

  std::size_t placeOf(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9e3779b97f4a7c15;
    std::size_t mask = slots_.size() - 1;
    auto place = static_cast<std::size_t>(hash >> 32) & mask;
    while (slots_[place].key != kNone && slots_[place].key != key)
      place = (place + 1) & mask;
    return place;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 16 : 2 * slots_.size());
    std::swap(before, slots_);
    for (Slot &slot : before)
      if (slot.key != kNone)
        slots_[placeOf(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_; ///< a power of two of them
  std::size_t count_ = 0;
};

} // namespace kiln
