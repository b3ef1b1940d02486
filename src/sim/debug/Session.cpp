// Session: processes and movements.
#include "sim/debug/Session.h"
#include "kiln/base/file.h"
#include "kiln/check/sim.h"
#include "sim/debug/Runner.h"
#include "support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::sim {

using Json = nlohmann::json;

DebugSession::DebugSession(LaunchJob job, const DebugOptions &options)
    : options_(options) {
  SimOptions sim = options_.sim;
  if (!options_.has_device)
    sim.device = job.device();
  sim.threads = 1;
  sim = job.sim_options(std::move(sim));
  // What a kernel prints is a message, once it has an own process.
  sim.print = [](const std::string &) {};
  std::string path =
      job.ptx_paths.size() == 1 ? job.ptx_paths.front() : std::string("PTX");
  job_ = std::make_unique<PreparedJob>(std::move(job), open_sim(sim));
  if (options_.first_launch < 1 ||
      options_.first_launch > job_->descriptions().size())
    userError("there is no launch {}: the launch file has {}",
              options_.first_launch, job_->descriptions().size());
  module_ = std::dynamic_pointer_cast<const SimModule>(
      job_->descriptions().front().module);
  if (!module_)
    internalError("the module of a job is no simulator's");
  places_.emplace(module_->module(), path);
  if (options_.stops_on_findings)
    stops_.push_back({{"id", nextId_++}, {"kind", "finding"}});
  beginProcess();
}

const ptx::Module &DebugSession::module() const { return module_->module(); }

void DebugSession::beginProcess() {
  auto [own, theirs] = Channel::pair();
  pid_t child = fork();
  if (child < 0)
    runtimeError("the process that simulates could not be forked: {}",
                 std::strerror(errno));
  if (child == 0) {
    own.close();
    simulate(std::move(theirs));
  }
  theirs.close();
  root_ = child;
  checkpoints_.push_back({0, child, std::move(own)});
}

/// Ctrl-C is the debugger's; output would be taken for its own.
static void standAside() {
  setpgid(0, 0);
  // Whoever is forked by a copy that ends is reaped here.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  int nowhere = open("/dev/null", O_RDWR);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO})
    if (nowhere >= 0)
      dup2(nowhere, stream);
}

void DebugSession::simulate(Channel channel) {
  standAside();
  Runner runner(std::move(channel), *places_);
  try {
    auto descriptions = job_->descriptions();
    Device &device = job_->device();
    std::size_t first = options_.first_launch - 1;
    for (std::size_t i = 0; i < first; ++i)
      (void)device.launch(descriptions[i]);
    // Held by launches: who is forked within one holds it then.
    runner.setMutex(*device.simulation()->snapshot()->hold().mutex());
    runner.waitAsCheckpoint();
    SpectatorScope scope(runner);
    bool isFinished = true;
    for (std::size_t i = first; i < descriptions.size() && isFinished; ++i) {
      LaunchDescription launch = descriptions[i];
      auto sim = std::make_shared<SimOptions>(*launch.options);
      sim->print = [&](const std::string &text) { runner.print(text); };
      launch.options = sim;
      runner.beginLaunch(i + 1, job_->launches()[i].kernel);
      LaunchResult result = device.launch(launch);
      runner.endLaunch(result);
      isFinished = result.is_finished;
    }
    runner.serveForEver();
  } catch (const Error &error) {
    runner.fail(error.what());
  } catch (const std::exception &error) {
    runner.fail(error.what());
  }
}

DebugSession::~DebugSession() {
  endRunner();
  for (Checkpoint &one : checkpoints_)
    one.channel.close();
  if (root_ <= 0)
    return;
  kill(-root_, SIGKILL);
  kill(root_, SIGKILL);
  while (waitpid(root_, nullptr, 0) < 0 && errno == EINTR)
    ;
}

void DebugSession::endRunner() {
  runner_.close();
  if (runnerProcess_ > 0)
    kill(std::exchange(runnerProcess_, 0), SIGKILL);
}

