// InterleavingKernel: a right kernel of elected lanes, tickets, spin loops and
// barriers, drawn from a seed, and what it must leave in memory.
//
// It is a list of phases, each with its shape: who is elected and how the
// branch to it is written, how its loop spins, how it publishes. What a phase
// must leave in memory is put down while it is written.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace kiln::fuzz {

class Kernel {
public:
  explicit Kernel(std::mt19937_64 &random);

  std::string ptx() const;

  std::uint32_t grid, threads, cluster;
  std::uint32_t words = 0;                       ///< of memory
  std::map<std::uint32_t, std::uint32_t> wanted; ///< of some of them

private:
  static constexpr std::uint32_t kSlots = 64;

  std::uint32_t draw(std::size_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  bool toss() { return draw(2); }
  template <typename... Args>
  void emit(fmt::format_string<Args...> format, Args &&...args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  /// A register of its own.
  std::string fresh() { return fmt::format("%h{}", fresh_++); }
  std::string label() { return fmt::format("L{}", labels_++); }
  /// Words of memory, all zero.
  std::uint32_t allocate(std::uint32_t count) {
    return (words += count) - count;
  }
  /// A word of shared memory, zero; a kernel has fewer phases than there are.
  std::uint32_t slot() { return 4 * slots_++; }
  /// %x = address of a word, counted from `base` by a register.
  void address(const char *to, std::uint32_t base, const char *index) {
    emit("mad.wide.u32 {}, {}, 4, %m;", to, index);
    emit("add.u64 {}, {}, {};", to, to, 4 * base);
  }

  void begin();
  void end();
  void meetCluster();
  /// `body` is for thread `who` alone.
  void elect(std::uint32_t who, const std::function<void()> &body);
  /// Until the word at %x0 is `enough`, which %r1 is then.
  void spin(std::uint32_t enough = 1);
  /// The word at %x1 becomes %r2.
  void publish();
  void meetThreads();
  /// Number `index` of a chain waits for the one before and publishes what it
  /// has got, and `by` more.
  void passOn(std::uint32_t flags, const char *index, std::uint32_t by);

  /// A look-back: each CTA takes a ticket, waits for the one before, publishes.
  void addChain();
  /// A few threads of each CTA tell those of the next, and wait to be told.
  void addExchange();
  /// All threads of the grid meet, and read what others have written.
  void addGridBarrier();
  /// A thread waits for another of its CTA, perhaps of its warp.
  void addHandOver();
  /// A lock that some threads of every CTA take, one after the other.
  void addLock();
  /// The last CTA adds up what all have left.
  void addLastBlock();
  /// One warp arrives at a named barrier and goes on, another waits there.
  void addNamedBarrier();
  /// The CTAs of a cluster read each other's shared memory.
  void addClusterBarrier();
  /// Two threads give a flag back and forth: of two CTAs, or of one.
  void addPingPong();
  /// CTAs take tiles from a queue until there are none; each tile waits for the
  /// one before.
  void addQueue();
  /// All threads count those of a kind, or the lanes of a warp add up.
  void addVote();
  /// Whole warps leave, or some lanes of the last one.
  void addExit();
  /// A word is read early, where it races, and used by nobody.
  void addHoisted();
  void addPhase();

  std::mt19937_64 &random_;
  std::string text_;
  std::uint32_t live_, labels_ = 0, slots_ = 0, named_ = 0, fresh_ = 0;
};

} // namespace kiln::fuzz
