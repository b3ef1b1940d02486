// Mutator: choose a change of a program and of its launch.
#include "fuzz/Mutator.h"
#include "fuzz/Launch.h"
#include "fuzz/Target.h"
#include "kiln/base/error.h"
#include "kiln/check/explanation.h"
#include "sim/units/Units.h"
#include "unit/sim/program/SyntaxSamples.h"

#include <fmt/format.h>
#include <set>

namespace kiln::fuzz {

using Kind = Statement::Kind;

Pieces::Pieces() {
  std::set<std::string> words;
  for (const char *sample : sim::kSyntaxSamples)
    for (const Statement &statement : readStatements(sample)) {
      if (statement.kind != Kind::instruction)
        continue;
      Instruction parts = takeApart(statement);
      modifiersOf[parts.opcode].push_back(parts.modifiers);
      words.insert(parts.modifiers.begin(), parts.modifiers.end());
      instructions.push_back(std::move(parts));
    }
  modifiers.assign(words.begin(), words.end());
  for (const sim::Instruction &known : sim::instructionSet().rows())
    opcodes.push_back(known.opcode);
}

std::string Dice::integer() {
  static constexpr const char *kEdges[] = {"0",
                                           "1",
                                           "-1",
                                           "-4",
                                           "2147483647",
                                           "2147483648",
                                           "-2147483648",
                                           "4294967295",
                                           "4294967296",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "-9223372036854775808",
                                           "18446744073709551615",
                                           "0xFFFFFFFFFFFFFFF8",
                                           "0x7F800001",
                                           "65535",
                                           "65536",
                                           "1023"};
  switch (below(3)) {
  case 0:
    return any(kEdges);
  case 1:
    return std::to_string(static_cast<int>(below(70)) - 4);
  default:
    return fmt::format("{}", (std::uint64_t(1) << below(64)) + below(3) - 1);
  }
}

std::string Dice::real() {
  static constexpr const char *kEdges[] = {"0f7FC00000",
                                           "0f7F800001",
                                           "0fFFFFFFFF",
                                           "0f7F800000",
                                           "0fFF800000",
                                           "0f00000001",
                                           "0f80000000",
                                           "0f4F800000",
                                           "0fDF000000",
                                           "0d7FF8000000000000",
                                           "0d7FF0000000000001",
                                           "0dFFF0000000000000",
                                           "0d43F0000000000000",
                                           "0d8000000000000000",
                                           "1e308",
                                           "1.0e-320",
                                           "1e9999",
                                           "0.5"};
  return any(kEdges);
}

std::size_t Mutator::find(Kind kind, std::size_t end) {
  std::size_t count = 0, chosen = statements_.size();
  for (std::size_t i = 0; i < std::min(end, statements_.size()); ++i)
    if (statements_[i].kind == kind && dice_.oneIn(++count))
      chosen = i;
  return chosen;
}

std::size_t Mutator::findPlace() { return place_ = find(Kind::instruction); }

void Mutator::insert(std::size_t at, Statement statement) {
  statements_.insert(statements_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                               at, statements_.size())),
                     std::move(statement));
}

std::string Mutator::registerName() {
  std::size_t at = find(Kind::registers, place_);
  if (at == statements_.size())
    return "%r1";
  // .reg .b32 %r<9>, %x;
  const Tokens &tokens = statements_[at].tokens;
  std::vector<std::string> names;
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    if (tokens[i].kind != ptx::Token::Kind::name)
      continue;
    bool isRange = i + 2 < tokens.size() && tokens[i + 1].text == "<" &&
                   tokens[i + 2].text.size() < 6;
    names.push_back(tokens[i].text +
                    (isRange ? std::to_string(dice_.below(std::strtoul(
                                   tokens[i + 2].text.c_str(), nullptr, 0)))
                             : ""));
  }
  return names.empty() ? "%r1" : dice_.any(names);
}

std::string Mutator::predicateName() {
  for (int tries = 0; tries < 20 && !dice_.oneIn(8); ++tries)
    if (std::string name = registerName();
        name.starts_with("%p") || name.starts_with("%q"))
      return name;
  return registerName();
}

std::string Mutator::labelName() {
  std::size_t at = find(Kind::label);
  return at == statements_.size() ? registerName()
                                  : statements_[at].tokens[0].text;
}

std::string Mutator::symbolName() {
  std::size_t at = find(dice_.oneIn(3) ? Kind::head : Kind::variable);
  if (at == statements_.size())
    at = find(Kind::head);
  if (at == statements_.size())
    return "nothing";
  std::vector<std::string> names;
  for (const Token &token : statements_[at].tokens)
    if (token.kind == ptx::Token::Kind::name)
      names.push_back(token.text);
  return names.empty() ? "nothing" : dice_.any(names);
}

void Mutator::mutate() {
  switch (dice_.below(24)) {
  default:
    return changeInstruction();
  case 0:
  case 1:
    return changeLiteral();
  case 2:
  case 3:
    return moveInstructions();
  case 4:
    return addInstruction();
  case 5:
    return changeLabels();
  case 6:
    return changeRegisters();
  case 7:
  case 8:
    return changeVariable();
  case 9:
    return changeHead();
  case 10:
    return changeDirective();
  case 11:
    return changeToken();
  }
}

/// Mostly as the seed is launched, and now and then not.
static void changeLaunch(Dice &dice, Launch &launch) {
  static constexpr std::uint32_t kThreads[] = {1,  31, 32,  33,  64,
                                               96, 97, 128, 256, 1024};
  static constexpr std::uint32_t kSmemBytes[] = {0,    8,     1024,  4096,
                                                 8200, 49152, 232448};
  static constexpr int kRegisters[] = {1, 24, 64, 168, 255};
  launch.seed = dice.bits() % 1000000;
  launch.interleaving = static_cast<Interleaving>(dice.below(3));
  launch.hasChecks = !dice.oneIn(4);
  launch.hasStats = dice.oneIn(8);
  launch.hasTimeline = dice.oneIn(8);
  launch.threads = dice.oneIn(3) ? static_cast<int>(2 + dice.below(3)) : 1;
  launch.allow.clear();
  for (std::size_t count = dice.oneIn(3) ? 1 + dice.below(3) : 0; count;
       --count)
    launch.allow.emplace_back(dice.any(explanations()).id);
  if (dice.oneIn(8))
    launch.registers = dice.any(kRegisters);
  if (dice.oneIn(10))
    launch.block[0] = dice.any(kThreads);
  if (dice.oneIn(20))
    launch.block = {8, 4, 2};
  if (dice.oneIn(8))
    launch.grid[dice.below(3)] = static_cast<std::uint32_t>(1 + dice.below(8));
  if (std::size_t axis = dice.below(3); dice.oneIn(16)) {
    launch.cluster = {1, 1, 1};
    launch.cluster[axis] = 2;
    launch.grid[axis] = 2;
  }
  if (dice.oneIn(10))
    launch.smemBytes = dice.any(kSmemBytes);
}

std::string mutatePtx(std::string_view input, Dice &dice) {
  static const Pieces pieces;
  Statements statements;
  Launch launch;
  try {
    launch = Launch::ofText(std::string(input));
    statements = readStatements(input);
  } catch (const std::exception &) {
    return ""; // no text of tokens
  }
  if (statements.empty())
    return "";
  changeLaunch(dice, launch);
  Mutator mutator(dice, pieces, statements);
  for (std::size_t count = 1 + dice.below(4); count > 0; --count)
    mutator.mutate();
  return launch.toLine() + writeStatements(statements);
}

} // namespace kiln::fuzz
