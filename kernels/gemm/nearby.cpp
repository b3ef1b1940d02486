// nearby: schedules that differ from a given one in a single thing, and in what
// follows from it, for who measures: what the cost model cannot tell apart is
// often right beside the best it knows.
#include "checks.h"
#include "cost.h"
#include "gemm/main_loops.h"

#include <kiln/base/error.h>

#include <algorithm>
#include <functional>

namespace kiln {

namespace {

/// Collects what fits.
class Neighbours {
public:
  Neighbours(const GemmProblem &problem, const GemmSchedule &schedule,
             const DeviceDescription &device)
      : problem_(problem), schedule_(schedule), device_(device) {}

  using Change = std::function<void(GemmSchedule &)>;
  /// Add the schedule with that change, if there is one.
  void add(const Change &change);
  /// The same with an int of it set to each of these.
  void add_each(int GemmSchedule::*field, std::initializer_list<int> values);

  std::vector<RankedSchedule> take() { return std::move(list_); }

private:
  const GemmProblem &problem_;
  const GemmSchedule &schedule_;
  const DeviceDescription &device_;
  std::vector<RankedSchedule> list_;
};

void Neighbours::add(const Change &change) {
  GemmSchedule one = schedule_.reopened();
  one.consumers = schedule_.consumers;
  one.swizzle = GemmSchedule().swizzle; // as wide as the rows allow
  change(one);
  try {
    one.stages = std::min(gemm_kernel::main_loop_of(device_).most_stages,
                          max_gemm_stages(problem_, one, device_));
    one = fit(problem_, one, device_);
  } catch (const UserError &) {
    return; // not for this layout, type or size
  }
  if (one != schedule_ &&
      std::ranges::find(list_, one, &RankedSchedule::schedule) == list_.end())
    list_.push_back({one, gemm_kernel::cost_of(problem_, one, device_)});
}

void Neighbours::add_each(int GemmSchedule::*field,
                          std::initializer_list<int> values) {
  for (int value : values)
    if (value > 0)
      add([&](GemmSchedule &one) { one.*field = value; });
}

/// Who can load for whom.
void add_clusters(Neighbours &list) {
  for (auto [m, n] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}})
    list.add([m = m, n = n](GemmSchedule &one) {
      one.cluster_m = m;
      one.cluster_n = n;
    });
}

/// What the order of tiles can be.
void add_persistent(const GemmSchedule &schedule, Neighbours &list) {
  list.add_each(&GemmSchedule::raster_group, {1, 2, 4, 8, 12, 16, 32});
  list.add([](GemmSchedule &one) {
    one.raster =
        one.raster == Raster::along_n ? Raster::along_m : Raster::along_n;
  });
  list.add([](GemmSchedule &one) {
    one.kind = one.kind == GemmKind::pingpong ? GemmKind::cooperative
                                              : GemmKind::pingpong;
    one.consumers = 2;
  });
  int n = schedule.tile_n;
  list.add_each(&GemmSchedule::tile_n, {n - 16, n - 8, n + 8, n + 16});
}

/// How K can be divided, and how many CTAs share a multiprocessor.
void add_divided(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device, Neighbours &list) {
  int parts = schedule.split_k, n = schedule.tile_n;
  list.add_each(&GemmSchedule::split_k,
                {parts - 2, parts - 1, parts + 1, parts + 2});
  list.add([](GemmSchedule &one) { one.is_swapped = !one.is_swapped; });
  list.add(
      [](GemmSchedule &one) { one.is_split_by_grid = !one.is_split_by_grid; });
  list.add_each(&GemmSchedule::occupancy, {1, 2, 3});
  // Another tile, and K divided so that all multiprocessors are busy.
  auto resize = [&](int tile_m, int tile_n, int consumers) {
    list.add([&](GemmSchedule &one) {
      one.tile_m = tile_m;
      one.tile_n = tile_n;
      one.consumers = consumers;
      auto tiles = gemm_kernel::KernelProblem(problem, one).tiles(one);
      if (parts == 1 || !tiles.is_constant())
        return;
      int most = one.is_split_by_grid ? gemm_kernel::kMostOfGrid
                                      : device.max_cluster_ctas;
      one.split_k = static_cast<int>(
          std::clamp<std::int64_t>(device.sms / tiles.constant(), 1, most));
    });
  };
  for (int step : {-32, -16, -8, 8, 16, 32})
    if (n + step >= 8)
      resize(schedule.tile_m, n + step, schedule.consumers);
  resize(64, n, 1);
  resize(128, n, 2);
  resize(64, std::min(256, 2 * n), 1);
}

} // namespace

std::vector<RankedSchedule> nearby_schedules(const GemmProblem &problem,
                                             const GemmSchedule &schedule,
                                             const DeviceDescription &device) {
  Neighbours list(problem, schedule, device);
  if (schedule.kind == GemmKind::vector ||
      schedule.kind == GemmKind::multistage)
    return {};
  int k = schedule.tile_k;
  list.add_each(&GemmSchedule::tile_k, {k / 2, 2 * k});
  add_clusters(list);
  if (schedule.is_persistent())
    add_persistent(schedule, list);
  else
    add_divided(problem, schedule, device, list);
  return list.take();
}

} // namespace kiln
