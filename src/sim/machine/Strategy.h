// Strategy: who goes next, of all that can.
//
// A launch without one takes turns as its interleaving says (Cluster::step,
// LaunchScheduler::stepAll). With one, every turn is a choice: the scheduler
// lists what is ready in all clusters that have begun, and the strategy names
// one of the list. That is the one place where others decide about the order:
// an exploration of all orders, a replay of a known one, a debugger that holds a
// warp (it never names it).
//
// A launch with a strategy is run by one thread, and work in flight is done when
// it is chosen, or when somebody waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kiln::sim {

class Cluster;
class Machine;
class Warp;
struct Pending;

/// Something that can go on now, or begin.
struct Ready {
  enum class Kind : std::uint8_t {
    lanes,  ///< a group of a warp's lanes, at an instruction
    work,   ///< a copy, an MMA, an arrival or a commit in flight
    cluster ///< the next cluster becomes resident
  };
  Kind kind = Kind::lanes;
  Cluster *cluster = nullptr; ///< of lanes and of work
  Warp *warp = nullptr;
  std::size_t group = 0; ///< of Warp::groups()
  std::shared_ptr<Pending> work = nullptr;
};

/// Who goes, and how far.
struct Turn {
  /// None of the list: what is stuck is let go where the machine has a rule for
  /// it (parted lanes, time-outs of waits); where it has none, the launch ends
  /// with a deadlock.
  static constexpr std::size_t kNone = ~std::size_t(0);

  std::size_t chosen = kNone;
  /// Lanes execute at most so many instructions, and stop before the next one
  /// that `stops` marks; the first one is executed in any case.
  int instructions = 512;
  /// By instruction of Code::ops, 1: stop before it; null: nowhere.
  const std::uint8_t *stops = nullptr;
};

class Strategy {
public:
  virtual ~Strategy() = default;

  /// A launch begins.
  virtual void begin(Machine &) {}
  /// A cluster has become resident, and none of its lanes has gone yet: the
  /// place to watch it from (Cluster::watchers).
  virtual void begin(Cluster &) {}
  /// A cluster has ended, or the launch has with it, and will be gone.
  virtual void end(Cluster &) {}
  /// Who is next; `ready` may be empty. Lanes of it may still find that what
  /// they wait for has not come, and stay where they are.
  virtual Turn choose(std::span<const Ready> ready) = 0;
  /// Nobody was chosen, no rule lets anybody go, and turns are taken as without
  /// a strategy: to tell of the deadlock, unless something moves all the same.
  virtual void giveUp() {}
};

} // namespace kiln::sim
