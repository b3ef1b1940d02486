// Streams: whose turn it is, and when nobody will come any more.
#include "sim/launch/Streams.h"
#include "support/Error.h"

#include <algorithm>
#include <chrono>
#include <dirent.h>
#include <utility>

namespace kiln::sim {

using WallClock = std::chrono::steady_clock;

/// How often what waits is looked at while nobody asks for it.
static constexpr auto kLook = std::chrono::microseconds(500);
/// For how long another thread of the host may take to write what a kernel
/// waits for.
static constexpr auto kHostPatience = std::chrono::seconds(10);

/// Threads of this process.
static int countThreads() {
  int count = 0;
  if (DIR *folder = opendir("/proc/self/task")) {
    while (const dirent *entry = readdir(folder))
      count += entry->d_name[0] != '.';
    closedir(folder);
  }
  return count;
}

Streams::~Streams() {
  {
    std::lock_guard lock(mutex_);
    isEnded_ = true;
    isEnding_.notify_all();
    hasCalls_.notify_all();
  }
  if (attendant_.joinable())
    attendant_.join();
  if (caller_.joinable())
    caller_.join();
}

Streams::Queue &Streams::add(bool isBlocking) {
  std::lock_guard lock(mutex_);
  queues_.push_back({isBlocking, {}});
  return queues_.back();
}

void Streams::remove(Queue &queue) {
  if (isCaller())
    return; // it stays until the device goes: there is no waiting for it
  settle([&] { return isEmpty(queue); });
  std::lock_guard lock(mutex_);
  queues_.remove_if([&](const Queue &one) { return &one == &queue; });
}

bool Streams::canBegin(const Queue &queue) const {
  std::uint64_t number = queue.items.front().number;
  const Queue &first = queues_.front();
  if (&queue != &first)
    return !queue.isBlocking || first.items.empty() ||
           first.items.front().number > number;
  return std::all_of(queues_.begin(), queues_.end(), [&](const Queue &other) {
    return &other == &first || !other.isBlocking || other.items.empty() ||
           other.items.front().number > number;
  });
}

void Streams::put(Queue &queue, Work work) {
  std::lock_guard lock(mutex_);
  queue.items.push_back({++count_, std::move(work)});
  while (advance(false) && !queue.items.empty())
    ;
  if (!areEmpty())
    attend();
}

void Streams::forgetPrevious(const Queue *queue) {
  std::lock_guard lock(mutex_);
  for (Queue &one : queues_)
    if (!queue || &one == queue)
      one.previous.reset();
}

Streams::Previous Streams::previous() {
  std::lock_guard lock(mutex_);
  Previous all;
  for (Queue &queue : queues_)
    if (queue.previous)
      all[&queue] = queue.previous;
  return all;
}

void Streams::setPrevious(const Previous &previous) {
  std::lock_guard lock(mutex_);
  for (Queue &queue : queues_) {
    auto found = previous.find(&queue);
    queue.previous = found == previous.end() ? nullptr : found->second;
  }
}

bool Streams::isEmpty(const Queue &queue) const {
  std::lock_guard lock(mutex_);
  return queue.items.empty();
}

bool Streams::areEmpty() const {
  std::lock_guard lock(mutex_);
  return std::all_of(queues_.begin(), queues_.end(),
                     [](const Queue &one) { return one.items.empty(); });
}

bool Streams::advance(bool isLast) {
  bool hasMoved = false;
  for (Queue &queue : queues_)
    while (!queue.items.empty() && canBegin(queue)) {
      State state = State::done;
      auto previous = queue.previous;
      try {
        state = queue.items.front().work(isLast);
      } catch (...) {
        queue.items.pop_front();
        throw;
      }
      hasMoved |= state != State::waiting;
      if (state != State::done)
        break;
      queue.items.pop_front();
      if (queue.previous == previous)
        queue.previous.reset();
      if (isLast) // one end may be enough for the others
        return true;
    }
  return hasMoved;
}

void Streams::putCall(Queue &queue, std::function<void()> function) {
  std::lock_guard lock(mutex_);
  auto call = std::make_shared<Call>();
  call->function = std::move(function);
  put(queue, [this, call](bool) {
    if (!std::exchange(call->isBegun, true)) {
      calls_.push_back(call);
      if (!caller_.joinable())
        caller_ = std::thread([this] { callFunctions(); });
      hasCalls_.notify_all();
    }
    return call->isDone ? State::done : State::waiting;
  });
}

bool Streams::isCaller() const {
  std::lock_guard lock(mutex_);
  return caller_.get_id() == std::this_thread::get_id();
}

void Streams::callFunctions() {
  std::unique_lock lock(mutex_);
  for (;;) {
    hasCalls_.wait(lock, [this] { return isEnded_ || !calls_.empty(); });
    if (isEnded_)
      return;
    std::shared_ptr<Call> call = calls_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      call->function();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure)
      failure_ = failure;
    call->isDone = true;
    calls_.pop_front();
    advanceQuietly();
    isEnding_.notify_all();
  }
}

bool Streams::advanceQuietly(bool isLast) {
  try {
    return advance(isLast);
  } catch (...) {
    failure_ = std::current_exception();
    return true;
  }
}

void Streams::finish(const Queue *queue) {
  finish([&] { return queue ? isEmpty(*queue) : areEmpty(); });
}

void Streams::finish(const std::function<bool()> &isDone) {
  if (isCaller())
    userError("a function of the host that a stream calls must not wait for "
              "the device: the stream waits for the function");
  settle(isDone);
  std::lock_guard lock(mutex_);
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Streams::settle(const std::function<bool()> &isDone) {
  std::unique_lock lock(mutex_);
  auto start = WallClock::now();
  while (!isDone()) {
    if (advanceQuietly()) {
      start = WallClock::now();
      continue;
    }
    if (!calls_.empty()) {
      isEnding_.wait_for(lock, kLook);
      start = WallClock::now();
      continue;
    }
    // This thread, the attendant and the caller of functions write nothing.
    bool isAlone = countThreads() <= 1 + isAttended_ + caller_.joinable();
    if (isAlone || WallClock::now() - start > kHostPatience) {
      if (!advanceQuietly(/*isLast=*/true))
        return;
      continue;
    }
    isEnding_.wait_for(lock, kLook);
  }
}

void Streams::attend() {
  if (isAttended_ || isEnded_)
    return;
  if (attendant_.joinable())
    attendant_.join();
  attendant_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!isEnded_ && !areEmpty()) {
      isEnding_.wait_for(lock, kLook);
      advanceQuietly();
    }
    isAttended_ = false;
  });
  isAttended_ = true; // it waits for the mutex, which is held here
}

} // namespace kiln::sim
