// OptionStructure: the options as a structure of C: its text, and reading it.
//
// Each row of the table is a member of eight bytes, in the order of the table,
// behind the size of the structure. A client that was compiled with fewer rows
// has a smaller structure, and the rest is as nobody said anything.
#include "kiln/check/options.h"
#include "support/Error.h"

#include <cctype>
#include <cstring>
#include <sstream>

namespace kiln {

namespace {
/// How a kind of option is a member.
struct Member {
  const char *type;
  const char *unset; ///< what says nothing
};
} // namespace

static Member memberOf(OptionKind kind) {
  switch (kind) {
  case OptionKind::flag:
    return {"int64_t", "-1"};
  case OptionKind::whole:
    return {"uint64_t", "UINT64_MAX"};
  case OptionKind::seconds:
    return {"double", "-1.0"};
  case OptionKind::words:
  case OptionKind::text:
  case OptionKind::path:
  case OptionKind::folder:
  case OptionKind::list:
    return {"const char *", "NULL"};
  }
  internalError("option kind {} has no member", static_cast<int>(kind));
}

/// Words in lines of at most 80 columns that begin so; `end` is behind each line
/// but the last.
static std::string inLines(const std::string &text, const std::string &begin,
                           const std::string &end) {
  constexpr std::size_t kColumns = 80;
  std::string lines, line = begin;
  std::istringstream words(text);
  for (std::string word; words >> word; line += ' ' + word)
    if (line.size() + 1 + word.size() + end.size() > kColumns) {
      lines += line + end + '\n';
      line = begin;
    }
  return lines + line + '\n';
}

std::string options_header(std::span<const CheckOption> options) {
  std::string members, unset;
  for (const CheckOption &option : options) {
    Member member = memberOf(option.kind);
    std::string type = member.type;
    if (type.back() != '*')
      type += ' ';
    std::string help =
        fmt::format("{}{}. Takes {}; default: {}.", option.help,
                    option.kind == OptionKind::list ? "; several with commas"
                                                    : "",
                    option.accepted, option.fallback);
    help[0] = static_cast<char>(std::toupper(help[0]));
    members += inLines(help, "  ///", "") +
               fmt::format("  {}{};\n", type, key_name(option));
    unset += fmt::format(", {}", member.unset);
  }
  std::string macro =
      inLines("{ sizeof(kiln_options)" + unset + " }", "   ", " \\");
  return fmt::format(R"(// kiln_options.h: what checks can be told, as a structure. It is made from the
// table of kiln/check/options.h.
//
//     kiln_options options = KILN_OPTIONS_INIT;
//     options.interleaving = "random";
//     options.seed = 7;
//
// A member that is left as KILN_OPTIONS_INIT has it says nothing. Later versions
// add members at the end.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct kiln_options {{
  size_t bytes; ///< sizeof(kiln_options)
{}}} kiln_options;

#define KILN_OPTIONS_INIT \
{})",
                     members, macro);
}

/// The member's eight bytes as text; nothing where they say nothing.
static std::optional<std::string> textOf(OptionKind kind,
                                         const std::byte *member) {
  std::int64_t whole = 0;
  std::memcpy(&whole, member, sizeof whole);
  switch (kind) {
  case OptionKind::flag:
    if (whole == -1)
      return std::nullopt;
    return whole ? "on" : "off";
  case OptionKind::whole:
    if (whole == -1)
      return std::nullopt;
    return std::to_string(static_cast<std::uint64_t>(whole));
  case OptionKind::seconds: {
    double seconds = 0;
    std::memcpy(&seconds, member, sizeof seconds);
    if (seconds == -1)
      return std::nullopt;
    return fmt::format("{}", seconds);
  }
  case OptionKind::words:
  case OptionKind::text:
  case OptionKind::path:
  case OptionKind::folder:
  case OptionKind::list: {
    const char *text = nullptr;
    std::memcpy(&text, member, sizeof text);
    if (!text)
      return std::nullopt;
    return text;
  }
  }
  internalError("option kind {} has no member", static_cast<int>(kind));
}

void set_from_structure(CheckSettings &settings, const void *structure,
                        std::span<const CheckOption> options) {
  constexpr std::size_t kMember = 8;
  std::size_t bytes = 0, most = kMember * (1 + options.size());
  std::memcpy(&bytes, structure, sizeof bytes);
  if (bytes < kMember || bytes > most || bytes % kMember)
    userError("the options have {} bytes; this library knows up to {} in steps "
              "of {}; use KILN_OPTIONS_INIT",
              bytes, most, kMember);
  const auto *members = static_cast<const std::byte *>(structure) + kMember;
  for (std::size_t i = 0; i < bytes / kMember - 1; ++i) {
    const CheckOption &option = options[i];
    std::string key = "options." + key_name(option);
    if (auto text = textOf(option.kind, members + kMember * i))
      set_value(settings, option, key, *text);
  }
}

} // namespace kiln
