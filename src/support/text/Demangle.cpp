// Demangle: names of C++ as people write them, by the compiler's own library.
//
// What a name becomes is known before the library sees it (MangledSize): it has
// no limits of its own.
#include "support/text/Demangle.h"
#include "support/text/MangledSize.h"

#include <cctype>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <optional>
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

/// What refers back: S_, S0_, T_, T1_. A few of them cannot double much, however
/// they are put together.
static bool hasManyReferences(std::string_view name) {
  constexpr int kFew = 12;
  int count = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    auto next = static_cast<unsigned char>(name[i + 1]);
    count += (name[i] == 'S' || name[i] == 'T') &&
             (next == '_' || std::isdigit(next) || std::isupper(next));
  }
  return count > kFew;
}

/// Whether the library may have it.
static bool isWithinLimits(const std::string &name) {
  if (name.size() > kMangledLimitBytes)
    return false;
  std::optional<std::uint64_t> size = demangledSize(name);
  return size ? *size <= kDemangledLimitBytes : !hasManyReferences(name);
}

/// Nothing where the name is none of C++, or becomes more than it may.
static std::optional<std::string> demangleWithin(const std::string &name) {
  if (!isWithinLimits(name))
    return std::nullopt;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || !text)
    return std::nullopt;
  return text.get();
}

std::string demangle(const std::string &name) {
  // A short name of anything may stand for a type ("i" for int).
  if (!name.starts_with("_Z"))
    return name;
  std::optional<std::string> text = demangleWithin(name);
  return text ? withoutFile(std::move(*text)) : name;
}

std::string variableName(const std::string &name) {
  std::string text = demangle(name);
  // Of a variable inside a function its own name.
  std::size_t function = text.rfind(")::");
  return function == std::string::npos ? text : text.substr(function + 3);
}

} // namespace kiln
