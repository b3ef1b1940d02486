// AccessLog: accesses of warps as they came, to be looked at later.
//
// What cannot collide with anything that has happened needs no look at its
// cells before something comes that it may collide with. Until then it is a few
// words in a row.
#pragma once

#include "sim/clocks/VectorClock.h"
#include "support/limits/Recycled.h"

#include <cstring>

namespace kiln::sim {

/// What lanes of one instruction did alike, but for their addresses.
struct LoggedAccess {
  enum class Form : std::uint8_t { uniform, consecutive, scattered };

  std::uint64_t base = 0; ///< of the lowest lane that takes part
  Component component = 0;
  std::uint32_t time = 0, op = 0;
  LaneMask lanes = 0;
  std::uint32_t edge = 0, parting = 0; ///< of the warp (WarpClock), at that time
  std::uint32_t cta = 0;
  std::uint16_t flags = 0; ///< as Record has them
  std::uint8_t bytes = 0;  ///< of each lane
  Form form = Form::uniform;
};

class AccessLog {
public:
  using Addresses = std::array<std::uint64_t, kLanes>;

  bool isEmpty() const { return words_.empty(); }
  std::size_t bytes() const { return words_.capacity() * sizeof(Word); }
  void clear() { words_ = {}; }

  /// One more. False: its addresses are too far from each other, and nothing is
  /// done.
  bool add(LoggedAccess access, const std::uint64_t *addresses,
           std::uint64_t low, std::uint64_t high);

  /// Call `body(access, addresses)` for those that `isTaken(access)`, in order,
  /// and forget them.
  template <typename IsTaken, typename Body>
  void take(IsTaken &&isTaken, Body &&body) {
    Words words = std::move(words_);
    words_ = {};
    std::size_t left = 0;
    for (std::size_t at = 0; at < words.size();) {
      LoggedAccess access;
      std::memcpy(static_cast<void *>(&access), &words[at], sizeof(access));
      std::size_t size = sizeOf(access);
      if (isTaken(access)) {
        Addresses addresses;
        spell(access, &words[at] + kHead, addresses);
        body(access, addresses.data());
      } else {
        std::memmove(&words[left], &words[at], size * sizeof(Word));
        left += size;
      }
      at += size;
    }
    words.resize(left);
    words_ = std::move(words);
  }

private:
  using Word = std::uint64_t;
  using Words = std::vector<Word, RecycledAllocator<Word>>;
  static constexpr std::size_t kHead = sizeof(LoggedAccess) / sizeof(Word);
  static_assert(sizeof(LoggedAccess) % sizeof(Word) == 0);

  /// Words that it takes, with its addresses: 32 bits for each lane.
  static std::size_t sizeOf(const LoggedAccess &access) {
    bool isSpelt = access.form == LoggedAccess::Form::scattered;
    return kHead +
           (isSpelt ? (static_cast<std::size_t>(countLanes(access.lanes)) + 1) / 2
                    : 0);
  }
  static void spell(const LoggedAccess &access, const Word *words,
                    Addresses &addresses);

  Words words_;
};

} // namespace kiln::sim
