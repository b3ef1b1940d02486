// Forms: every form of an instruction that ptxas takes is executed, or stands
// in the table of docs/simulator.md that says what is not.
#include "isa/Needs.h"
#include "kiln/base/error.h"
#include "sim/launch/Launch.h"
#include "sim/units/Units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace kiln::sim {

namespace {
/// A choice in a line of ptx_forms.txt.
struct Choice {
  std::string label; ///< "1:"; empty: it stands alone
  std::vector<std::string> parts;
  std::size_t end = 0; ///< behind it
};
using Chosen = std::map<std::string, std::size_t>; ///< by label
/// A row of the table of what is not executed.
struct Missing {
  std::string opcode, modifiers;
  int operands = 0; ///< 0: any number
  int met = 0;
};
} // namespace

static std::string readFile(const std::string &path) {
  std::ifstream file(std::string(KILN_SOURCE_DIR "/") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

static Choice readChoice(const std::string &text, std::size_t begin) {
  Choice choice;
  choice.parts.emplace_back();
  int depth = 0;
  for (std::size_t at = begin + 1;; ++at) {
    char mark = text.at(at);
    if (mark == '>' && depth == 0) {
      choice.end = at + 1;
      break;
    }
    depth += (mark == '<') - (mark == '>');
    if (mark == '|' && depth == 0)
      choice.parts.emplace_back();
    else
      choice.parts.back() += mark;
  }
  std::string &first = choice.parts[0];
  if (first.size() > 1 && std::isdigit(first[0]) && first[1] == ':') {
    choice.label = first.substr(0, 2);
    first = first.substr(2);
  }
  return choice;
}

/// "%r*2" is "%r0, %r1".
static std::string spellVectors(const std::string &text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t star = text.find('*', at);
    if (star == std::string::npos)
      return result + text.substr(at);
    std::size_t name = text.rfind('%', star);
    result += text.substr(at, name - at);
    std::size_t end = star;
    int count = 0;
    while (std::isdigit(text.at(++end)))
      count = 10 * count + (text[end] - '0');
    for (int i = 0; i < count; ++i)
      result += fmt::format("{}{}{}", i ? ", " : "",
                            text.substr(name, star - name), i);
    at = end;
  }
  return result;
}

/// The forms of a line, as scripts/ptx_forms has them, in its order.
static void expand(const std::string &text, const Chosen &chosen,
                   std::vector<std::string> &forms) {
  std::size_t begin = text.find('<');
  if (begin == std::string::npos) {
    forms.push_back(spellVectors(text));
    return;
  }
  Choice choice = readChoice(text, begin);
  auto known = chosen.find(choice.label);
  bool isLabelled = !choice.label.empty();
  for (std::size_t i = 0; i < choice.parts.size(); ++i) {
    if (isLabelled && known != chosen.end() && known->second != i)
      continue;
    Chosen more = chosen;
    if (isLabelled)
      more[choice.label] = i;
    expand(text.substr(0, begin) + choice.parts[i] + text.substr(choice.end),
           more, forms);
  }
}

/// Call `body(form)` for every form that ptxas takes.
template <typename Body> static void forEachForm(Body &&body) {
  std::ifstream file(KILN_SOURCE_DIR "/tests/unit/isa/ptx_forms.txt");
  ASSERT_TRUE(file) << "tests/unit/isa/ptx_forms.txt is missing";
  std::set<std::string> seen; // a form may be in several lines
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#'))
      continue;
    std::size_t tab = line.find('\t'), last = line.rfind('\t');
    ASSERT_NE(tab, last) << line << " has no answer";
    std::vector<std::string> forms;
    expand(line.substr(0, tab), {}, forms);
    std::string taken = line.substr(last + 1);
    std::size_t count = 0;
    for (std::size_t i = 0; i < forms.size(); ++i)
      if (taken == "all" ||
          std::stoi(taken.substr(i / 4, 1), nullptr, 16) >> i % 4 & 1) {
        if (seen.insert(forms[i]).second)
          body(forms[i]);
        ++count;
      }
    EXPECT_EQ(fmt::format("{}", count), line.substr(tab + 1, last - tab - 1))
        << line;
  }
}

