// GridWork, GroupWork: what CTAs do for each other, whether or not the device
// holds all of them at once.
#include "conformance/Conformance.h"

#include <map>

using namespace conformance;

class GridWorkCase : public OnDevice {};
INSTANTIATE_ON_DEVICES(GridWorkCase);

/// One CTA of a kernel that asks for so much shared memory has a multiprocessor
/// for itself.
static constexpr int kCrowdRows = 200;
static void take_a_multiprocessor(KernelBuilder &kb) {
  kb.shared({.type = u32, .rows = kCrowdRows, .columns = 256});
}

struct Expected {
  Kernel kernel;
  std::vector<int> y;
};

/// Launch them in turns, three times, with workspaces that those of one name
/// share, as calls in one stream do.
static void expect_each_time(Device &device,
                             const std::vector<Expected> &kernels) {
  std::map<std::string, Buffer> kept;
  auto workspace = [&](const ArgumentSpec &spec, std::size_t bytes) {
    Buffer &buffer = kept[spec.name];
    if (buffer.bytes() < bytes) {
      buffer = device.allocate(bytes);
      device.fill(buffer, 0);
    }
    return buffer;
  };
  auto given_to = [&](const Expected &one, const Buffer &out) {
    std::vector<LaunchArgument> given = {out};
    return with_workspaces(one.kernel, given, workspace);
  };
  for (const Expected &one : kernels) { // so that the largest are kept
    EXPECT_FALSE(one.kernel.contract.is_cooperative);
    given_to(one, Buffer());
  }
  for (int i = 0; i < 3; ++i)
    for (const Expected &one : kernels) {
      std::vector<int> y(one.y.size());
      Buffer out = device.allocate(y.size() * sizeof(int));
      device.fill(out, 0xff);
      EXPECT_TRUE(device.launch(one.kernel, given_to(one, out)).ok());
      device.copy_out(y.data(), out, out.bytes());
      device.synchronize();
      EXPECT_EQ(y, one.y) << i;
    }
  // Counters are at rest; the first word of the claims counts turns.
  for (const char *name : {"claims", "meetings_shares"})
    if (kept.contains(name)) {
      std::vector<int> words(kept[name].bytes() / sizeof(int));
      device.copy_out(words.data(), kept[name], kept[name].bytes());
      device.synchronize();
      for (std::size_t i = 1; i < words.size(); ++i)
        EXPECT_EQ(words[i], 0) << name << " " << i;
    }
}

/// Each part is written by whoever takes it; TMA brings what was written for
/// the CTA behind.
static Kernel passed_on(int ctas, bool is_crowded) {
  constexpr int kThreads = 64;
  KernelBuilder kb("passed_on", {.threads = kThreads});
  Tensor y = kb.tensor("y", i32, {ctas, kThreads});
  Tensor kept = kb.workspace("kept", i32, {ctas, kThreads});
  TmaTensor map = kb.tensor_map(kept, {.tile = {1, kThreads}});
  kb.grid(ctas);
  SharedTile tile = kb.shared(map.tile());
  Mbarrier full = kb.mbarriers(1)[0];
  if (is_crowded)
    take_a_multiprocessor(kb);
  GridWork work(kb, ctas);
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
  });
  work.begin();
  work.run([&](const Value &part) {
    kept(part, thread_id()) = part * kThreads + thread_id();
  });
  work.finish();
  one_thread([&] {
    full.arrive_expect_tx(map.tile_bytes());
    tma_load(tile, map, {(block_id() + 1) % ctas, 0}, full);
  });
  full.wait(0);
  y(block_id(), thread_id()) = tile(0, thread_id());
  return compile_checked(kb.module());
}

static std::vector<int> passed_numbers(int ctas) {
  std::vector<int> numbers;
  for (int cta = 0; cta < ctas; ++cta)
    for (int t = 0; t < 64; ++t)
      numbers.push_back((cta + 1) % ctas * 64 + t);
  return numbers;
}

TEST_P(GridWorkCase, PassesOn) {
  Kernel kernel = passed_on(12, false);
  OPEN_OR_SKIP(device);
  expect_each_time(device, {{kernel, passed_numbers(12)}});
}

