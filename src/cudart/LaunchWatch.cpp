// LaunchWatch: handlers that set flags, and a line that is written over.
#include "cudart/LaunchWatch.h"
#include "support/text/BriefName.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cudart {

static std::atomic<bool> isCancelled{false};
static std::atomic<int> launchesUnderWay{0};
static volatile std::sig_atomic_t received = 0;

extern "C" {
static void kilnEndLaunch(int signal) {
  if (received || launchesUnderWay == 0) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  received = signal;
  isCancelled = true;
}
}

LaunchWatch &LaunchWatch::get() {
  static auto *watch = new LaunchWatch; // NOLINT: never destroyed
  return *watch;
}

void LaunchWatch::catchSignals() {
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction before{};
    bool isFree = sigaction(signal, nullptr, &before) == 0 &&
                  !(before.sa_flags & SA_SIGINFO) &&
                  before.sa_handler == SIG_DFL;
    if (isFree)
      std::signal(signal, kilnEndLaunch);
  }
}

int LaunchWatch::signal() { return received; }

void LaunchWatch::leave() {
  std::signal(received, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, received);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(received);
  ::_exit(128 + received);
}

void LaunchWatch::attach(SimOptions &options, double totalTimeLimitS) {
  totalLimitS_ = totalTimeLimitS;
  options.cancel = &isCancelled;
  if (!isatty(STDERR_FILENO))
    return;
  options.progress = [this](std::uint64_t done, std::uint64_t all) {
    draw(done, all);
  };
}

void LaunchWatch::announce(const std::string &kernel, std::uint64_t number) {
  std::lock_guard lock(mutex_);
  kernel_ = kernel;
  number_ = number;
}

void LaunchWatch::begin() {
  ++launchesUnderWay;
  std::lock_guard lock(mutex_);
  begun_ = Clock::now();
}

void LaunchWatch::end() {
  --launchesUnderWay;
  wipe();
}

double LaunchWatch::timeLeft(double own) const {
  if (totalLimitS_ <= 0)
    return own;
  double left =
      totalLimitS_ -
      std::chrono::duration<double>(Clock::now() - opened_).count();
  if (left <= 0)
    return -1;
  return own > 0 ? std::min(own, left) : left;
}

/// The line is no wider than most terminals.
static constexpr std::size_t kWidth = 79;

static void write(const std::string &text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void LaunchWatch::draw(std::uint64_t done, std::uint64_t all) {
  std::lock_guard lock(mutex_);
  auto now = Clock::now();
  if (now - begun_ < std::chrono::milliseconds(500) ||
      now - drawn_ < std::chrono::milliseconds(100))
    return;
  drawn_ = now;
  isDrawn_ = true;
  double seconds = std::chrono::duration<double>(now - begun_).count();
  std::string numbers =
      fmt::format(": {} of {} CTAs, {:.3g} CTAs/s", done, all,
                  static_cast<double>(done) / seconds);
  std::string name = fmt::format("launch {} of {}", number_, briefName(kernel_));
  std::size_t room = kWidth > numbers.size() ? kWidth - numbers.size() : 0;
  if (name.size() > room)
    name = name.substr(0, room > 3 ? room - 3 : 0) + "...";
  write(fmt::format("\r{:<{}}", name + numbers, kWidth));
}

void LaunchWatch::wipe() {
  std::lock_guard lock(mutex_);
  if (std::exchange(isDrawn_, false))
    write(fmt::format("\r{:{}}\r", "", kWidth));
}

} // namespace kiln::cudart
