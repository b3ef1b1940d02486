// ptx_parser_fuzz: whatever text the parser is given, it parses or refuses.
//
// Mutates small modules (bytes, cuts, repeats, splices of tokens) for as many
// seconds as asked. A crash, another kind of exception, or a text that takes
// longer than a second ends it with the seed that makes it happen again.
//
//     ptx_parser_fuzz [seconds [seed]]
#include "kiln/base/error.h"
#include "ptx/Ast.h"
#include "unit/ptx/ParserSamples.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Makes a text out of a seed.
class Mutator {
public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string text() {
    std::string text(below(2) ? kiln::ptx::kNvccSample
                              : kiln::ptx::kHopperSample);
    for (std::size_t count = 1 + below(8); count > 0; --count)
      mutate(text);
    return text;
  }

private:
  std::mt19937_64 random_;

  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : random_() % limit;
  }

  void mutate(std::string &text) {
    static constexpr const char *kPieces[] = {
        "{",    "}",       "(",       "[",       ";",          "/*",   "\"",
        "-",    "0x",      "0f",      "<99999>", "[99999999]", "::",   "@!",
        ".reg", ".global", "%r1|%p1", "= {1}",   "$L_brx_0",   "%tid", "1/0",
        "?1:",  "\n",      ",",       "<<",      ".entry q",   "((((", "{{{{"};
    std::size_t at = below(text.size());
    switch (below(6)) {
    case 0:
      if (!text.empty())
        text[at] = static_cast<char>(random_());
      return;
    case 1:
      text.erase(at, below(40));
      return;
    case 2:
      text.insert(at, kPieces[below(std::size(kPieces))]);
      return;
    case 3:
      text.insert(below(text.size()), text.substr(at, below(200)));
      return;
    case 4:
      text.resize(at);
      return;
    default: {
      std::string piece = kPieces[below(std::size(kPieces))];
      for (std::size_t count = below(3000); count > 0; --count)
        text.insert(at, piece);
    }
    }
  }
};

/// Parse one text; false, with a line about it, where the parser misbehaves.
bool check(std::uint64_t seed, std::size_t &accepted) {
  constexpr double kLimitSeconds = 1;
  std::string text = Mutator(seed).text();
  Clock::time_point begin = Clock::now();
  try {
    kiln::ptx::parse(text);
    ++accepted;
  } catch (const kiln::UserError &error) {
    if (!error.where().is_known()) {
      std::fprintf(stderr, "seed %llu: no line in: %s\n",
                   static_cast<unsigned long long>(seed), error.what());
      return false;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "seed %llu: no UserError: %s\n",
                 static_cast<unsigned long long>(seed), error.what());
    return false;
  }
  if (secondsSince(begin) < kLimitSeconds)
    return true;
  std::fprintf(stderr, "seed %llu: took %.1f s\n",
               static_cast<unsigned long long>(seed), secondsSince(begin));
  return false;
}

} // namespace

int main(int argc, char **argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Clock::time_point begin = Clock::now();
  std::size_t accepted = 0;
  std::uint64_t seed = first;
  do
    if (!check(seed++, accepted))
      return 1;
  while (secondsSince(begin) < seconds);
  std::printf("%llu texts, %zu of them accepted\n",
              static_cast<unsigned long long>(seed - first), accepted);
  // Mutations that are all refused would test the first error only.
  return accepted > 0 ? 0 : 1;
}