TEST_P(GridWorkCase, NeedsNoRoomForAll) {
  OPEN_OR_SKIP(device);
  for (int ctas : {device.description().sms + 9, 3 * device.description().sms})
    expect_each_time(device, {{passed_on(ctas, true), passed_numbers(ctas)}});
}

/// The members of a group, far from each other, add up what each of them wrote,
/// moved by the number of the share.
static Kernel added_up(int groups, int members, bool is_crowded) {
  KernelBuilder kb("added_up", {.warpgroups = 1});
  Tensor y = kb.tensor("y", i32, {groups, members, 128});
  Tensor kept = kb.workspace("kept", i32, {groups * members, 128});
  kb.grid(groups * members);
  if (is_crowded)
    take_a_multiprocessor(kb);
  GroupWork sums(kb, {.groups = groups, .members = members});
  Value cta = block_id(), t = thread_id();
  Value group = cta % groups, rank = cta / groups;
  GroupWork::Member member{.group = group, .rank = rank};
  sums.begin(member);
  sums.finish(
      member, [&] { kept(cta, t) = cta + t; },
      [&](const Value &share) {
        Value sum = constant(i32, 0);
        for (int of = 0; of < members; ++of)
          sum = sum + kept(group + of * groups, (t + share) % 128);
        y(group, share, t) = sum;
      });
  return compile_checked(kb.module());
}

static std::vector<int> added_numbers(int groups, int members) {
  std::vector<int> numbers;
  for (int group = 0; group < groups; ++group)
    for (int share = 0; share < members; ++share)
      for (int t = 0; t < 128; ++t) {
        int sum = 0;
        for (int of = 0; of < members; ++of)
          sum += group + of * groups + (t + share) % 128;
        numbers.push_back(sum);
      }
  return numbers;
}

TEST_P(GridWorkCase, GroupsAddUp) {
  Kernel kernel = added_up(3, 4, false);
  OPEN_OR_SKIP(device);
  expect_each_time(device, {{kernel, added_numbers(3, 4)}});
}

// Counters that one kernel leaves behind are what another one begins with.
TEST_P(GridWorkCase, KernelsShareTheirWords) {
  Kernel kernels[] = {passed_on(12, false), passed_on(7, false),
                      added_up(3, 4, false), added_up(2, 7, false)};
  OPEN_OR_SKIP(device);
  expect_each_time(device, {{kernels[0], passed_numbers(12)},
                            {kernels[1], passed_numbers(7)},
                            {kernels[2], added_numbers(3, 4)},
                            {kernels[3], added_numbers(2, 7)}});
}

// The last members of some groups begin when others of them have ended.
TEST_P(GridWorkCase, SharesAreLeftToTheLast) {
  OPEN_OR_SKIP(device);
  constexpr int kMembers = 4;
  int groups = device.description().sms / kMembers + 3;
  expect_each_time(device, {{added_up(groups, kMembers, true),
                             added_numbers(groups, kMembers)}});
}

// Each warpgroup of a CTA has a group of its own.
TEST_P(GridWorkCase, WarpgroupsHaveGroups) {
  constexpr int kMembers = 3;
  KernelBuilder kb("pairs", {.warpgroups = 2});
  Tensor y = kb.tensor("y", i32, {2, kMembers, 128});
  Tensor kept = kb.workspace("kept", i32, {2, kMembers, 128});
  kb.grid(kMembers);
  GroupWork sums(kb, {.groups = 2, .members = kMembers, .warpgroups = 2});
  warpgroups(0, 2, {}, [&](Value warpgroup) {
    Value rank = block_id(), t = warpgroup_thread_id();
    GroupWork::Member member{
        .group = warpgroup, .rank = rank, .warpgroup = warpgroup};
    sums.begin(member);
    sums.finish(
        member,
        [&] { kept(warpgroup, rank, t) = warpgroup * 1000 + rank * 100 + t; },
        [&](const Value &share) {
          Value sum = share;
          for (int of = 0; of < kMembers; ++of)
            sum = sum + kept(warpgroup, of, t);
          y(warpgroup, share, t) = sum;
        });
  });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> expected;
  for (int warpgroup = 0; warpgroup < 2; ++warpgroup)
    for (int share = 0; share < kMembers; ++share)
      for (int t = 0; t < 128; ++t)
        expected.push_back(kMembers * (warpgroup * 1000 + t) + 300 + share);
  expect_each_time(device, {{kernel, expected}});
}
