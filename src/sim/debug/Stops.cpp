// Stops: conditions that are looked at while a launch runs.
#include "sim/debug/Stops.h"
#include "kiln/base/text.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln::sim {

using Json = nlohmann::json;

Json ThreadName::toJson() const {
  return {{"cta", cta}, {"warp", warp}, {"lane", lane}};
}

ThreadName ThreadName::fromJson(const Json &json) {
  return {json.at("cta").get<Dim3>(), json.at("warp").get<int>(),
          json.at("lane").get<int>()};
}

Json Hit::toJson() const {
  Json json{{"time", time}, {"kind", kind}, {"text", text}};
  if (id)
    json["id"] = id;
  json["thread"] = thread.toJson();
  if (!details.is_null())
    json["details"] = details;
  return json;
}

int callDepth(const Group &group, const LineKey &key) {
  constexpr int kInlined = 1 << 10;
  return (group.frame ? group.frame->depth : 0) * kInlined + key.depth;
}

/// The instruction that a request names by its function and its number in it.
static const ptx::Instruction *instructionAt(const Places &places,
                                             const Json &json) {
  const ptx::Function &function =
      places.module().functions.at(json.at(0).get<std::size_t>());
  return &function.body.at(json.at(1).get<std::size_t>());
}

static std::optional<Expression> conditionOf(const Json &stop) {
  if (!stop.contains("if"))
    return {};
  return Expression::parse(stop["if"].get<std::string>());
}

void Stops::set(const Json &request, const Places &places,
                const std::vector<Cluster *> &clusters) {
  *this = Stops();
  places_ = &places;
  for (const Json &stop : request.value("stops", Json::array())) {
    int id = stop.at("id");
    std::string kind = stop.at("kind");
    if (kind == "breakpoint") {
      Breakpoint point{id, {}, conditionOf(stop)};
      for (const Json &at : stop.at("at"))
        point.at.insert(instructionAt(places, at));
      breakpoints_.push_back(std::move(point));
    } else if (kind == "watch") {
      Watch watch{.id = id,
                  .isShared = stop.at("space") == "shared",
                  .cta = stop.at("cta").get<Dim3>(),
                  .address = stop.at("address"),
                  .bytes = stop.at("bytes"),
                  .condition = conditionOf(stop)};
      watches_.push_back(std::move(watch));
    } else if (kind == "phase") {
      Phase phase{.id = id, .cta = {}, .address = stop.value("address", 0u)};
      if (stop.contains("cta"))
        phase.cta = stop["cta"].get<Dim3>();
      if (stop.contains("phase"))
        phase.number = stop["phase"].get<std::uint32_t>();
      phases_.push_back(phase);
    } else if (kind == "finding") {
      findings_ = id;
      for (const Json &one : stop.value("ids", Json::array()))
        findingIds_.insert(one.get<std::string>());
    } else if (kind == "diverge") {
      diverge_ = Divergence{ThreadName::fromJson(stop.at("thread"))};
    }
  }
  hasWatches_ = !watches_.empty();
  if (request.contains("step")) {
    const Json &json = request["step"];
    StepRequest step;
    step.kind = static_cast<StepRequest::Kind>(json.at("kind").get<int>());
    step.thread = ThreadName::fromJson(json.at("thread"));
    step.count = json.value("count", std::uint64_t(1));
    const Json &from = json.at("from");
    step.from = {from.at(0), from.at(1), from.at(2)};
    step.depth = json.at("depth");
    step_ = step;
    isBackwards_ = json.value("backwards", false);
  }
  for (Cluster *cluster : clusters)
    for (Watch &watch : watches_)
      locate(watch, *cluster);
  if (!clusters.empty())
    mark(clusters.front()->machine().code());
}

void Stops::mark(const Code &code) {
  code_ = &code;
  marks_.assign(code.ops.size(), 0);
  keys_.clear();
  for (const Breakpoint &point : breakpoints_)
    for (std::size_t i = 0; i < code.ops.size(); ++i)
      marks_[i] |= point.at.count(code.ops[i].origin) != 0;
}

void Stops::begin(Cluster &cluster) {
  if (const Code &code = cluster.machine().code(); code_ != &code)
    mark(code);
  for (Watch &watch : watches_)
    locate(watch, cluster);
}

