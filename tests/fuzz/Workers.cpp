// Workers: fork, count, and read what the dead have left.
#include "fuzz/Workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <map>

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::fuzz {

using Clock = std::chrono::steady_clock;

/// What a worker leaves with where it saw a defect and lived.
static constexpr int kDefectStatus = 99;
/// Of the same cause, so many inputs are kept.
static constexpr std::uint64_t kKeptPerCause = 3;

std::uint64_t WorkResult::inputs() const {
  return outcomes[0] + outcomes[1] + outcomes[2] + outcomes[3] + defects;
}

namespace {
/// Written by workers, read by whoever survives them.
struct Shared {
  static constexpr int kMaxJobs = 64;
  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> outcomes[4];
  std::atomic<std::uint64_t> current[kMaxJobs]; ///< what each worker is at
};

class Foreman {
public:
  explicit Foreman(const WorkPlan &plan)
      : plan_(plan), begin_(Clock::now()),
        jobs_(std::clamp(plan.jobs, 1, Shared::kMaxJobs)) {
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error("no shared memory");
    shared_ = new (memory) Shared();
  }
  ~Foreman() { munmap(shared_, sizeof(Shared)); }
  Foreman(const Foreman &) = delete;
  Foreman &operator=(const Foreman &) = delete;

  WorkResult run() {
    for (int slot = 0; slot < jobs_; ++slot) {
      texts_.push_back(memfd_create("fuzz", 0));
      hire(slot);
    }
    for (int status = 0; !slots_.empty();) {
      pid_t gone = waitpid(-1, &status, 0);
      auto found = slots_.find(gone);
      if (gone < 0 || found == slots_.end())
        continue;
      int slot = found->second;
      slots_.erase(found);
      if (status == 0)
        continue; // nothing is left to do
      takeDefect(slot, status);
      hire(slot);
    }
    WorkResult result;
    for (int i = 0; i < 4; ++i)
      result.outcomes[i] = shared_->outcomes[i];
    for (const auto &[cause, count] : causes_) {
      result.defects += count;
      fmt::print("{} inputs: {}\n", count, cause);
    }
    return result;
  }

private:
  const WorkPlan &plan_;
  Clock::time_point begin_;
  int jobs_;
  Shared *shared_;
  std::map<pid_t, int> slots_;
  std::vector<int> texts_; ///< stderr of each slot's worker, in memory
  std::map<std::string, std::uint64_t> causes_;

  void hire(int slot) {
    std::fflush(stdout);
    if (ftruncate(texts_[slot], 0) != 0 || lseek(texts_[slot], 0, SEEK_SET))
      throw std::runtime_error("cannot empty a worker's text");
    pid_t pid = fork();
    if (pid < 0)
      throw std::runtime_error("cannot start a worker");
    if (pid == 0) {
      dup2(texts_[slot], STDERR_FILENO);
      work(slot);
    }
    slots_[pid] = slot;
  }

  bool isOver() const {
    return plan_.seconds > 0 &&
           std::chrono::duration<double>(Clock::now() - begin_).count() >
               plan_.seconds;
  }

  /// The signals' default ends the worker: whatever it is busy with.
  void setTimers(double seconds) const {
    auto of = [](double time) {
      itimerval value{};
      value.it_value.tv_sec = static_cast<time_t>(time);
      return value;
    };
    itimerval busy = of(seconds), any = of(seconds * 12);
    setitimer(ITIMER_PROF, &busy, nullptr);
    setitimer(ITIMER_REAL, &any, nullptr); // it sleeps, or waits for itself
  }

  [[noreturn]] void work(int slot) {
    while (!isOver()) {
      std::uint64_t number = shared_->next++;
      if (number >= plan_.inputs)
        break;
      shared_->current[slot] = number;
      setTimers(plan_.inputSeconds);
      try {
        Input input = plan_.inputAt(number);
        ++shared_
              ->outcomes[static_cast<int>(runInput(input.text, input.launch))];
      } catch (const Misbehaviour &defect) {
        std::fprintf(stderr, "%s\n", defect.what.c_str());
        _exit(kDefectStatus);
      }
    }
    _exit(0);
  }

  std::string textOf(int slot) const {
    std::string text(64 << 10, '\0');
    ssize_t count = pread(texts_[slot], text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

  /// One line that inputs with the same defect share.
  static std::string causeOf(int status, const std::string &text) {
    std::string cause;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
      return "takes longer than it may";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
      return "waits longer than it may";
    for (const char *mark : {"runtime error: ", "SUMMARY: ", "what():  "})
      if (cause.empty() && text.find(mark) != std::string::npos)
        cause = text.substr(text.find(mark));
    if (cause.empty() && WIFSIGNALED(status))
      cause = fmt::format("signal {}", WTERMSIG(status));
    if (cause.empty())
      cause = text;
    cause = cause.substr(0, std::min<std::size_t>(cause.find('\n'), 160));
    // Numbers differ from input to input.
    std::string general;
    for (char c : cause)
      if (!std::isdigit(static_cast<unsigned char>(c)))
        general += c;
      else if (general.empty() || general.back() != '#')
        general += '#';
    return general;
  }

  void takeDefect(int slot, int status) {
    std::uint64_t number = shared_->current[slot];
    std::string text = textOf(slot);
    std::uint64_t count = ++causes_[causeOf(status, text)];
    if (count > kKeptPerCause)
      return;
    std::string name = plan_.nameOf(number);
    fmt::print("{}: {}\n{}", name, causeOf(status, text),
               count > 1 ? "" : text.substr(0, 4000));
    if (plan_.keepFolder.empty())
      return;
    std::string path = plan_.keepFolder + "/" + name + ".ptx";
    std::ofstream(path) << plan_.inputAt(number).text;
    fmt::print("{} holds the input\n", path);
  }
};
} // namespace

WorkResult runWorkers(const WorkPlan &plan) { return Foreman(plan).run(); }

} // namespace kiln::fuzz
