// Looks: which question is whose, threads, and where one stands.
#include "sim/debug/Looks.h"
#include "kiln/base/text.h"
#include "sim/report/Ledger.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using Json = nlohmann::json;

Cta &ctaOf(const Runner &runner, const Dim3 &index) {
  for (const SeenCluster &seen : runner.clusters())
    for (std::size_t rank = 0; rank < seen.cluster->size(); ++rank)
      if (Cta &cta = seen.cluster->cta(static_cast<int>(rank));
          cta.index() == index)
        return cta;
  if (runner.hasEnded())
    userError("the launches have ended; go back first");
  userError("CTA ({}, {}, {}) is not under way: it has not begun, or it has "
            "ended; `threads` lists those that are",
            index[0], index[1], index[2]);
}

Warp &warpOf(const Runner &runner, const ThreadName &thread) {
  auto &warps = ctaOf(runner, thread.cta).warps();
  if (thread.warp < 0 || thread.warp >= static_cast<int>(warps.size()))
    userError("there is no warp {}: the CTA has {}", thread.warp, warps.size());
  if (thread.lane < 0 || thread.lane >= kLanes)
    userError("there is no lane {}: a warp has lanes 0 to {}", thread.lane,
              kLanes - 1);
  return *warps[static_cast<std::size_t>(thread.warp)];
}

static Json frameJson(const Finding::Frame &frame, const ptx::Instruction &at) {
  return {{"function", frame.function},
          {"file", frame.where.file},
          {"line", frame.where.line},
          {"ptx_line", at.line}};
}

/// Frames of a thread, the innermost first.
static Json framesOf(Runner &runner, Warp &warp, const Group &group) {
  Json frames = Json::array();
  const auto &ops = warp.code().ops;
  auto add = [&](const ptx::Instruction &at) {
    for (const Finding::Frame &frame : runner.places().framesOf(at))
      frames.push_back(frameJson(frame, at));
  };
  if (static_cast<std::size_t>(group.pc) < ops.size())
    add(*ops[static_cast<std::size_t>(group.pc)].origin);
  constexpr std::size_t kMost = 256;
  for (const Frame *frame = group.frame.get(); frame && frames.size() < kMost;
       frame = frame->caller.get())
    add(*frame->call->origin);
  return frames;
}

Json positionOf(Runner &runner, const ThreadName &thread) {
  Json position{{"time", runner.time()},
                {"ended", runner.hasEnded()},
                {"launch", runner.launch()},
                {"kernel", runner.kernel()},
                {"thread", thread.toJson()}};
  Warp *warp = nullptr;
  try {
    warp = &warpOf(runner, thread);
  } catch (const UserError &error) {
    position["state"] = error.message();
    return position;
  }
  const Group *group = ThreadView(*warp, thread.lane).group();
  if (!group) {
    position["state"] = "the thread has left the kernel";
    return position;
  }
  const Op &op = warp->code().ops[static_cast<std::size_t>(group->pc)];
  LineKey key = runner.places().keyOf(*op.origin);
  position["instruction"] = quote(op.origin->text, 400);
  position["ptx_line"] = op.origin->line;
  position["lanes"] = group->lanes;
  position["frames"] = framesOf(runner, *warp, *group);
  position["key"] = {key.file, key.line, key.depth};
  position["depth"] = callDepth(*group, key);
  return position;
}

Json lookThreads(Runner &runner, const Json &) {
  Json groups = Json::array();
  std::uint64_t ctas = 0;
  std::vector<Cluster *> clusters;
  for (const SeenCluster &seen : runner.clusters()) {
    clusters.push_back(seen.cluster);
    ctas += seen.cluster->size();
  }
  constexpr std::size_t kMostGroups = 500;
  std::size_t leftOut = 0;
  if (!clusters.empty()) {
    Machine &machine = clusters.front()->machine();
    for (const Line &line : linesOf(machine, clusters)) {
      if (groups.size() >= kMostGroups) {
        ++leftOut;
        continue;
      }
      Json group{{"cta", line.cta},
                 {"first", line.first},
                 {"last", line.last},
                 {"state", line.wait.kind},
                 {"waits_for", line.wait.what},
                 {"ptx_line", line.wait.op->origin->line},
                 {"instruction", quote(line.wait.op->origin->text, 200)}};
      Finding::Frame frame =
          runner.places().framesOf(*line.wait.op->origin).front();
      group["file"] = frame.where.file;
      group["line"] = frame.where.line;
      if (!line.wait.source.empty())
        group["source"] = line.wait.source;
      Warp &warp = warpOf(runner, {line.cta, line.first / kLanes, 0});
      if (std::string role = runner.roleOf(warp); !role.empty())
        group["role"] = role;
      groups.push_back(std::move(group));
    }
  }
  Json answer{{"groups", groups}, {"ctas_under_way", ctas}};
  if (!clusters.empty()) {
    const Dim3 &grid = clusters.front()->machine().config().grid;
    answer["ctas"] = std::uint64_t(grid[0]) * grid[1] * grid[2];
  }
  if (leftOut)
    answer["left_out"] = leftOut;
  return answer;
}

/// Warps as a debugger's protocol numbers them.
static Json lookWarps(Runner &runner, const Json &request) {
  Json warps = Json::array();
  auto most = request.value("most", std::size_t(256));
  std::size_t total = 0;
  for (const SeenCluster &seen : runner.clusters())
    for (std::size_t rank = 0; rank < seen.cluster->size(); ++rank) {
      Cta &cta = seen.cluster->cta(static_cast<int>(rank));
      for (auto &warp : cta.warps()) {
        if (warp->isDone() || ++total > most)
          continue;
        std::string name =
            fmt::format("CTA ({}, {}, {}) warp {}", cta.index()[0],
                        cta.index()[1], cta.index()[2], warp->index());
        if (std::string role = runner.roleOf(*warp); !role.empty())
          name += " (" + role + ")";
        warps.push_back(
            {{"cta", cta.index()},
             {"warp", warp->index()},
             {"lane", firstLane(warp->live())},
             {"number", cta.number() * cta.warps().size() +
                            static_cast<std::size_t>(warp->index())},
             {"name", name}});
      }
    }
  return {{"warps", warps}, {"total", total}};
}

static Json lookFindings(Runner &runner, const Json &) {
  return {{"findings", runner.findings()}};
}

static Json lookPosition(Runner &runner, const Json &request) {
  return positionOf(runner, ThreadName::fromJson(request.at("thread")));
}

Json look(Runner &runner, const Json &request) {
  struct Row {
    const char *what;
    Json (*answer)(Runner &, const Json &);
  };
  static constexpr Row kRows[] = {
      {"position", lookPosition},
      {"threads", lookThreads},
      {"warps", lookWarps},
      {"registers", lookRegisters},
      {"print", lookExpression},
      {"memory", lookMemory},
      {"tile", lookTile},
      {"tensormap", lookTensorMap},
      {"descriptor", lookDescriptor},
      {"mbarriers", lookMbarriers},
      {"async", lookFlights},
      {"tensor", lookTensor},
      {"findings", lookFindings},
  };
  std::string what = request.at("what");
  for (const Row &row : kRows)
    if (what == row.what)
      return row.answer(runner, request);
  internalError("nobody answers '{}'", what);
}

} // namespace kiln::sim
