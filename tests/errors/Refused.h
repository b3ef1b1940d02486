// Refused: expect a UserError with its whole text and the line it names.
#pragma once

#include "kiln/base/where.h"

#include <kiln/kiln.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <string>

namespace errors {

using namespace kiln;

/// "tests/errors/ValuesTest.cpp:12" of the file that calls.
inline std::string at(unsigned line, Where where = Where::current()) {
  return fmt::format("{}:{}", where.file, line);
}

/// `body` is refused at `line` of the calling file with exactly `message`.
/// A line of 0: the message names no place.
inline void refused(unsigned line, const std::function<void()> &body,
                    const std::string &message,
                    Where where = Where::current()) {
  std::string expected =
      line ? fmt::format("{}:{}: {}", where.file, line, message) : message;
  std::string found = "nothing was refused";
  try {
    body();
  } catch (const UserError &error) {
    found = error.what();
    EXPECT_EQ(error.exit_status(), ExitStatus::refused);
  }
  EXPECT_EQ(found, expected) << "asked for at " << at(where.line, where);
}

} // namespace errors
