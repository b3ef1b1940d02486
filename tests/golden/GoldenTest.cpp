// Golden: what an H200 answered to each probe, and what the simulator answers.
#include "golden/Probes.h"

#include <kiln/base/error.h>
#include <kiln/check/sim.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

namespace kiln::golden {

static const nlohmann::json &recorded() {
  static const nlohmann::json answers = [] {
    std::ifstream file(KILN_SOURCE_DIR "/tests/golden/h200.json");
    return nlohmann::json::parse(file);
  }();
  return answers;
}

static double elementAt(Type type, const Bytes &bytes, std::size_t index) {
  std::uint64_t bits = 0;
  auto size = static_cast<std::size_t>(size_bytes(type));
  std::memcpy(&bits, bytes.data() + index * size, size);
  return from_bits(type, bits);
}

/// The first element that is further from the hardware's than `near` says.
static std::string firstFar(const Near &near, const Bytes &got,
                            const Bytes &want) {
  auto size = static_cast<std::size_t>(size_bytes(near.type));
  for (std::size_t i = 0; i < want.size() / size; ++i) {
    double is = elementAt(near.type, got, i);
    double was = elementAt(near.type, want, i);
    bool isClose = std::isnan(was) ? std::isnan(is)
                   : std::isinf(was)
                       ? is == was
                       : std::fabs(is - was) <=
                             near.absolute + near.relative * std::fabs(was);
    if (!isClose)
      return fmt::format("element {} is {}, the H200 says {}; the bound is {} "
                         "+ {} of it ({})",
                         i, is, was, near.absolute, near.relative, near.reason);
  }
  return {};
}

/// Empty where the simulator's output is what was recorded.
static std::string difference(const Probe &probe, const Bytes &output,
                              const nlohmann::json &answer) {
  if (probe.near)
    return firstFar(*probe.near, output,
                    fromHex(answer.at(0).get<std::string>()));
  std::vector<std::string> rows = summary(probe, output);
  if (rows.size() != answer.size())
    return fmt::format("{} rows, {} were recorded", rows.size(), answer.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != answer[i].get<std::string>())
      return fmt::format("row {} is {}, the H200 says {}", i, rows[i],
                         answer[i].get<std::string>());
  return {};
}

/// One probe under one order; what differs.
static std::string replay(const Probe &probe, Interleaving order,
                          const nlohmann::json &answer) {
  SimOptions options;
  options.interleaving = order;
  options.seed = 7;
  // Probes look at a barrier's state and wait for none of its phases.
  options.allow = {"mbarrier-unobserved"};
  auto device = open_sim(options);
  LaunchResult result;
  Bytes output;
  try {
    output = runProbe(*device, probe, result);
  } catch (const UserError &error) {
    return error.what();
  }
  std::string errors;
  for (const Finding &finding : result.findings)
    if (finding.grade == Finding::Grade::error)
      errors += finding.to_string() + "\n";
  bool isTrap = answer.is_object();
  if (isTrap != !probe.trap.empty())
    return fmt::format("the H200 {} here, the probe says it {}",
                       isTrap ? "trapped" : "did not trap",
                       isTrap ? "does not" : "does");
  if (!isTrap)
    return errors.empty() ? difference(probe, output, answer) : errors;
  for (const Finding &finding : result.findings)
    if (finding.id == probe.trap)
      return {};
  return fmt::format("the H200 trapped ({}), the simulator found no {}: {}",
                     answer.at("trap").get<std::string>(), probe.trap, errors);
}

static void replayGroup(const std::string &group) {
  int count = 0;
  for (const Probe &probe : probes()) {
    if (probe.group != group)
      continue;
    ++count;
    const nlohmann::json &answers = recorded().at("probes");
    auto answer = answers.find(group + "." + probe.name);
    if (answer == answers.end()) {
      ADD_FAILURE() << group << "." << probe.name
                    << " has no recorded answer; on a machine with an H200 "
                       "run: kiln_golden_record tests/golden/h200.json";
      continue;
    }
    std::string why;
    for (Interleaving order : {Interleaving::eager, Interleaving::random})
      if (why.empty())
        why = replay(probe, order, *answer);
    if (probe.differs.empty())
      EXPECT_EQ(why, "") << group << "." << probe.name;
    else
      EXPECT_NE(why, "") << group << "." << probe.name
                         << " agrees now; it was known to differ: "
                         << probe.differs;
  }
  EXPECT_GT(count, 0);
}

TEST(Golden, NamesTheMachine) {
  EXPECT_NE(recorded().at("device").get<std::string>().find("H200"),
            std::string::npos);
  EXPECT_EQ(recorded().at("date").get<std::string>().size(), 10u);
  EXPECT_NE(recorded().at("driver").get<std::string>(), "");
}
TEST(Golden, Tma) { replayGroup("tma"); }
TEST(Golden, Wgmma) { replayGroup("wgmma"); }
TEST(Golden, Matrix) { replayGroup("matrix"); }
TEST(Golden, Conversion) { replayGroup("conversion"); }
TEST(Golden, Approximation) { replayGroup("approximation"); }
TEST(Golden, Mbarrier) { replayGroup("mbarrier"); }
TEST(Golden, Cluster) { replayGroup("cluster"); }
TEST(Golden, Practice) { replayGroup("practice"); }
TEST(Golden, Bits) { replayGroup("bits"); }
TEST(Golden, Random) { replayGroup("random"); }

} // namespace kiln::golden