/// A module whose entry has the form in a line of its own.
static ptx::Module moduleOf(const std::string &form) {
  return ptx::parse(fmt::format(R"(.version 9.0
.target sm_103a
.address_size 64
.global .align 16 .b8 gvar[64];
.func simple() {{ ret; }} .func (.reg .b32 r) makes() {{ mov.b32 r, 1; ret; }}
.func takes(.reg .b32 a) {{ ret; }}
.func (.reg .b32 r) gives(.reg .b32 a) {{ mov.b32 r, a; ret; }}
.visible .entry test(.param .u64 par)
{{
.reg .pred %p<8>; .reg .b8 %b<4>; .reg .b16 %rs<16>; .reg .b32 %r<256>;
.reg .b64 %rd<16>; .reg .f32 %f<256>; .reg .f64 %fd<10>; .reg .b128 %q<4>;
.shared .align 16 .b8 svar[64];
TABLE: .branchtargets DONE;
PROTO: .callprototype _ (); PROTO1: .callprototype (.reg .b32 _) _ ();
PROTO2: .callprototype (.reg .b32 _) _ (.reg .b32 _);

{}
DONE: ret;
}}
)",
                                form));
}

/// Empty, or why the form is not executed.
static std::string refusalOf(const std::string &form) {
  try {
    ptx::Module module = moduleOf(form);
    GlobalMemory memory;
    LaunchConfig config;
    config.params.resize(8);
    Launch(memory, module, *module.entries().at(0), config);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

static std::vector<Missing> readMissing() {
  std::ifstream file(KILN_SOURCE_DIR "/docs/simulator.md");
  std::vector<Missing> rows;
  bool isTable = false;
  for (std::string line; std::getline(file, line);) {
    isTable = isTable ? line.starts_with('|')
                      : line == "| not executed | modifiers | why |";
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '|');)
      cells.push_back(cell);
    if (!isTable || cells.size() < 4 || line.starts_with("| not") ||
        line.starts_with("|-"))
      continue;
    auto wordsOf = [](std::string cell) {
      std::erase(cell, '`');
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      std::replace(cell.begin(), cell.end(), '/', '|');
      return cell;
    };
    Missing row{wordsOf(cells[1]), wordsOf(cells[2])};
    if (std::size_t semicolon = row.modifiers.find(';');
        semicolon != std::string::npos) {
      row.operands = std::stoi(row.modifiers.substr(semicolon + 1));
      row.modifiers.resize(semicolon);
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(Forms, AreExecutedOrListed) {
  std::vector<Missing> missing = readMissing();
  EXPECT_LE(missing.size(), 40u);
  int count = 0, done = 0;
  forEachForm([&](const std::string &form) {
    ++count;
    isa::Spelled spelled = isa::spell(form);
    bool isListed = false;
    for (Missing &row : missing)
      if (matches({row.opcode, row.modifiers, 0, "", row.operands}, spelled)) {
        isListed = true;
        ++row.met;
      }
    std::string refusal = refusalOf(form);
    done += !isListed;
    EXPECT_EQ(refusal.empty(), !isListed) << form << " " << refusal;
  });
  for (const Missing &row : missing)
    EXPECT_GT(row.met, 0) << row.opcode << " " << row.modifiers
                          << " is none of ptxas' forms";
  std::string docs = readFile("docs/simulator.md");
  for (const std::string &said :
       {fmt::format("ptxas takes {} of them", count),
        fmt::format("the simulator executes {},", done)})
    EXPECT_NE(docs.find(said), std::string::npos)
        << "docs/simulator.md should say: " << said;
}

// So that what is added to the registry is asked about.
TEST(Forms, AreThoseOfTheRegistry) {
  std::set<std::pair<std::string, std::size_t>> seen;
  forEachForm([&](const std::string &form) {
    ptx::Module module = moduleOf(form);
    const ptx::Function &entry = *module.entries().at(0);
    const ptx::Instruction &instruction = entry.body.at(0);
    const Instruction *row = instructionSet().find(instruction.opcode);
    if (!row)
      return;
    try {
      seen.emplace(row->opcode, row->syntax.check(entry, instruction));
    } catch (const UserError &) {
      // It is not executed.
    }
  });
  seen.emplace("sub", 1); // of pairs of integers: newer than this ptxas
  for (std::size_t form : {1, 3}) // a prototype of a function by name
    seen.emplace("call", form);
  for (const Instruction &row : instructionSet().rows())
    for (std::size_t form = 0; form < row.syntax.rules().size(); ++form)
      EXPECT_TRUE(seen.contains({row.opcode, form}))
          << "ptx_forms.txt has nothing of form " << form << " of "
          << row.opcode;
}

} // namespace kiln::sim
