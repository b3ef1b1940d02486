// Registry: docs/simulator.md lists what the simulator knows, no more, no less.
#include "sim/units/Units.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace kiln::sim {

static std::string row(const Instruction &instruction) {
  std::string forms = instruction.forms;
  return std::string("| `") + instruction.opcode + "` | " +
         nameOf(instruction.unit) + " | " + (forms.empty() ? "" : forms + " ") +
         "|";
}

TEST(Registry, IsWhatTheDocumentationSays) {
  std::ifstream file(KILN_SOURCE_DIR "/docs/simulator.md");
  ASSERT_TRUE(file) << "docs/simulator.md is missing";
  std::set<std::string> documented;
  bool isTable = false;
  for (std::string line; std::getline(file, line);) {
    if (isTable && !line.empty() && line != "|---|---|---|")
      documented.insert(line);
    isTable |= line == "| opcode | unit | forms |";
  }
  std::set<std::string> known;
  for (const Instruction &instruction : instructionSet().rows())
    known.insert(row(instruction));
  for (const std::string &line : known)
    EXPECT_TRUE(documented.contains(line))
        << "add to docs/simulator.md: " << line;
  for (const std::string &line : documented)
    EXPECT_TRUE(known.contains(line)) << "no instruction: " << line;
}

TEST(Registry, HasEachOpcodeOnce) {
  std::set<std::string> seen;
  for (const Instruction &instruction : instructionSet().rows())
    EXPECT_TRUE(seen.insert(instruction.opcode).second) << instruction.opcode;
}

} // namespace kiln::sim
