// ErrorText: the message of the error that a piece of code must throw.
#pragma once

#include "kiln/base/error.h"

#include <gtest/gtest.h>

namespace kiln {

/// Runs `code`, which must throw an `Expected`, and returns its message.
template <typename Expected = UserError, typename Code>
std::string errorText(Code code) {
  try {
    code();
  } catch (const Expected &error) {
    return error.message();
  } catch (const std::exception &error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

} // namespace kiln
