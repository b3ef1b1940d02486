// Needs: the table against what ptxas says, and what is said of a lack.
#include "isa/Needs.h"

#include "isa/PtxVersion.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace kiln::isa {

namespace {
/// A row of ptxas_answers.txt.
struct Answers {
  std::string instruction;
  std::vector<std::string> words; ///< of each target
};
struct AnswerTable {
  std::vector<std::string> targets;
  std::vector<Answers> rows;
};
} // namespace

static std::vector<std::string> words(const std::string &text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

static AnswerTable readAnswers() {
  std::ifstream file(KILN_SOURCE_DIR "/tests/unit/isa/ptxas_answers.txt");
  EXPECT_TRUE(file);
  AnswerTable table;
  for (std::string line; std::getline(file, line);) {
    std::size_t tab = line.find('\t');
    if (line.starts_with('#') || tab == std::string::npos)
      continue;
    std::string name = line.substr(0, tab);
    if (name == "targets")
      table.targets = words(line.substr(tab));
    else
      table.rows.push_back({name, words(line.substr(tab))});
  }
  return table;
}

/// The instruction, and the special registers that it names.
static std::vector<Spelled> partsOf(const std::string &instruction) {
  std::vector<Spelled> parts = {spell(instruction)};
  static std::set<std::string> names; // Spelled points into it
  for (std::size_t at = instruction.find('%'); at != std::string::npos;
       at = instruction.find('%', at + 1)) {
    std::size_t end = instruction.find_first_of(".,; )]}|", at);
    parts.push_back(
        {*names.insert(instruction.substr(at, end - at)).first, {}, 0});
  }
  return parts;
}

/// As ptxas's answers are written.
static std::string answer(const std::string &instruction,
                          const Target &target) {
  int version = 0;
  for (const Spelled &part : partsOf(instruction)) {
    if (findLack(part, target, kNewestWritable))
      return "-";
    version = std::max(version, neededVersion(part, target));
  }
  return version <= std::max(50, target.since()) ? "."
                                                 : ptxVersionText(version);
}

TEST(Needs, AreWhatPtxasSays) {
  AnswerTable table = readAnswers();
  ASSERT_GT(table.rows.size(), 500u);
  // What the number of operands does not tell: a predicate for a size, and
  // tcgen05.mma's scale of D.
  const std::set<std::string> lenient = {
      "cp.async.ca.shared.global [%r1], [%rd1], 4, !%p1;",
      "tcgen05.mma.cta_group::1.kind::tf32.collector::a::lastuse [%r1], %rd1, "
      "%rd2, %r2, %p1, 3;"};
  for (const Answers &row : table.rows) {
    if (lenient.contains(row.instruction))
      continue;
    ASSERT_EQ(row.words.size(), table.targets.size()) << row.instruction;
    for (std::size_t i = 0; i < table.targets.size(); ++i)
      EXPECT_EQ(answer(row.instruction, *findTarget(table.targets[i])),
                row.words[i])
          << row.instruction << " on " << table.targets[i];
  }
}

// So that a form which is added is asked about, and is refused where it was not
// there yet.
TEST(Needs, EveryRowHasAnInstructionThatPtxasJudged) {
  AnswerTable table = readAnswers();
  std::vector<Spelled> parts;
  for (const Answers &row : table.rows)
    for (const Spelled &part : partsOf(row.instruction))
      parts.push_back(part);
  Target oldest{findArchitecture(10)};
  for (const NeedsRow &row : needsTable()) {
    bool isJudged = false;
    for (const Spelled &part : parts)
      if (matches(row, part)) {
        isJudged = true;
        EXPECT_TRUE(findLack(part, oldest, 10)) << part.opcode;
      }
    EXPECT_TRUE(isJudged) << row.opcodes << " " << row.modifiers;
  }
}

TEST(Needs, ReadStatements) {
  std::string names;
  for (const Spelled &one :
       spellAll("{ .reg .pred p;\n\t@p add.rn.f32x2 $0, $1, {$2, $3};\n L: "
                "@!p bra L; mbarrier.arrive.shared.b64 _, [$1], 2; ret; }"))
    names += std::string(one.opcode) + std::to_string(one.operands) + " ";
  EXPECT_EQ(names, "reg1 add3 bra1 mbarrier3 ret0 }0 ");
  EXPECT_EQ(spell("fence.proxy.async;").modifiers.size(), 2u);
}

static std::string lackOf(const char *statement, const char *target,
                          int version) {
  std::optional<Lack> lack =
      findLack(spell(statement), findTarget(target), version);
  return lack ? lack->what + " needs " + lack->needed() : "";
}

TEST(Needs, SayWhatIsLacking) {
  const char *wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 a;";
  EXPECT_EQ(lackOf(wgmma, "sm_90", 80), "wgmma.mma_async needs .target sm_90a");
  EXPECT_EQ(lackOf(wgmma, "sm_100a", 86),
            "wgmma.mma_async needs .target sm_90a");
  EXPECT_EQ(lackOf(wgmma, "sm_90a", 80), "");
  EXPECT_EQ(lackOf("tcgen05.wait::ld.sync.aligned;", "sm_90a", 80),
            "tcgen05.wait::ld needs .target sm_100a, sm_100f, sm_101a, "
            "sm_101f, sm_103a, sm_103f, sm_110a or sm_110f");
  EXPECT_EQ(lackOf("@%p1 cvt.rn.satfinite.e4m3x2.f32 a, b, c;", "sm_80", 80),
            "cvt.e4m3x2 needs .target sm_89 or newer");
  EXPECT_EQ(lackOf("cvt.rn.satfinite.e4m3x2.f32 a, b, c;", "sm_89", 80),
            "cvt.e4m3x2 needs .version 8.1 or newer");
  EXPECT_EQ(lackOf("cvt.rn.satfinite.e4m3x2.f32 a, b, c;", "sm_90", 80), "");
  EXPECT_EQ(lackOf("fma.rn.f32x2 a, b, c, d;", "sm_100a", 85),
            "fma.f32x2 needs .version 8.6 or newer");
  EXPECT_EQ(lackOf("add.u32 a, b, c;", "sm_10", 10), "");
}

TEST(Needs, AModuleThatSaysNothingLacksNothing) {
  EXPECT_FALSE(findLack(spell("wgmma.fence;"), std::nullopt, 80));
  EXPECT_FALSE(findLack(spell("wgmma.fence;"), findTarget("sm_90a"), 0));
}

} // namespace kiln::isa
