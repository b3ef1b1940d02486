// Explain: every id the simulator can report has an explanation.
#include "kiln/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace kiln {

/// The ids that the sources of the simulator and of `kiln sim` report.
static std::set<std::string> reported() {
  std::set<std::string> ids;
  // A word of a finding stands first in fault, warn, error, tell or .id, on
  // this line or, where the call was broken, alone before the warp on the next.
  std::regex word(
      R"re((?:fault\(|warn\(|error\(|tell\(|tellLeft\(|\.id = |id = )\s*"([a-z]+(?:-[a-z]+)*)")re");
  for (const char *folder : {"/src/sim", "/tools"})
    for (const auto &entry : std::filesystem::recursive_directory_iterator(
             std::string(KILN_SOURCE_DIR) + folder)) {
      if (!entry.is_regular_file())
        continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      std::string all = text.str();
      for (std::sregex_iterator at(all.begin(), all.end(), word), end;
           at != end; ++at)
        ids.insert((*at)[1]);
    }
  return ids;
}

TEST(Explain, EveryReportedIdIsExplained) {
  std::set<std::string> ids = reported();
  ASSERT_GT(ids.size(), 25u) << "the sources were not read";
  for (const std::string &id : ids)
    EXPECT_NO_THROW(explain(id)) << id;
}

TEST(Explain, EveryExplanationIsOfAReportedId) {
  std::set<std::string> ids = reported();
  for (const Explanation &explanation : explanations())
    EXPECT_TRUE(ids.contains(std::string(explanation.id))) << explanation.id;
}

TEST(Explain, IsCompleteAndInOrder) {
  auto all = explanations();
  EXPECT_TRUE(
      std::is_sorted(all.begin(), all.end(),
                     [](const auto &a, const auto &b) { return a.id < b.id; }));
  for (const Explanation &explanation : all) {
    EXPECT_FALSE(explanation.cause.empty()) << explanation.id;
    EXPECT_FALSE(explanation.broken.empty()) << explanation.id;
    EXPECT_FALSE(explanation.repair.empty()) << explanation.id;
  }
}

TEST(Explain, AnUnknownIdIsRefusedWithTheKnownOnes) {
  try {
    explain("bad-luck");
    FAIL() << "it was explained";
  } catch (const UserError &error) {
    std::string text = error.what();
    EXPECT_NE(text.find("'bad-luck' is not a finding"), std::string::npos) << text;
    EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
  }
}

} // namespace kiln
