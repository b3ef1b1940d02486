// LadderMutation: the ten steps for Blackwell as Kiln compiles them, mutated as
// the kernels of MutationTest are.
//
// Shapes are the smallest in which every wait is waited at more than once: two
// tiles for each CTA where it takes several, and more K tiles than slots.
#include "broken/Mutants.h"

#include <kiln/run/run.h>

#include "tutorial/blackwell/ladder.h"

namespace kiln {
namespace {

using ladder::Shape;

struct Step {
  const char *name;
  std::function<Module()> build;
  Shape shape;
};

void PrintTo(const Step &step, std::ostream *out) { *out << step.name; }

std::vector<Step> steps() {
  using namespace ladder;
  auto shaped = [](Module (*build)(const Shape &, int), const Shape &shape,
                   int ctas) { return [=] { return build(shape, ctas); }; };
  constexpr Shape kTwo{256, 128, 192}, kDeep{256, 128, 320},
      kPair{512, 256, 320}, kBoth{1024, 256, 320};
  return {
      {"OneTile", one_tile, {128, 128, 64}},
      {"KLoop", [] { return k_loop(128); }, {128, 128, 128}},
      {"ManyCtas", [] { return many_ctas({256, 128, 128}); }, {256, 128, 128}},
      {"Tma", [] { return tma({128, 128, 128}); }, {128, 128, 128}},
      {"SoftwarePipeline",
       [] { return software_pipeline({128, 128, 192}); },
       {128, 128, 192}},
      {"Persistent", shaped(persistent, kTwo, 1), kTwo},
      {"WarpSpecialized", shaped(warp_specialized, kTwo, 1), kTwo},
      {"DeepPipeline", shaped(deep_pipeline, kDeep, 1), kDeep},
      {"CtaPair", shaped(cta_pair, kPair, 2), kPair},
      {"TwoConsumers", shaped(two_consumers, kBoth, 2), kBoth},
  };
}

std::set<std::string> findingsOf(const Kernel &kernel, const Shape &shape) {
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    auto device = open_sim(
        {.device = DeviceDescription::b200(), .interleaving = order, .threads = 1});
    std::size_t m = shape.m, n = shape.n, k = shape.k;
    std::vector<std::uint16_t> a(m * k), b(n * k), d(m * n);
    fill_random(f16, a.data(), a.size(), 1);
    fill_random(f16, b.data(), b.size(), 2);
    std::set<std::string> ids;
    for (const Finding &found : try_run(*device, kernel, a, b, d).findings)
      ids.insert(found.id);
    if (!ids.empty())
      return ids;
  }
  return {};
}

/// Of every step: what TensorMemory does beside what the kernel needs.
const Redundant kOfAll = {
    {"tcgen05.fence::before_thread_sync: deleted",
     "nobody has touched tensor memory before it is allocated"},
    {"tcgen05.fence::after_thread_sync: deleted",
     "nobody has touched tensor memory before it is allocated"},
    {"tcgen05.fence::before_thread_sync (last): deleted",
     "to free tensor memory asks for no fence"},
    {"tcgen05.fence::after_thread_sync (last): deleted",
     "to free tensor memory asks for no fence"}};

constexpr const char *kBarrierFollows = "a CTA barrier follows the init";
constexpr const char *kFilledOnce = "each buffer is filled once";
constexpr const char *kLastCovers = "the last wait covers the loads before it";
constexpr const char *kHaveMet =
    "the warpgroup has met behind its last load, to store it";

const Redundant kRedundant = {
    {"OneTile: fence.mbarrier_init.release.cluster: deleted", kBarrierFollows},
    {"KLoop: fence.mbarrier_init.release.cluster: deleted", kBarrierFollows},
    {"ManyCtas: fence.mbarrier_init.release.cluster: deleted", kBarrierFollows},
    {"Tma: cp.async.bulk.wait_group.read 1: deleted", kFilledOnce},
    {"Tma: cp.async.bulk.wait_group.read 1: one group later", kFilledOnce},
    {"Tma: cp.async.bulk.wait_group.read 1 (2): deleted", kFilledOnce},
    {"Tma: cp.async.bulk.wait_group.read 1 (2): one group later", kFilledOnce},
    {"Tma: bar.sync 1, 128: deleted", kFilledOnce},
    {"Tma: bar.sync 1, 128 (3): deleted", kFilledOnce},
    {"Tma: cp.async.bulk.commit_group: deleted",
     "its copy joins the next group, which is waited for too"},
    {"Tma: tcgen05.wait::ld.sync.aligned (but the last): deleted", kLastCovers},
    {"Tma: bar.sync 0 (3): deleted", kHaveMet},
    {"SoftwarePipeline: cp.async.bulk.wait_group.read 1: deleted", kFilledOnce},
    {"SoftwarePipeline: cp.async.bulk.wait_group.read 1: one group later",
     kFilledOnce},
    {"SoftwarePipeline: cp.async.bulk.wait_group.read 1 (2): deleted",
     kFilledOnce},
    {"SoftwarePipeline: cp.async.bulk.wait_group.read 1 (2): one group later",
     kFilledOnce},
    {"SoftwarePipeline: bar.sync 1, 128: deleted", kFilledOnce},
    {"SoftwarePipeline: bar.sync 1, 128 (3): deleted", kFilledOnce},
    {"SoftwarePipeline: cp.async.bulk.commit_group: deleted",
     "its copy joins the next group, which is waited for too"},
    {"SoftwarePipeline: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers},
    {"SoftwarePipeline: bar.sync 0 (3): deleted", kHaveMet},
    {"Persistent: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers},
    {"Persistent: bar.sync 0 (4): deleted", kHaveMet},
    {"WarpSpecialized: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers},
    {"WarpSpecialized: bar.sync 0 (2): deleted", kHaveMet},
    {"DeepPipeline: bar.sync 0: deleted", "that of TensorMemory follows"},
    {"DeepPipeline: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers},
    {"DeepPipeline: bar.sync 0 (3): deleted", kHaveMet},
    {"CtaPair: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers},
    {"TwoConsumers: tcgen05.wait::ld.sync.aligned (but the last): deleted",
     kLastCovers}};

class LadderMutation : public testing::TestWithParam<Step> {};

TEST_P(LadderMutation, EachDefectIsFound) {
  const Step &step = GetParam();
  Kernel kernel = compile(step.build(), {.use_cache = false});
  std::vector<std::string> lines = split(kernel.ptx, "\n");
  auto mutated = [&](const std::string &ptx) {
    Kernel other = kernel;
    other.ptx = ptx;
    return findingsOf(other, step.shape);
  };
  Redundant redundant = kRedundant;
  for (const auto &[key, why] : kOfAll)
    redundant[fmt::format("{}: {}", step.name, key)] = why;
  expectEachFound({step.name, lines, mutated}, {0, lines.size() - 1},
                  redundant);
}

INSTANTIATE_TEST_SUITE_P(, LadderMutation, testing::ValuesIn(steps()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln
