// Runner: time, stops, copies, and the conversation with the debugger.
#include "sim/debug/Runner.h"
#include "sim/debug/Looks.h"
#include "sim/program/Effect.h"
#include "support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::sim {

/// Instructions between two looks at the clock and at the channel.
static constexpr unsigned kBreath = 2048;

/// Copies that have been ended.
static void reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0)
    ;
}

EventMask Runner::interests() const {
  return maskOf(EventKind::lifetime, EventKind::instruction, EventKind::skip,
                EventKind::access, EventKind::barrier);
}

void Runner::waitAsCheckpoint() {
  for (;;) {
    Json message;
    Channel::Got got = channel_.receive(message, 1000);
    reap();
    if (got == Channel::Got::closed)
      _exit(0);
    if (got == Channel::Got::nothing || message.value("do", "") != "fork")
      continue;
    Channel along = channel_.takeAlong();
    pid_t child = fork();
    if (child < 0) {
      along.send(
          {{"error", fmt::format("fork failed: {}", std::strerror(errno))}});
      continue;
    }
    if (child > 0)
      continue;
    channel_ = std::move(along);
    takeMutex();
    channel_.send({{"runner", getpid()}});
    lastCheckpoint_ = Clock::now();
    serve();
    return;
  }
}

void Runner::takeMutex() {
  if (mutex_ && mutex_->native_handle()->__data.__owner != 0)
    mutex_->native_handle()->__data.__owner = gettid();
}

void Runner::beginLaunch(std::size_t index, const std::string &kernel) {
  launch_ = index;
  kernel_ = kernel;
  clusters_.clear();
  racesTold_.clear();
  roles_.clear();
}

void Runner::endLaunch(const LaunchResult &) {
  clusters_.clear();
  racesTold_.clear();
  next_.reset();
}

void Runner::serveForEver() {
  hasEnded_ = true;
  for (;;) {
    hits_.clear();
    stop({{"kind", "end"}, {"text", "the launches have ended"}});
  }
}

void Runner::fail(const std::string &message) {
  channel_.send({{"error", message}});
  _exit(1);
}

void Runner::print(const std::string &text) {
  if (time_ >= quietUntil_)
    channel_.send({{"print", text}});
}

void Runner::begin(Cluster &cluster, RaceDetector *races) {
  cluster.watchers().add(*this);
  clusters_.push_back({&cluster, races, races ? &racesTold_[races] : nullptr});
  stops_.begin(cluster);
}

void Runner::end(Cluster &cluster) {
  stops_.poll(time_);
  insideWarp_ = nullptr;
  checkFindings(seenOf(cluster));
  settle(/*hasTime=*/false);
  stops_.end(cluster);
  std::erase_if(clusters_, [&](const SeenCluster &seen) {
    return seen.cluster == &cluster;
  });
}

void Runner::ending(const Finding &finding) {
  stops_.poll(time_);
  Finding shown = finding;
  shown.where.file = places_.shownFile(shown.where.file);
  found_.push_back({{"time", time_},
                    {"id", shown.id},
                    {"ends_launch", true},
                    {"text", shown.to_string()}});
  stops_.found(shown, time_, true);
  // It stays there as long as it is told to run until now.
  for (unsigned before = ~0u; before != generation_; settle())
    before = generation_;
}

void Runner::on(const LanesEnd &event) {
  stops_.left(event.warp, event.lanes, time_);
}

void Runner::on(const InstructionBegin &event) {
  tick(event.warp, event.op, event.lanes, false);
}

void Runner::on(const InstructionSkip &event) {
  tick(event.warp, event.op, event.lanes, true);
}

void Runner::on(const InstructionEnd &event) {
  insideWarp_ = nullptr;
  stops_.after(event.warp, event.op, event.lanes, event.step, time_);
}

void Runner::on(const ThreadAccess &event) { stops_.wrote(event, time_ - 1); }

void Runner::on(const AsyncAccess &event) { stops_.wrote(event, time_ - 1); }

