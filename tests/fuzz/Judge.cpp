// Judge: what a user may see.
#include "fuzz/Target.h"
#include "kiln/base/error.h"

#include <fmt/format.h>
#include <new>
#include <nlohmann/json.hpp>

namespace kiln::fuzz {

/// A message may quote the input, whatever words it has.
static thread_local std::string_view judged;

void checkMessage(const std::string &message) {
  for (char c : message)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 127)
      throw Misbehaviour{
          fmt::format("a control character {} in the message: {}",
                      static_cast<int>(c), message)};
  for (const char *word : {"_M_", "::at(", "std::", "basic_string", "stoi"})
    if (message.find(word) != std::string::npos &&
        judged.find(word) == std::string_view::npos)
      throw Misbehaviour{"a message of the C++ library: " + message};
}

void checkReport(const std::string &json) {
  if (!nlohmann::json::accept(json))
    throw Misbehaviour{"a report is not JSON: " + json};
}

void runTarget(const Target &target, std::string_view input) {
  judged = input;
  try {
    target.run(input);
  } catch (const InternalError &error) {
    throw Misbehaviour{fmt::format("InternalError: {}", error.what())};
  } catch (const Error &error) {
    checkMessage(error.what());
  } catch (const std::bad_alloc &) {
    // A small machine's answer (MemoryLimit.cpp).
  } catch (const std::length_error &) {
  } catch (const std::exception &error) {
    throw Misbehaviour{fmt::format("not an error of Kiln's: {}", error.what())};
  }
}

} // namespace kiln::fuzz