void DebugSession::spawn(std::size_t checkpoint) {
  endRunner();
  Checkpoint &from = checkpoints_[checkpoint];
  auto [own, theirs] = Channel::pair();
  if (!from.channel.send({{"do", "fork"}}, std::move(theirs)))
    runtimeError("the checkpoint of time {} is gone: its process has ended",
                 from.time);
  runner_ = std::move(own);
  Json message;
  while (runner_.receive(message, 1000) == Channel::Got::nothing)
    ;
  if (message.contains("error"))
    runtimeError("{}", message["error"].get<std::string>());
  if (!message.contains("runner"))
    runtimeError("the checkpoint of time {} could not be forked", from.time);
  runnerProcess_ = message["runner"];
  time_ = from.time;
  hasEnded_ = false;
}

void DebugSession::noteCheckpoint(const Json &message) {
  Checkpoint made{message.at("time"), message.at("checkpoint"),
                  runner_.takeAlong()};
  auto at =
      std::lower_bound(checkpoints_.begin(), checkpoints_.end(), made.time,
                       [](const Checkpoint &one, std::uint64_t time) {
                         return one.time < time;
                       });
  checkpoints_.insert(at, std::move(made));
  ++made_;
  thinOut();
}

/// Bytes of a process that it has alone, and its part of those it shares.
static std::uint64_t proportionalBytes(int process) {
  std::string path = fmt::format("/proc/{}/smaps_rollup", process);
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  char text[4096];
  ssize_t count = read(file, text, sizeof(text) - 1);
  close(file);
  text[std::max<ssize_t>(count, 0)] = 0;
  const char *found = std::strstr(text, "\nPss:");
  return found ? std::strtoull(found + 5, nullptr, 10) * 1024 : 0;
}

std::uint64_t DebugSession::measure() {
  std::uint64_t sum = 0;
  for (const Checkpoint &one : checkpoints_)
    sum += proportionalBytes(one.process);
  return checkpointBytes_ = sum;
}

void DebugSession::thinOut() {
  // Reading what a process has takes a millisecond.
  constexpr std::uint64_t kSeldom = 4;
  if (made_ % kSeldom == 0 || checkpoints_.size() <= kSeldom)
    measure();
  while (checkpoints_.size() > 1 &&
         (checkpoints_.size() > options_.max_checkpoints ||
          checkpointBytes_ > options_.checkpoint_memory_bytes)) {
    // Far from here they may be far from one another.
    std::size_t least = 1;
    double leastGap = 0;
    std::uint64_t here = std::max(time_, checkpoints_.back().time);
    for (std::size_t i = 1; i < checkpoints_.size(); ++i) {
      std::uint64_t next =
          i + 1 < checkpoints_.size() ? checkpoints_[i + 1].time : here + 1;
      auto gap = static_cast<double>(next - checkpoints_[i - 1].time);
      gap /= std::sqrt(1 + static_cast<double>(here - checkpoints_[i].time));
      if (i == 1 || gap < leastGap) {
        least = i;
        leastGap = gap;
      }
    }
    kill(checkpoints_[least].process, SIGKILL);
    std::uint64_t bytes = proportionalBytes(checkpoints_[least].process);
    checkpoints_.erase(checkpoints_.begin() +
                       static_cast<std::ptrdiff_t>(least));
    ++thinned_;
    checkpointBytes_ -= std::min(bytes, checkpointBytes_);
    if (checkpointBytes_ > options_.checkpoint_memory_bytes)
      measure();
  }
}

Json DebugSession::await() {
  Json message;
  bool isToldToPause = false;
  for (;;) {
    Channel::Got got = runner_.receive(message, 50);
    if (isInterrupted_ && !isToldToPause) {
      isToldToPause = true;
      runner_.send({{"do", "pause"}});
    }
    if (got == Channel::Got::nothing)
      continue;
    if (got == Channel::Got::closed || !message.is_object()) {
      endRunner();
      runtimeError("the process that simulates has ended; `goto` an earlier "
                   "time begins another one");
    }
    if (message.contains("print")) {
      std::string text = message["print"];
      if (options_.print)
        options_.print(text);
      else
        std::fwrite(text.data(), 1, text.size(), stderr);
    } else if (message.contains("checkpoint")) {
      noteCheckpoint(message);
    } else if (message.contains("stopped")) {
      time_ = message["time"];
      furthest_ = std::max(furthest_, time_);
      hasEnded_ = message["ended"];
      position_ = message["position"];
      reason_ = message["stopped"];
      return message;
    } else if (message.contains("error")) {
      endRunner();
      runtimeError("{}", message["error"].get<std::string>());
    }
  }
}