void Runner::on(const MbarrierPhase &event) {
  for (const SeenCluster &seen : clusters_)
    for (std::size_t rank = 0; rank < seen.cluster->size(); ++rank) {
      Cta &cta = seen.cluster->cta(static_cast<int>(rank));
      for (auto &[address, state] : cta.mbarriers)
        if (&state == &event.barrier)
          // It is seen before the next instruction.
          return stops_.completed(event, cta, address, time_, insideWarp_,
                                  insideOp_);
    }
}

void Runner::checkFindings(SeenCluster &seen) {
  auto note = [&](const Finding &finding) {
    Finding shown = finding;
    shown.where.file = places_.shownFile(shown.where.file);
    if (shown.other)
      shown.other->where.file = places_.shownFile(shown.other->where.file);
    found_.push_back(
        {{"time", time_}, {"id", shown.id}, {"text", shown.to_string()}});
    stops_.found(shown, time_, false);
  };
  const auto &own = seen.cluster->findings;
  for (; seen.findings < own.size(); ++seen.findings)
    note(own[seen.findings]);
  if (seen.races)
    for (; *seen.racesTold < seen.races->findings().size(); ++*seen.racesTold)
      note(seen.races->findings()[*seen.racesTold].finding);
}

SeenCluster &Runner::seenOf(Cluster &cluster) {
  if (lastSeen_ >= clusters_.size() || clusters_[lastSeen_].cluster != &cluster)
    for (lastSeen_ = 0; clusters_[lastSeen_].cluster != &cluster;)
      ++lastSeen_;
  return clusters_[lastSeen_];
}

void Runner::tick(Warp &warp, const Op &op, LaneMask lanes, bool isSkipped) {
  insideWarp_ = nullptr;
  if (++ticks_ % kBreath == 0 || nextKnown_ < known_.size())
    breathe();
  if (lastSeen_ < clusters_.size() && clusters_[lastSeen_].hasNews())
    checkFindings(clusters_[lastSeen_]);
  if (SeenCluster &seen = seenOf(warp.cta().cluster()); seen.hasNews())
    checkFindings(seen);
  noteRole(warp, op);
  if (stops_.isMarked(warp, op) || stops_.hasAny() || until_ == time_) {
    next_ = ThreadName::of(warp, firstLane(warp.group().lanes));
    stops_.poll(time_);
    settle();
    stops_.before(warp, op, lanes, isSkipped, time_, hits_);
    for (unsigned before = generation_; settle(), before != generation_;) {
      before = generation_;
      // It goes on from here, where a breakpoint has just stopped it.
      std::deque<Hit> passed;
      stops_.before(warp, op, lanes, isSkipped, time_, passed);
    }
  }
  if (!isSkipped) {
    insideWarp_ = &warp;
    insideOp_ = &op;
  }
  ++time_;
}

void Runner::settle(bool hasTime) {
  stops_.take(hits_);
  if (isRecording_) {
    for (Hit &hit : hits_)
      if (!until_ || hit.time < *until_) {
        kept_.push_back(std::move(hit));
        if (kept_.size() > keep_)
          kept_.pop_front();
      }
    hits_.clear();
  }
  if (hasTime && until_ && time_ >= *until_) {
    hits_.clear();
    until_.reset();
    stop({{"kind", "reached"}, {"text", "there"}});
    return;
  }
  if (hits_.empty())
    return;
  Json reason = hits_.front().toJson();
  Json others = Json::array();
  for (std::size_t i = 1; i < hits_.size(); ++i)
    others.push_back(hits_[i].toJson());
  if (!others.empty())
    reason["also"] = others;
  hits_.clear();
  stop(std::move(reason));
}

void Runner::stop(Json reason) {
  Json message{{"stopped", reason}, {"time", time_}, {"ended", hasEnded_}};
  ThreadName thread;
  if (reason.contains("thread"))
    thread = ThreadName::fromJson(reason["thread"]);
  else if (next_)
    thread = *next_;
  message["position"] = positionOf(*this, thread);
  if (isRecording_) {
    Json hits = Json::array();
    for (const Hit &hit : kept_)
      hits.push_back(hit.toJson());
    message["hits"] = hits;
    if (auto tentative = stops_.tentative())
      message["tentative"] = *tentative;
  }
  kept_.clear();
  if (!channel_.send(message))
    _exit(0);
  serve();
}

