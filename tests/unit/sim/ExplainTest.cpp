// Explain: every id the simulator can report has an explanation.
#include "kiln/check/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace kiln {

/// The text of every source of a folder.
static std::string sourcesOf(const char *folder) {
  std::stringstream text;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(
           std::string(KILN_SOURCE_DIR) + folder))
    if (entry.path().extension() == ".cpp")
      text << std::ifstream(entry.path()).rdbuf();
  return text.str();
}

/// mbarrierCount of mbarrier-count, as the table of findings names it.
static std::string constantOf(std::string_view id) {
  std::string name;
  for (std::size_t i = 0; i < id.size(); ++i) {
    bool isNew = id[i] == '-';
    char letter = id[i += isNew];
    name += isNew ? static_cast<char>(std::toupper(letter)) : letter;
  }
  return name == "assert" ? "assertion" : name;
}

TEST(Explain, EveryRowIsReportedSomewhere) {
  std::string sim = sourcesOf("/src/sim"), check = sourcesOf("/src/check");
  for (const Explanation &row : explanations())
    EXPECT_TRUE(
        std::regex_search(
            sim, std::regex("FindingId::" + constantOf(row.id) + "\\b")) ||
        check.find('"' + std::string(row.id) + '"') != std::string::npos)
        << row.id;
}

TEST(Explain, WarningsAndNotesEndNoLaunch) {
  for (const Explanation &row : explanations())
    EXPECT_TRUE(row.grade == Finding::Grade::error || !row.ends_launch)
        << row.id;
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
    EXPECT_NE(text.find("'bad-luck' is not a finding"), std::string::npos)
        << text;
    EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
  }
}

} // namespace kiln
