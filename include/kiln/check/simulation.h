// simulation.h: what only a simulator can do: memory at given addresses, memory
// put back as it was, launches that are refused or not before anything runs.
//
//     if (Simulation *simulation = device.simulation())
//       before = simulation->snapshot();
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/sim_options.h>
#include <kiln/run/buffer.h>
#include <kiln/run/launch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace KILN_API kiln {

/// What a launch has touched of memory, as it found it and as it left it.
class Footprint {
public:
  virtual ~Footprint();
  virtual std::size_t bytes() const = 0; ///< that it takes
  /// Where nothing is under way and memory holds what the launch found: leave
  /// there what the launch left. Else do nothing and return false.
  virtual bool repeat() const = 0;
};

/// What lies in the simulator's memory, to be put back: a launch can be run
/// again from where it began. It costs as much as is written meanwhile: what
/// nobody writes is not copied.
class Snapshot {
public:
  virtual ~Snapshot();
  virtual void restore() const = 0;
  /// No launch was under way when it was taken.
  virtual bool is_idle() const = 0;
  /// While it is held, nobody else uses the device.
  virtual std::unique_lock<std::recursive_mutex> hold() const = 0;

  /// A buffer or a variable as it was.
  struct Memory {
    std::string name; ///< as findings call it
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    bool is_touched = false; ///< read or written since then
    bool is_written = false; ///< written since then
    /// Which bytes had been written, a bit for each, the lowest first; empty:
    /// all of them.
    std::vector<std::byte> written = {};
    /// The pieces that were touched: where they begin, and what they held.
    std::vector<std::pair<std::size_t, std::vector<std::byte>>> pieces = {};
  };
  /// Of what was done since then; null where it takes more bytes than that, or
  /// kernels have a heap.
  virtual std::unique_ptr<Footprint> footprint(std::size_t most_bytes) const = 0;
  /// Everything there was, and is still; in the order of addresses.
  virtual std::vector<Memory> memory() const = 0;
};
class Simulation {
public:
  virtual ~Simulation();

  /// As the device was opened.
  virtual const SimOptions &options() const = 0;
  /// Memory at an address, so that pointers which a program has kept hold again.
  /// It lies where buffers of a GPU and memory of the host do: from 4096 on
  /// below 2^40, or from 5 * 2^40 on below 2^49. Throws UserError where it does
  /// not, and where it overlaps another buffer.
  virtual Buffer allocate_at(std::uint64_t address, std::size_t bytes) = 0;
  /// Memory that no Buffer holds: it is there until free_in_stream. Kernels that
  /// use it afterwards get the finding `use-after-free`.
  virtual std::uint64_t allocate_unheld(std::size_t bytes) = 0;
  /// Such memory that was freed is there again, at once, or where it is yet to be
  /// freed behind that.
  virtual void allocate_again(std::uint64_t address, std::size_t bytes,
                              const Stream &stream) = 0;
  /// In the stream's turn.
  virtual void free_in_stream(std::uint64_t address, const Stream &stream) = 0;
  /// Memory for whoever works on it beside kernels, after all that is before it.
  struct Place {
    std::byte *data = nullptr; ///< null: the bytes are in no buffer
    std::string what = {};     ///< where they are then
    bool is_freed = false;     ///< they were in one
    std::optional<std::size_t> unwritten = {}; ///< the first that nobody wrote
  };
  virtual Place touch(std::uint64_t address, std::size_t bytes,
                      bool is_write) = 0;
  /// Device::load, with variables at such addresses, by their names.
  virtual std::shared_ptr<LoadedModule>
  load_at(std::span<const std::string_view> ptx,
          const std::map<std::string, std::uint64_t> &variables) = 0;
  /// Of every buffer there is.
  virtual std::unique_ptr<Snapshot> snapshot() = 0;
  /// Throws UserError where the launch would be refused.
  virtual void check(const LaunchDescription &launch) = 0;
  /// Launch one behind the other in a stream, those that are dependent as early
  /// as the interleaving wants it, and wait for all of them.
  [[nodiscard]] virtual std::vector<LaunchResult>
  launch_chain(std::span<const LaunchDescription> launches,
               const Stream &stream) = 0;
  /// The same without waiting: `ended` is told of each, in their order, which
  /// may be after this returns.
  virtual void enqueue_chain(std::span<const LaunchDescription> launches,
                             const Stream &stream,
                             std::function<void(LaunchResult)> ended) = 0;
  /// Whether a dependent launch behind it may begin before it has ended: it
  /// executes griddepcontrol.launch_dependents.
  virtual bool lets_dependents_begin(const LaunchDescription &launch) = 0;
  /// Record an event behind a launch, which it does not wait for: it happens
  /// when every CTA has triggered or ended. What the launches of another stream
  /// do that wait for it is compared with that launch, as what a dependent one
  /// does.
  virtual void record_trigger(const Event &event, const Stream &stream) = 0;
  /// Whether another interleaving of the launch could show anything else: it has
  /// asynchronous operations, atomic, volatile or ordered accesses, or cluster
  /// barriers.
  virtual bool can_reorder(const LaunchDescription &launch) = 0;
  /// Whether what it does follows from its parameters and from memory: it reads
  /// no clock, and no dependent launch overlaps it.
  virtual bool is_repeatable(const LaunchDescription &launch) = 0;
};

} // namespace kiln