Json DebugSession::run(Json request) {
  request["do"] = "run";
  request["quiet_until"] = furthest_;
  request["interval_ms"] = options_.checkpoint_interval_ms;
  Json known = Json::array();
  for (const Checkpoint &one : checkpoints_)
    if (one.time > time_)
      known.push_back(one.time);
  request["known"] = known;
  if (!runner_.send(request))
    runtimeError("the process that simulates has ended");
  return await();
}

void DebugSession::needLive() {
  if (!runner_.isOpen())
    goToTime(position_.is_null() ? 0 : time_);
}

void DebugSession::goToTime(std::uint64_t time) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < checkpoints_.size(); ++i)
    if (checkpoints_[i].time <= time)
      best = i;
  bool isAhead = runner_.isOpen() && !hasEnded_ && time_ <= time &&
                 time_ >= checkpoints_[best].time;
  if (!isAhead || position_.is_null())
    spawn(best);
  run({{"until", time}});
}

Json DebugSession::scanFrom(std::size_t checkpoint, Json request,
                            std::uint64_t until, std::size_t keep) {
  spawn(checkpoint);
  request["record"] = true;
  request["until"] = until;
  request["keep"] = keep;
  return run(std::move(request));
}

std::vector<Json> DebugSession::scan(const Json &request, std::uint64_t until,
                                     std::size_t keep) {
  std::vector<Json> found;
  if (until == 0)
    return found;
  Json position = position_;
  std::uint64_t end = until;
  std::size_t segment = checkpoints_.size();
  while (segment > 0 && checkpoints_[segment - 1].time >= end)
    --segment;
  // Checkpoints are made on the way, but behind those that are looked at next.
  std::uint64_t time = segment ? checkpoints_[segment - 1].time : 0;
  for (bool isFirst = false; !isFirst && found.size() < keep;) {
    auto at = std::upper_bound(
        checkpoints_.begin(), checkpoints_.end(), time,
        [](std::uint64_t t, const Checkpoint &one) { return t < one.time; });
    std::size_t index = static_cast<std::size_t>(at - checkpoints_.begin());
    index -= index > 0;
    time = checkpoints_[index].time;
    isFirst = index == 0;
    Json message = scanFrom(index, request, end, keep);
    if (isInterrupted_.exchange(false)) {
      goToTime(until);
      userError("the search was interrupted; it is time {} again", time_);
    }
    std::vector<Json> part = message.value("hits", std::vector<Json>());
    bool isTentative = message.contains("tentative");
    // At its very beginning a thread has nothing before it.
    if (isTentative && isFirst && part.size() < keep)
      part.insert(part.begin(),
                  Json{{"time", message["tentative"]},
                       {"kind", "step"},
                       {"text", "the thread's first instruction"}});
    std::uint64_t before = found.empty()
                               ? ~std::uint64_t(0)
                               : found.front().at("time").get<std::uint64_t>();
    std::erase_if(part, [&](const Json &hit) {
      return hit.at("time").get<std::uint64_t>() >= before;
    });
    found.insert(found.begin(), part.begin(), part.end());
    end =
        isTentative ? message["tentative"].get<std::uint64_t>() + 1 : time + 1;
    if (time > 0)
      --time;
  }
  if (found.size() > keep)
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(keep));
  position_ = position;
  return found;
}

Json DebugSession::here() {
  bool isKnown = position_.contains("thread") &&
                 position_["thread"] == focus_.toJson() &&
                 position_["time"] == time_;
  return isKnown ? position_ : ask("position", Json::object());
}

