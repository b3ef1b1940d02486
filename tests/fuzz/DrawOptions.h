// DrawOptions: the command line of programs that draw kernels from seeds.
#pragma once

#include "kiln/base/error.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace kiln::fuzz {

struct DrawOptions {
  std::uint64_t seed = 1, kernels = 100;
  std::uint64_t limit = 0; ///< what the program's own option says
  std::optional<std::uint64_t> only;
  bool isShown = false;
};

/// `limitName`: the program's own option, such as "--seeds", and its default.
inline DrawOptions readDrawOptions(int argc, char **argv, const char *limitName,
                                   std::uint64_t limit) {
  DrawOptions options;
  options.limit = limit;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto number = [&] {
      if (++i == argc)
        throw UserError(word + " wants a value");
      return std::strtoull(argv[i], nullptr, 10);
    };
    if (word == "--seed")
      options.seed = number();
    else if (word == "--kernels")
      options.kernels = number();
    else if (word == limitName)
      options.limit = number();
    else if (word == "--only")
      options.only = number();
    else if (word == "--show")
      options.isShown = true;
    else
      throw UserError("no option " + word);
  }
  return options;
}

} // namespace kiln::fuzz
