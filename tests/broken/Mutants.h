// Mutants: the lines of a kernel, each instruction that synchronises deleted in
// turn, or told a wrong parity, count or number of bytes; and that each is
// found.
#pragma once

#include "broken/BrokenKernel.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>

namespace kiln {

/// An instruction on a line of its own.
struct Instruction {
  std::string before, after; ///< a predicate and a comment, say
  std::string opcode, text;  ///< text: with operands, without ';'
  std::vector<std::string> operands;

  bool is(const char *word) const { return opcode.starts_with(word); }
  bool has(const char *word) const {
    return opcode.find(word) != std::string::npos;
  }
};

inline std::optional<Instruction> parse(const std::string &line) {
  static const std::regex form(
      R"(^(\s*(?:@!?[%\w]+\s+)?)([a-z][\w.:]*)\s*([^;]*);(.*)$)");
  static const std::regex operand(R"((?:\[[^\]]*\]|[^,\[])+)");
  std::smatch parts;
  if (!std::regex_match(line, parts, form))
    return std::nullopt;
  Instruction found{parts[1], parts[4], parts[2], parts[2]};
  std::string list = parts[3];
  for (std::sregex_iterator at(list.begin(), list.end(), operand), end;
       at != end; ++at)
    found.operands.push_back(trimmed(at->str()));
  if (!found.operands.empty())
    found.text += fmt::format(" {}", fmt::join(found.operands, ", "));
  return found;
}

/// A line with a defect, and its kind. It stays one line, so that the others
/// keep their numbers.
struct Mutant {
  std::string kind, line;
};

/// The instruction with `code` applied to one of its operands, {0}; {1} is the
/// result.
inline Mutant changed(const Instruction &in, const std::string &kind,
                      std::size_t operand, const char *code) {
  std::vector<std::string> operands = in.operands;
  operands.at(operand) = "%changed";
  return {kind,
          fmt::format(
              "{{ .reg .b32 %changed; {} {}{} {}; }}{}",
              fmt::format(fmt::runtime(code), in.operands[operand], "%changed"),
              in.before, in.opcode, fmt::join(operands, ", "), in.after)};
}

/// An atomic, a load or a store that orders nothing any more.
inline std::optional<Mutant> weakened(const Instruction &in) {
  bool isAccess =
      in.is("atom.") || in.is("red.") || in.is("ld.") || in.is("st.");
  for (const char *order : {".acq_rel", ".acquire", ".release"}) {
    std::size_t at = in.opcode.find(order);
    if (!isAccess || at == std::string::npos)
      continue;
    std::string line = in.before + in.text + ";" + in.after;
    return Mutant{
        "relaxed",
        line.replace(line.find(order), std::string(order).size(), ".relaxed")};
  }
  return std::nullopt;
}

inline std::vector<Mutant> mutantsOf(const Instruction &in) {
  // A wait in a loop becomes one that is over, or that asks once.
  if (in.is("mbarrier.try_wait") || in.is("mbarrier.test_wait")) {
    std::string isOver = fmt::format("setp.eq.u32 {}, 0, 0;", in.operands[0]);
    return {{"deleted", in.before + isOver + in.after},
            {"asks once",
             fmt::format("{}{}; {}{}", in.before, in.text, isOver, in.after)},
            changed(in, "parity", 2, "xor.b32 {1}, {0}, 1;")};
  }
  if (std::optional<Mutant> weaker = weakened(in))
    return {*weaker};
  for (const char *opcode : {"bar.sync",
                             "bar.arrive",
                             "bar.warp.sync",
                             "barrier.",
                             "fence.",
                             "membar.",
                             "mbarrier.init",
                             "mbarrier.arrive",
                             "mbarrier.expect_tx",
                             "cp.async.commit_group",
                             "cp.async.wait",
                             "cp.async.mbarrier",
                             "cp.async.bulk.commit_group",
                             "cp.async.bulk.wait",
                             "wgmma.fence",
                             "wgmma.commit_group",
                             "wgmma.wait_group",
                             "tcgen05.fence",
                             "tcgen05.commit",
                             "tcgen05.wait",
                             "tcgen05.dealloc"}) {
    if (!in.is(opcode))
      continue;
    std::vector<Mutant> mutants = {{"deleted", in.after}};
    // A fence for the CTA where others are to see it.
    for (auto [wide, narrow] :
         {std::pair("fence.acq_rel.gpu", "fence.acq_rel.cta"),
          std::pair("fence.sc.gpu", "fence.sc.cta"),
          std::pair("membar.gl", "membar.cta")})
      if (in.opcode == wide)
        mutants.push_back({"narrower", in.before + narrow + ";" + in.after});
    if (in.is("mbarrier.init")) {
      mutants.push_back(changed(in, "one more", 1, "add.u32 {1}, {0}, 1;"));
      mutants.push_back(changed(in, "one fewer", 1, "sub.u32 {1}, {0}, 1;"));
    }
    if (in.has("expect_tx")) {
      std::size_t last = in.operands.size() - 1;
      mutants.push_back(
          changed(in, "more bytes", last, "add.u32 {1}, {0}, 16;"));
      mutants.push_back(
          changed(in, "fewer bytes", last, "sub.u32 {1}, {0}, 16;"));
    }
    if (in.has("wait_group"))
      mutants.push_back({"one group later",
                         fmt::format("{}{} {};{}", in.before, in.opcode,
                                     std::stoi(in.operands[0]) + 1, in.after)});
    return mutants;
  }
  return {};
}

inline std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// A kernel that is mutated.
struct Mutated {
  std::string title;
  std::vector<std::string> lines;
  /// The ids of what was found under the first order that shows something.
  std::function<std::set<std::string>(const std::string &ptx)> findingsOf;
};

/// "NAME: INSTRUCTION: KIND", and why nothing depends on it. Of several alike,
/// those behind the first have a number, "INSTRUCTION (2)"; "(last)" and
/// "(but the last)" are names too.
using Redundant = std::map<std::string, std::string>;

/// What the `number`-th of `all` like it may be called in a list.
inline std::vector<std::string> namesOf(const std::string &text, int number,
                                        int all) {
  std::vector<std::string> names = {
      number == 1 ? text : fmt::format("{} ({})", text, number)};
  if (all > 1)
    names.push_back(text + (number == all ? " (last)" : " (but the last)"));
  return names;
}

/// Each mutant of a line from the first to the last is found, but for those of
/// the list, which are not.
inline void expectEachFound(const Mutated &kernel,
                            std::pair<std::size_t, std::size_t> range,
                            const Redundant &redundant) {
  const std::vector<std::string> &lines = kernel.lines;
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(kernel.findingsOf(joined(lines)), testing::IsEmpty());
  std::map<std::string, int> all, seen;
  for (std::size_t i = range.first; i <= range.second; ++i)
    if (std::optional<Instruction> instruction = parse(lines[i]))
      ++all[instruction->text];
  std::set<std::string> listed;
  for (std::size_t i = range.first; i <= range.second; ++i) {
    std::optional<Instruction> instruction = parse(lines[i]);
    if (!instruction)
      continue;
    const std::string &text = instruction->text;
    std::vector<std::string> names = namesOf(text, ++seen[text], all[text]);
    for (const Mutant &mutant : mutantsOf(*instruction)) {
      std::vector<std::string> broken = lines;
      broken[i] = mutant.line;
      std::set<std::string> ids = kernel.findingsOf(joined(broken));
      bool isRedundant = false;
      for (const std::string &name : names)
        if (auto at = redundant.find(
                fmt::format("{}: {}: {}", kernel.title, name, mutant.kind));
            at != redundant.end()) {
          isRedundant = true;
          listed.insert(at->first);
        }
      EXPECT_EQ(ids.empty(), isRedundant)
          << kernel.title << ": " << names[0] << ": " << mutant.kind
          << ", at line " << i + 1 << ", "
          << (isRedundant ? "is on the list and was found: " : "was not found")
          << testing::PrintToString(ids);
    }
  }
  for (const auto &[key, why] : redundant) {
    bool isOfKernel = key.starts_with(kernel.title + ": ");
    EXPECT_TRUE(!isOfKernel || listed.contains(key))
        << "the list names an instruction that is not there: " << key;
  }
}

} // namespace kiln
