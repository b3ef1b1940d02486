// MutateText: changes that know bytes, and changes that know JSON.
#include "fuzz/Target.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kiln::fuzz {

using Json = nlohmann::ordered_json;

std::string mutateBytes(std::string_view input, Dice &dice) {
  std::string text(input);
  std::size_t at = dice.below(text.size() + 1);
  std::size_t count = 1 + dice.below(dice.oneIn(4) ? 64 : 4);
  switch (dice.below(6)) {
  case 0:
    if (at < text.size())
      text[at] = static_cast<char>(dice.bits());
    break;
  case 1:
    text.erase(std::min(at, text.size()), count);
    break;
  case 2:
    text.insert(at, count, static_cast<char>(dice.bits()));
    break;
  case 3: // a piece of it, elsewhere
    text.insert(dice.below(text.size() + 1), text.substr(at, count));
    break;
  case 4:
    text.insert(at, dice.integer());
    break;
  default: // a number that a header has
    for (std::size_t i = 0; i < 4 && at + i < text.size(); ++i)
      text[at + i] = dice.oneIn(2) ? '\xff' : '\0';
  }
  return text;
}

/// All values of a document, in its order.
static void collect(Json &value, std::vector<Json *> &all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json &one : value)
      collect(one, all);
}

static Json anyValue(Dice &dice, const std::vector<Json *> &all) {
  switch (dice.below(7)) {
  case 0:
    return *all[dice.below(all.size())]; // another of the document
  case 1:
    return Json::parse(dice.integer(), nullptr, false);
  case 2:
    return -1.5e300;
  case 3:
    return dice.integer();
  case 4:
    return Json::array();
  case 5:
    return nullptr;
  default:
    return dice.oneIn(2);
  }
}

static void changeKeys(Json &object, Dice &dice) {
  auto at = object.begin();
  std::advance(at, dice.below(object.size()));
  std::string key = at.key();
  Json value = at.value();
  if (dice.oneIn(2))
    object.erase(key);
  else
    object[mutateBytes(key, dice)] = value;
}

static void changeList(Json &list, Dice &dice) {
  std::size_t at = dice.below(list.size());
  if (dice.oneIn(2))
    list.erase(at);
  else
    list.push_back(Json(list[at]));
}

std::string mutateJson(std::string_view input, Dice &dice) {
  Json document = Json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return "";
  for (std::size_t count = 1 + dice.below(3); count > 0; --count) {
    std::vector<Json *> all;
    collect(document, all);
    Json &chosen = *all[dice.below(all.size())];
    bool isFull = chosen.is_structured() && !chosen.empty();
    if (isFull && !dice.oneIn(4))
      chosen.is_object() ? changeKeys(chosen, dice) : changeList(chosen, dice);
    else if (chosen.is_string() && !dice.oneIn(3))
      chosen = mutateBytes(chosen.get<std::string>(), dice);
    else
      chosen = anyValue(dice, all);
  }
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::fuzz
