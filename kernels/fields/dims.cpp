// dims: dimensions among words and in the names of kernels.
#include "dims.h"
#include "words.h"

namespace kiln {

std::string fields::text_of(const Dim &dim) {
  std::string text = dim.to_string();
  bool is_one_word = text.find_first_of("x ") == std::string::npos;
  return is_one_word ? text : fmt::format("({})", text);
}

Dim fields::parse_dim(std::string text, std::string_view what, int least) {
  if (text.starts_with('(') && text.ends_with(')'))
    text = text.substr(1, text.size() - 2);
  try {
    Dim dim = Dim::parse(text);
    if (!dim.is_constant() || dim.constant() >= least)
      return dim;
  } catch (const UserError &) {
  }
  throw UserError(fmt::format("{} is '{}'; it must be a whole number from {} "
                              "on, or the name of an argument",
                              what, text, least));
}

std::string fields::in_name(const Dim &dim, std::string_view own) {
  std::string text = dim.to_string();
  if ((dim.is_constant() && dim.constant() >= 0) || text == own)
    return text;
  std::string spelled;
  for (char c : text) {
    if (c == ' ')
      continue; // follows a comma
    constexpr std::pair<char, std::string_view> kSpelled[] = {
        {'_', "__"}, {'(', "_o"}, {')', "_c"}, {',', "_k"}, {'-', "_n"}};
    if (has_word(kSpelled, name_in(kSpelled, c)))
      spelled += name_in(kSpelled, c);
    else
      spelled += c;
  }
  return fmt::format("e{}_{}", spelled.size(), spelled);
}

} // namespace kiln
