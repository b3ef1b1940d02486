// LinkedText: a line of its own stands between two texts.
#include "cudart/LinkedText.h"

namespace kiln::cudart {

static const std::string kBetween = "\n// Kiln: the next module to link\n";

std::string joinTexts(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += (all.empty() ? "" : kBetween) + text;
  return all;
}

std::vector<std::string> splitTexts(const std::string &text) {
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(kBetween, begin)) != text.npos;
       begin = end + kBetween.size())
    texts.push_back(text.substr(begin, end - begin));
  texts.push_back(text.substr(begin));
  return texts;
}

} // namespace kiln::cudart