Json DebugSession::stopped(Json reason) {
  if (reason.contains("thread"))
    focus_ = ThreadName::fromJson(reason["thread"]);
  else if (position_.contains("thread") && reason.value("kind", "") != "end")
    focus_ = ThreadName::fromJson(position_["thread"]);
  reason_ = reason;
  if (!hasEnded_)
    position_ = here();
  return {{"reason", reason}, {"position", position_}};
}

Json DebugSession::start(const Json &) {
  goToTime(0);
  return stopped({{"kind", "start"}, {"text", "the first instruction"}});
}

Json DebugSession::resume(const Json &) {
  // The very first instruction may have a breakpoint.
  if (position_.is_null())
    spawn(0);
  needLive();
  Json message = run({{"stops", stops_}});
  Json reason = message["stopped"];
  if (isInterrupted_ && reason["kind"] == "reached")
    reason = {{"kind", "pause"}, {"text", "paused"}};
  return stopped(std::move(reason));
}

Json DebugSession::goTo(const Json &arguments) {
  goToTime(arguments.at("time").get<std::uint64_t>());
  if (hasEnded_)
    return stopped(
        {{"kind", "end"},
         {"text", fmt::format("the launches end at time {}", time_)}});
  return stopped({{"kind", "goto"}, {"text", fmt::format("time {}", time_)}});
}

Json DebugSession::stepOf(StepRequest::Kind kind, std::uint64_t count,
                          bool isBackwards) {
  Json step{{"kind", static_cast<int>(kind)},
            {"thread", focus_.toJson()},
            {"count", count},
            {"backwards", isBackwards},
            {"from", {0, 0, 0}},
            {"depth", 1 << 30}};
  Json position = hasEnded_ ? Json() : here();
  if (position.contains("key")) {
    step["from"] = position["key"];
    step["depth"] = position["depth"];
  } else if (!isBackwards) {
    userError("the thread cannot be stepped: {}",
              position.value("state", "the launches have ended"));
  } else if (kind == StepRequest::Kind::out) {
    userError("the thread is in no function now; step back first");
  }
  return step;
}

Json DebugSession::step(const Json &arguments, StepRequest::Kind kind) {
  needLive();
  std::uint64_t count = arguments.value("count", std::uint64_t(1));
  if (hasEnded_)
    userError("the launches have ended; go back first");
  Json message = run({{"stops", stops_}, {"step", stepOf(kind, count, false)}});
  Json reason = message["stopped"];
  if (isInterrupted_ && reason["kind"] == "reached")
    reason = {{"kind", "pause"}, {"text", "paused"}};
  return stopped(std::move(reason));
}

Json DebugSession::reverseStep(const Json &arguments, StepRequest::Kind kind) {
  needLive();
  std::uint64_t count = arguments.value("count", std::uint64_t(1));
  std::uint64_t here = time_;
  ThreadName focus = focus_;
  std::vector<Json> hits =
      scan({{"step", stepOf(kind, count, true)}}, here, count);
  bool isBeginning = hits.empty();
  goToTime(isBeginning ? here : hits.front().at("time").get<std::uint64_t>());
  focus_ = focus;
  if (isBeginning)
    userError("the thread has executed nothing before that; it stays at time "
              "{}",
              here);
  Json reason{{"kind", "step"}, {"text", "step back"}};
  reason["thread"] = focus.toJson();
  return stopped(std::move(reason));
}

Json DebugSession::reverseContinue(const Json &) {
  needLive();
  std::uint64_t here = time_;
  // What ended the launch is a stop too, where one is behind that.
  std::vector<Json> hits =
      scan({{"stops", stops_}}, hasEnded_ ? here + 1 : here, 1);
  if (hits.empty()) {
    goToTime(0);
    return stopped({{"kind", "start"},
                    {"text", "nothing stopped it before: the first "
                             "instruction"}});
  }
  Json hit = hits.back();
  goToTime(hit.at("time"));
  return stopped(std::move(hit));
}

} // namespace kiln::sim
