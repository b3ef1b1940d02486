// Streams: work that is done in the order of its streams.
//
// Work is done at once where nothing is before it, by whoever adds it. Only
// what has to wait for others stays: a kernel in which nothing moves until
// another stream or the host writes something, and what was put behind it. It
// goes on whenever somebody waits, and now and then by itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace kiln::sim {

struct EndedLaunch;

class Streams {
public:
  enum class State : std::uint8_t { done, moved, waiting };
  /// Called until it is done. With `isLast` nobody will help: it must end.
  using Work = std::function<State(bool isLast)>;

  struct Queue {
    /// In order with the default stream.
    bool isBlocking = true;
    struct Item {
      std::uint64_t number;
      Work work;
    };
    std::deque<Item> items;
    /// The launch that was the last thing done, for a dependent one behind it;
    /// null: something else was, or the host has waited for it.
    std::shared_ptr<const EndedLaunch> previous = nullptr;
  };

  Streams() { queues_.emplace_back(); }
  ~Streams();

  Queue &defaultQueue() { return queues_.front(); }
  Queue &add(bool isBlocking);
  /// After its work.
  void remove(Queue &queue);

  /// Put work behind what is there. Exceptions of the work are the caller's
  /// where it is done at once.
  void put(Queue &queue, Work work);
  /// Put a function of the host there. A thread of its own calls it, without
  /// the mutex: it may take locks that somebody holds who uses the streams. It
  /// must not wait for them itself.
  void putCall(Queue &queue, std::function<void()> function);
  /// Whether this is the thread that calls functions of the host.
  bool isCaller() const;
  /// The host has waited for what is in the queue, or with null for all.
  void forgetPrevious(const Queue *queue);
  /// By queue, and put back.
  using Previous = std::map<Queue *, std::shared_ptr<const EndedLaunch>>;
  Previous previous();
  void setPrevious(const Previous &previous);
  bool isEmpty(const Queue &queue) const;
  bool areEmpty() const;
  /// Until the queue, or with null every queue, is empty. Not while the mutex
  /// is held: others must be able to help.
  void finish(const Queue *queue);
  /// Until somebody says so; he must come from work in a queue. Throws what
  /// went wrong meanwhile where nobody was told.
  void finish(const std::function<bool()> &isDone);
  /// The same for destructors: throws nothing.
  void settle(const std::function<bool()> &isDone);

  /// Held by everyone who uses the streams or what their work works on.
  std::recursive_mutex &mutex() { return mutex_; }

private:
  bool canBegin(const Queue &queue) const;
  /// One round over all queues; whether something moved.
  bool advance(bool isLast);
  /// The same; what goes wrong is told to whoever waits.
  bool advanceQuietly(bool isLast = false);
  /// Start the thread that looks after what waits.
  void attend();
  /// The life of the thread that calls functions of the host.
  void callFunctions();

  mutable std::recursive_mutex mutex_;
  std::list<Queue> queues_; ///< the default one first
  std::uint64_t count_ = 0;
  std::thread attendant_;
  std::condition_variable_any isEnding_;
  bool isEnded_ = false, isAttended_ = false;
  std::exception_ptr failure_; ///< of work that nobody waited for

  struct Call {
    std::function<void()> function;
    bool isBegun = false, isDone = false;
  };
  std::thread caller_;
  std::condition_variable_any hasCalls_;
  std::deque<std::shared_ptr<Call>> calls_; ///< the first may be under way
};

} // namespace kiln::sim
