// AccessLog: accesses of warps as they came, to be looked at later.
//
// What cannot collide with anything that has happened needs no look at its
// cells before something comes that it may collide with. Until then it is a few
// words in a row: the access with the addresses of its lanes; and where a warp
// comes back to an instruction with all addresses moved by one distance, as in
// most loops, the distance alone, and how often.
#pragma once

#include "sim/clocks/VectorClock.h"
#include "support/limits/Recycled.h"

#include <cstring>

namespace kiln::sim {

/// What lanes of one instruction did alike, but for their addresses.
struct LoggedAccess {
  enum class Form : std::uint8_t { uniform, consecutive, scattered, step };

  std::uint16_t flags; ///< as Record has them
  std::uint8_t bytes;  ///< of each lane
  Form form;
  Component component;
  std::uint32_t time, op;
  LaneMask lanes;
  std::uint32_t edge, parting; ///< of the warp (WarpClock), at that time
  std::uint32_t cta;
  std::uint64_t base; ///< what the addresses are told from
};

class AccessLog {
public:
  using Addresses = std::array<std::uint64_t, kLanes>;

  bool isEmpty() const { return words_.empty(); }
  std::size_t bytes() const { return words_.capacity() * sizeof(Word); }
  void clear() {
    words_.clear();
    hasSteps_ = false;
    seal();
  }
  /// What comes is told by itself; where it will stand.
  std::size_t seal();
  /// Give back what was taken to grow.
  void shrink();

  /// One more. False: its addresses are too far from each other, and nothing is
  /// done.
  bool add(const LoggedAccess &access, const std::uint64_t *addresses,
           std::uint64_t low, std::uint64_t high);

  /// Call `body(access, addresses)` for those from a place on that it was
  /// sealed at. Reads of a loop are told together, where the first one stands.
  template <typename Body>
  void forEachBehind(std::size_t place, Body &&body) const {
    Reader reader(words_, place, hasSteps_);
    while (reader.next())
      reader.forEach(body);
  }
  /// Call `body(access, addresses)` for those that `isTaken(access)`, in order,
  /// and forget them.
  template <typename IsTaken, typename Body>
  void take(IsTaken &&isTaken, Body &&body) {
    Words words = std::move(words_), left;
    words_ = {};
    Reader reader(words, 0, hasSteps_);
    while (reader.next())
      if (isTaken(reader.access()))
        reader.forEach(body);
      else
        reader.copyTo(left);
    words_ = std::move(left);
    seal();
  }

private:
  using Word = std::uint64_t;
  using Words = std::vector<Word, RecycledAllocator<Word>>;
  /// The last access of an instruction of a warp, moved by a distance.
  struct Step {
    std::uint16_t place; ///< where it is kept
    std::uint8_t unused;
    LoggedAccess::Form form; ///< where LoggedAccess has it
    std::uint32_t count;
    std::uint32_t time, timeStep;
    LaneMask lanes;
    std::int32_t distance;
  };
  static constexpr std::size_t kHead = sizeof(LoggedAccess) / sizeof(Word),
                               kStep = sizeof(Step) / sizeof(Word),
                               kPlaces = 64;
  static_assert(sizeof(LoggedAccess) % sizeof(Word) == 0 &&
                sizeof(Step) % sizeof(Word) == 0);

  static std::size_t placeOf(const LoggedAccess &access) {
    return (access.component / 4 * 7 + access.op) % kPlaces;
  }
  /// Words of an access with its addresses: 32 bits for each lane.
  static std::size_t sizeOf(const LoggedAccess &access);

  /// Goes through the words.
  class Reader {
  public:
    Reader(const Words &words, std::size_t at, bool hasSteps)
        : words_(words), at_(at), lasts_(hasSteps ? kPlaces : 1) {}
    bool next();
    const LoggedAccess &access() const { return last_->access; }
    template <typename Body> void forEach(Body &&body) {
      if (!isStep_)
        return body(last_->access, last_->addresses.data());
      while (move())
        body(last_->access, last_->addresses.data());
    }
    /// The words that were read last.
    void copyTo(Words &words);

  private:
    struct Last {
      LoggedAccess access;
      Addresses addresses;
    };
    bool move();
    void spell();

    const Words &words_;
    std::size_t at_, begin_ = 0;
    bool isStep_ = false;
    Step step_{};
    Last *last_ = nullptr;
    std::vector<Last> lasts_; ///< those that steps may go on from
  };

  /// The last access of each instruction of a warp.
  struct Last : Recycled {
    struct Entry {
      LoggedAccess access;
      std::size_t step; ///< where its last step stands; 0: it has none
    };
    std::array<bool, kPlaces> isKnown{};
    std::array<Entry, kPlaces> entries;
    std::array<Addresses, kPlaces> addresses;
  };
  bool addStep(const LoggedAccess &access, const std::uint64_t *addresses);
  /// Room at the end.
  Word *grow(std::size_t words);

  Words words_;
  bool hasSteps_ = false;
  std::unique_ptr<Last> last_;
};

} // namespace kiln::sim