void Stops::end(Cluster &cluster) {
  for (Watch &watch : watches_)
    for (std::size_t rank = 0; rank < cluster.size(); ++rank)
      if (watch.isShared &&
          cluster.cta(static_cast<int>(rank)).index() == watch.cta)
        watch.data = watch.owner = nullptr;
}

LineKey Stops::keyOf(const Op &op) {
  auto [known, isNew] = keys_.try_emplace(&op);
  if (isNew)
    known->second = places_->keyOf(*op.origin);
  return known->second;
}

Json Stops::placeJson(const Op &op) const {
  auto frames = places_->framesOf(*op.origin);
  Json stack = Json::array();
  for (const Finding::Frame &frame : frames)
    stack.push_back({{"function", frame.function},
                     {"file", frame.where.file},
                     {"line", frame.where.line}});
  return {{"ptx_line", op.origin->line},
          {"instruction", quote(op.origin->text, 200)},
          {"stack", stack}};
}

std::string placeText(const Json &place) {
  const Json &frame = place.at("stack").at(0);
  return fmt::format("{}:{} [{}]", frame.at("file").get<std::string>(),
                     frame.at("line").get<unsigned>(),
                     place.at("instruction").get<std::string>());
}

std::string threadText(const ThreadName &thread) {
  return fmt::format("CTA ({}), warp {}, lane {}", fmt::join(thread.cta, ", "),
                     thread.warp, thread.lane);
}

/// The first lane for which a condition holds; -1: none. What cannot be
/// evaluated stops the launch, with the reason.
static int laneOf(const std::optional<Expression> &condition, Warp &warp,
                  LaneMask lanes, std::string &why) {
  if (!condition)
    return firstLane(lanes);
  int found = -1;
  forEachLane(lanes, [&](int lane) {
    if (found >= 0)
      return;
    try {
      ThreadView view(warp, lane);
      if (condition->evaluate(view).isTrue())
        found = lane;
    } catch (const UserError &error) {
      found = lane;
      why = fmt::format("; its condition cannot be evaluated: {}",
                        error.message());
    }
  });
  return found;
}

void Stops::before(Warp &warp, const Op &op, LaneMask lanes, bool isSkipped,
                   std::uint64_t time, std::deque<Hit> &hits) {
  LaneMask group = warp.group().lanes;
  tickTime_ = time;
  auto index = static_cast<std::size_t>(&op - warp.code().ops.data());
  if (index < marks_.size() && marks_[index])
    for (const Breakpoint &point : breakpoints_) {
      if (!point.at.count(op.origin))
        continue;
      std::string why;
      int lane = laneOf(point.condition, warp, isSkipped ? group : lanes, why);
      if (lane < 0)
        continue;
      hits.push_back({time,
                      point.id,
                      "breakpoint",
                      fmt::format("breakpoint {}{}", point.id, why),
                      ThreadName::of(warp, lane),
                      {}});
    }
  if (diverge_ && diverge_->thread.isOf(warp) &&
      (group >> diverge_->thread.lane & 1))
    diverge_->together = group;
  if (step_ && step_->thread.isOf(warp) && (group >> step_->thread.lane & 1)) {
    stepBefore(warp, op, group, time, hits);
    if (isSkipped)
      stepDone(warp, op, time);
  }
}

void Stops::stepBefore(Warp &warp, const Op &op, LaneMask, std::uint64_t time,
                       std::deque<Hit> &hits) {
  if (isExecuting_ && !isBlocked_)
    ++executed_;
  isExecuting_ = true;
  isBlocked_ = false;
  tickTime_ = time;
  tickKey_ = keyOf(op);
  if (tickKey_.file < 0 && lastDone_)
    tickKey_ = lastDone_->first;
  tickDepth_ = callDepth(warp.group(), tickKey_);
  const Frame *frame = warp.group().frame.get();
  int calls = frame ? frame->depth : 0;
  isMidLine_ = calls < lastCalls_ && tickKey_ == lastCaller_;
  lastCalls_ = calls;
  if (frame)
    lastCaller_ = keyOf(*frame->call);
  if (isBackwards_ || !executed_)
    return;
  bool isByLine = step_->kind == StepRequest::Kind::line ||
                  step_->kind == StepRequest::Kind::over;
  if (isMidLine_ && isByLine) {
    // The rest of the line of the call is no line of its own.
    step_->from = tickKey_;
    step_->depth = tickDepth_;
    return;
  }
  bool isKnown = tickKey_.file >= 0;
  bool isOther = tickKey_ != step_->from;
  bool isThere = false;
  switch (step_->kind) {
  case StepRequest::Kind::instruction:
    isThere = true;
    break;
  case StepRequest::Kind::line:
    isThere = isKnown && (isOther || tickDepth_ != step_->depth);
    break;
  case StepRequest::Kind::over:
    isThere = isKnown && (tickDepth_ < step_->depth ||
                          (tickDepth_ == step_->depth && isOther));
    break;
  case StepRequest::Kind::out:
    isThere = tickDepth_ < step_->depth;
    break;
  }
  if (!isThere)
    return;
  step_->from = tickKey_;
  step_->depth = tickDepth_;
  if (--step_->count)
    return;
  hits.push_back({time, 0, "step", "step", step_->thread, {}});
}