void Runner::serve() {
  for (;;) {
    Json message;
    Channel::Got got = channel_.receive(message);
    if (got == Channel::Got::closed)
      _exit(0);
    if (got == Channel::Got::nothing)
      continue;
    std::string what = message.value("do", "");
    try {
      if (what == "run") {
        configure(message);
        return;
      }
      if (what == "look")
        lookAside(message);
    } catch (const std::exception &error) {
      channel_.send({{"error", fmt::format("the request is not valid: {}",
                                           error.what())}});
    }
  }
}

void Runner::lookAside(const Json &request) {
  pid_t child = fork();
  if (child < 0)
    runtimeError("fork failed: {}", std::strerror(errno));
  if (child > 0) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    if (!WIFEXITED(status))
      channel_.send({{"error", fmt::format("the question was not answered: "
                                           "signal {}",
                                           WTERMSIG(status))}});
    return;
  }
  Json message;
  try {
    message = {{"answer", look(*this, request)}};
  } catch (const Error &error) {
    message = {{"error", error.message()}};
  } catch (const Unexecuted &) {
    message = {{"error", "what is asked for cannot be read now"}};
  } catch (const std::exception &error) {
    message = {
        {"error", fmt::format("the request is not valid: {}", error.what())}};
  }
  channel_.send(message);
  _exit(0);
}

void Runner::configure(const Json &request) {
  ++generation_;
  std::vector<Cluster *> clusters;
  for (const SeenCluster &seen : clusters_)
    clusters.push_back(seen.cluster);
  stops_.set(request, places_, clusters);
  until_.reset();
  if (request.contains("until"))
    until_ = request["until"].get<std::uint64_t>();
  isRecording_ = request.value("record", false);
  keep_ = request.value("keep", std::size_t(1));
  kept_.clear();
  hits_.clear();
  quietUntil_ = request.value("quiet_until", std::uint64_t(0));
  known_ = request.value("known", std::vector<std::uint64_t>());
  nextKnown_ = 0;
  intervalMs_ = request.value("interval_ms", 0.0);
  lastCheckpoint_ = Clock::now();
}

void Runner::breathe() {
  while (nextKnown_ < known_.size() && known_[nextKnown_] <= time_) {
    ++nextKnown_;
    lastCheckpoint_ = Clock::now();
  }
  if (ticks_ % kBreath != 0)
    return;
  if (intervalMs_ > 0 &&
      std::chrono::duration<double, std::milli>(Clock::now() - lastCheckpoint_)
              .count() >= intervalMs_)
    makeCheckpoint();
  Json message;
  Channel::Got got = channel_.receive(message, 0);
  if (got == Channel::Got::closed)
    _exit(0);
  if (got == Channel::Got::message && message.value("do", "") == "pause")
    until_ = time_;
}

void Runner::makeCheckpoint() {
  lastCheckpoint_ = Clock::now();
  auto [theirs, own] = Channel::pair();
  pid_t child = fork();
  if (child < 0) {
    intervalMs_ = 0; // the machine gives no more; what there is must do
    return;
  }
  if (child == 0) {
    theirs.close();
    channel_ = std::move(own);
    // Returns in a copy that has been told what to run for.
    waitAsCheckpoint();
    return;
  }
  own.close();
  channel_.send({{"checkpoint", child}, {"time", time_}}, std::move(theirs));
  reap();
}

/// Bits of Runner::roles_.
static constexpr unsigned kProduces = 1, kMultiplies = 2;

void Runner::noteRole(const Warp &warp, const Op &op) {
  EffectKind kind = op.effect->kind;
  unsigned bit =
      kind == EffectKind::copyIn ? kProduces
      : kind == EffectKind::product || kind == EffectKind::tensorProduct
          ? kMultiplies
          : 0;
  if (bit)
    roles_[{warp.cta().index(), warp.index()}] |= bit;
}

std::string Runner::roleOf(const Warp &warp) const {
  auto known = roles_.find({warp.cta().index(), warp.index()});
  if (known == roles_.end())
    return "";
  return known->second == kProduces     ? "producer"
         : known->second == kMultiplies ? "consumer"
                                        : "producer and consumer";
}

} // namespace kiln::sim
