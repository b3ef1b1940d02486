// BarrierEpoch: words and the threads that they belong to.
#include "sim/checks/BarrierEpoch.h"

#include <algorithm>
#include <bit>

namespace kiln::sim {

/// Call `body(word, owner)` for the words that lanes touch.
template <typename Body>
[[gnu::always_inline]] static inline void
forEachWord(const std::uint64_t *addresses, LaneMask lanes, std::uint32_t bytes,
            std::uint32_t firstThread, Body &&body) {
  constexpr std::uint64_t kWord = 4;
  for (LaneMask left = lanes; left; left &= left - 1) {
    int lane = firstLane(left);
    auto owner = static_cast<std::uint16_t>(firstThread +
                                            static_cast<unsigned>(lane) + 1);
    std::uint64_t word = addresses[lane] / kWord;
    body(word, owner);
    for (std::uint32_t more = kWord; more < bytes; more += kWord)
      body(++word, owner);
  }
}

void BarrierEpoch::setReaders(const std::uint64_t *addresses, LaneMask lanes,
                              std::uint32_t bytes, std::uint32_t firstThread) {
  if (readers_.size() * kWord < read_.end)
    readers_.resize(std::bit_ceil((read_.end + kWord - 1) / kWord));
  forEachWord(addresses, lanes, bytes, firstThread,
              [&](std::uint64_t word, Owner owner) {
                Owner &reader = readers_[word];
                reader = reader == kNobody || reader == owner ? owner : kMany;
              });
}

bool BarrierEpoch::addByWord(Kind kind, const AlikeLanes &alike,
                             std::uint32_t firstThread) {
  std::uint64_t end = alike.high + alike.bytes;
  std::uint64_t words = (std::max(read_.end, end) + kWord - 1) / kWord;
  if (writers_.size() < words)
    writers_.resize(std::bit_ceil(words));
  if (readers_.size() < words)
    readers_.resize(std::bit_ceil(words));
  auto forEach = [&](auto &&body) {
    forEachWord(alike.addresses, alike.lanes, alike.bytes, firstThread, body);
  };
  bool isNew = !written_.meets(alike.low, end);
  bool isUnread = !read_.meets(alike.low, end);
  unsigned others = 0;
  if (kind == Kind::atomic) {
    written_.add(alike.low, end);
    forEach([&](std::uint64_t word, Owner) {
      Owner &writer = writers_[word];
      others |= static_cast<unsigned>(
          (writer != kNobody && writer != kAtomics) || readers_[word]);
      writer = kAtomics;
    });
    return !others; // else nothing here matters until the next barrier
  }
  bool isRead = kind == Kind::read;
  if (!isNew || !(isRead || isUnread))
    forEach([&](std::uint64_t word, Owner owner) {
      Owner writer = writers_[word], reader = readers_[word];
      bool isOwn = writer == kNobody || writer == owner;
      bool isOthers = !isRead && reader != kNobody && reader != owner;
      others |= static_cast<unsigned>(!isOwn || isOthers);
    });
  if (others)
    return false;
  if (isRead) {
    read_.add(alike.low, end);
    return true;
  }
  written_.add(alike.low, end);
  forEach([&](std::uint64_t word, Owner owner) {
    Owner &writer = writers_[word];
    writer = writer == kNobody || writer == owner ? owner : kMany;
  });
  return true;
}

bool BarrierEpoch::arrive(const CtaBarrier &barrier, LaneMask lanes) {
  if (barrier_ != &barrier || generation_ != barrier.generation)
    arrived_ = 0;
  barrier_ = &barrier;
  generation_ = barrier.generation;
  arrived_ += static_cast<std::uint32_t>(countLanes(lanes));
  return arrived_ == threads_;
}

void BarrierEpoch::clear(std::vector<Owner> &owners, Range &range) {
  auto first = static_cast<std::size_t>(range.begin / kWord);
  auto last = std::min(
      owners.size(), static_cast<std::size_t>((range.end + kWord - 1) / kWord));
  if (first < last)
    std::fill(owners.begin() + static_cast<std::ptrdiff_t>(first),
              owners.begin() + static_cast<std::ptrdiff_t>(last), kNobody);
  range = {};
}

void BarrierEpoch::begin() {
  // Who mostly goes direct saves the log.
  constexpr unsigned kMostFalls = 6;
  falls_ = isDirect_ && !rest_ ? std::min(falls_ + 1, kMostFalls)
           : isDirect_         ? falls_
                               : 0;
  if (rest_)
    --rest_;
  else if (isDirect_ && falls_ > 1)
    rest_ = 1u << falls_;
  isDirect_ = isInShadow_ = rest_ > 0;
  clear(readers_, read_);
  clear(writers_, written_);
  log_.clear();
  readersBehind_ = 0;
}

} // namespace kiln::sim