void Stops::stepDone(Warp &, const Op &, std::uint64_t time) {
  if (!isBackwards_)
    return;
  StepRequest::Kind kind = step_->kind;
  auto hit = [&] { note({time, 0, "step", "step back", step_->thread, {}}); };
  if (kind == StepRequest::Kind::instruction)
    return hit();
  if (kind == StepRequest::Kind::out) {
    if (tickDepth_ < step_->depth)
      hit();
    return;
  }
  if (kind == StepRequest::Kind::over && tickDepth_ > step_->depth)
    return;
  if (!lastDone_)
    tentative_ = time;
  else if (!isMidLine_ &&
           (lastDone_->first != tickKey_ || lastDone_->second != tickDepth_))
    hit(); // a line begins where another one was left
  lastDone_ = {tickKey_, tickDepth_};
}

void Stops::after(Warp &warp, const Op &op, LaneMask lanes, Step step,
                  std::uint64_t) {
  if (step_ && step_->thread.isOf(warp) && (lanes >> step_->thread.lane & 1)) {
    if (step == Step::blocked)
      isBlocked_ = true;
    else
      stepDone(warp, op, tickTime_);
  } else if (step_ && isExecuting_ && step_->thread.isOf(warp) &&
             step != Step::blocked) {
    // Its guard turned the thread off, and not the others of its group.
    for (const Group &group : warp.groups())
      if ((group.lanes >> step_->thread.lane & 1) && (group.lanes & lanes))
        stepDone(warp, op, tickTime_);
  }
  if (diverge_ && step == Step::jumped && diverge_->thread.isOf(warp) &&
      diverge_->together) {
    LaneMask now = 0;
    for (const Group &group : warp.groups())
      if (group.lanes >> diverge_->thread.lane & 1)
        now = group.lanes;
    LaneMask lost = diverge_->together & ~now & warp.live();
    if (now && lost)
      note({tickTime_,
            0,
            "diverge",
            fmt::format("lanes {:#010x} and {:#010x} of {} part at {}", now,
                        lost, threadText(diverge_->thread),
                        placeText(placeJson(op))),
            diverge_->thread,
            {{"lanes", now}, {"others", lost}, {"place", placeJson(op)}}});
    diverge_->together = now;
  }
}

void Stops::left(const Warp &warp, LaneMask lanes, std::uint64_t time) {
  if (step_ && !isBackwards_ && step_->thread.isOf(warp) &&
      (lanes >> step_->thread.lane & 1))
    note({time,
          0,
          "thread-ended",
          fmt::format("{} has left the kernel", threadText(step_->thread)),
          step_->thread,
          {}});
}

void Stops::found(const Finding &finding, std::uint64_t time, bool isEnd) {
  if (!findings_ || (!findingIds_.empty() && !findingIds_.count(finding.id)) ||
      (!isEnd && finding.grade == Finding::Grade::note))
    return;
  ThreadName thread;
  if (finding.cta)
    thread.cta = *finding.cta;
  int number = finding.thread;
  if (number < 0 && !finding.waits.empty()) {
    thread.cta = finding.waits.front().cta;
    number = finding.waits.front().first;
  }
  if (number >= 0) {
    thread.warp = number / kLanes;
    thread.lane = number % kLanes;
  }
  note({time,
        *findings_,
        "finding",
        finding.to_string(),
        thread,
        {{"id", finding.id}, {"ends_launch", isEnd}}});
}

void Stops::take(std::deque<Hit> &hits) {
  std::move(noted_.begin(), noted_.end(), std::back_inserter(hits));
  noted_.clear();
}

} // namespace kiln::sim
