// Demangle: names of C++ as people write them, by the compiler's own library.
#include "support/text/Demangle.h"

#include <cctype>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string_view>

namespace kiln {

/// nvcc puts what one file has for itself into a namespace of a number, which
/// people do not write: "_INTERNAL_12d095b8_5_w2_cu_612d28b4_9641::".
static std::string withoutFile(std::string text) {
  static constexpr std::string_view kFile = "_INTERNAL_";
  for (std::size_t at = 0; (at = text.find(kFile, at)) != std::string::npos;) {
    std::size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) ||
            text[end] == '_'))
      ++end;
    if (text.compare(end, 2, "::") != 0)
      return text;
    text.erase(at, end + 2 - at);
  }
  return text;
}

std::string demangle(const std::string &name) {
  // A short name of anything may stand for a type ("i" for int).
  if (!name.starts_with("_Z"))
    return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? withoutFile(text.get()) : name;
}

std::string variableName(const std::string &name) {
  std::string text = demangle(name);
  // Of a variable inside a function its own name.
  std::size_t function = text.rfind(")::");
  return function == std::string::npos ? text : text.substr(function + 3);
}

} // namespace kiln
