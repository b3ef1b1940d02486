// Demangle: names of C++ as people write them, by the compiler's own library.
#include "support/Demangle.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kiln {

std::string demangle(const std::string &name) {
  // A short name of anything may stand for a type ("i" for int).
  if (!name.starts_with("_Z"))
    return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : name;
}

} // namespace kiln
