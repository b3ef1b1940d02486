// Waits: who waits for whom, where a launch has come to a stop.
//
// Lanes wait for others that a barrier still lacks. An mbarrier does not say who
// is to arrive at it; those who have signalled it before are known where details
// were asked for.
#include "sim/report/LaunchObserver.h"
#include "sim/report/Ledger.h"

#include <cstring>

namespace kiln::sim {

static bool is(const Line &line, const char *kind) {
  return std::strcmp(line.wait.kind, kind) == 0;
}

/// Whether some of a warp's lanes are among those of a line.
static bool hasLanes(const Line &line, int warp, LaneMask lanes) {
  for (int lane = 0; lane < kLanes; ++lane)
    if (int thread = warp * kLanes + lane;
        (lanes >> lane & 1) && line.first <= thread && thread <= line.last)
      return true;
  return false;
}

static bool sharesWarp(const Line &one, const Line &other) {
  return one.cta == other.cta && one.first / kLanes <= other.last / kLanes &&
         other.first / kLanes <= one.last / kLanes;
}

/// The cluster that a line's CTA is in.
static Cluster *clusterOf(const std::vector<Cluster *> &clusters,
                          const Line &line) {
  for (Cluster *cluster : clusters)
    for (std::size_t rank = 0; rank < cluster->size(); ++rank)
      if (cluster->cta(static_cast<int>(rank)).index() == line.cta)
        return cluster;
  return nullptr;
}

/// Who has signalled the mbarrier that a line waits for; null: not known.
static const DetailRecorder::Senders *sendersOf(Cluster *cluster,
                                                const Line &line) {
  if (!cluster || !cluster->observer || !line.wait.object.address)
    return nullptr;
  const auto &observer = static_cast<LaunchObserver &>(*cluster->observer);
  if (!observer.detail)
    return nullptr;
  for (std::size_t rank = 0; rank < cluster->size(); ++rank)
    if (Cta &cta = cluster->cta(static_cast<int>(rank));
        cta.index() == line.cta)
      return observer.detail->sendersOf(
          cta, static_cast<std::uint32_t>(*line.wait.object.address));
  return nullptr;
}

/// Whether `other` could let `line` go on.
static bool isAwaited(const std::vector<Cluster *> &clusters, const Line &line,
                      const Line &other) {
  Cluster *cluster = clusterOf(clusters, line);
  if (is(line, "barrier"))
    return other.cta == line.cta &&
           !(is(other, "barrier") && other.wait.number == line.wait.number);
  if (is(line, "cluster"))
    return cluster == clusterOf(clusters, other) && !is(other, "cluster");
  if (is(line, "lanes"))
    return sharesWarp(line, other);
  constexpr int kGroup = 4 * kLanes;
  if (is(line, "wgmma"))
    return other.cta == line.cta && !is(other, "wgmma") &&
           other.first / kGroup <= line.last / kGroup &&
           line.first / kGroup <= other.last / kGroup;
  if (!is(line, "mbarrier"))
    return false;
  if (const auto *senders = sendersOf(cluster, line))
    for (const auto &[warp, lanes] : *senders)
      if (warp.first->index() == other.cta &&
          hasLanes(other, warp.second, lanes))
        return true;
  return false;
}

std::vector<Finding::Waiting>
waitsOf(const Machine &machine, const std::vector<Cluster *> &clusters,
        const std::vector<Line> &lines) {
  std::vector<Finding::Waiting> waits;
  std::size_t count = std::min(lines.size(), kLines);
  for (std::size_t i = 0; i < count; ++i) {
    const Line &line = lines[i];
    Finding::Waiting waiting{
        .cta = line.cta,
        .first = line.first,
        .last = line.last,
        .kind = line.wait.kind,
        .what = line.wait.what,
        .source = line.wait.source,
        .where = machine.findings().sourceLine(*line.wait.op->origin),
        .ptx_line = line.wait.op->origin->line,
        .object = line.wait.object.name,
        .address = line.wait.object.address};
    for (std::size_t j = 0; j < count; ++j)
      if (j != i && isAwaited(clusters, line, lines[j]))
        waiting.on.push_back(j);
    waits.push_back(std::move(waiting));
  }
  return waits;
}

} // namespace kiln::sim
