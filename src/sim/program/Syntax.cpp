// Syntax: read the forms of the registry, once.
#include "sim/program/Syntax.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

namespace {
/// A word in capitals, and the modifiers it stands for.
struct WordClass {
  std::string_view name, words;
};
} // namespace

static constexpr WordClass kClasses[] = {
    {"INT", "u16 s16 u32 s32 u64 s64"},
    {"BITS", "b16 b32 b64"},
    {"HALF", "f16|f16x2|bf16|bf16x2"},
    {"DATA", "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"},
    {"TYPE", "DATA HALF tf32 e4m3 e5m2 e4m3x2 e5m2x2"},
    {"EIGHTS", "e4m3|e5m2|e4m3x2|e5m2x2|e4m3x4|e5m2x4"},
    {"ROUND", "rn|rz|rm|rp"},
    {"REDUCE", "add|min|max|inc|dec|and|or|xor"},
    {"COMPARE",
     "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"JOIN", "and|or|xor"},
    {"SPACE", "global|const|shared|shared::cta|shared::cluster|local|param|"
              "param::entry|param::func"},
    {"SHARED", "shared shared::cta shared::cluster"},
    {"ORDER", "weak|volatile|relaxed|acquire|release|acq_rel mmio SCOPE"},
    {"SCOPE", "cta|cluster|gpu|sys"},
    {"CACHE",
     "ca|cg|cs|cv|lu|wb|wt nc L1::evict_normal|L1::evict_unchanged|"
     "L1::evict_first|L1::evict_last|L1::no_allocate "
     "L2::evict_normal|L2::evict_first|L2::evict_last L2::cache_hint PREFETCH"},
    {"PREFETCH", "L2::64B|L2::128B|L2::256B"},
    {"EVICT", "L2::evict_last L2::evict_normal L2::evict_first "
              "L2::evict_unchanged"},
    {"RESTRICT", "sync_restrict::shared::cta|sync_restrict::shared::cluster"},
    {"VECTOR", "v2|v4|v8"},
    {"RANK", "1d|2d|3d|4d|5d"},
    {"ALIGNED", "sync aligned"},
    {"CTAGROUP", "cta_group::1|cta_group::2"},
    {"REPEAT", "x1|x2|x4|x8|x16|x32|x64|x128"},
    {"PLAINKIND", "kind::f16|kind::tf32|kind::f8f6f4|kind::i8"},
    {"SCALEDKIND", "kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4"},
    {"NARROW", "e4m3|e5m2|e2m3|e3m2|e2m1"},
    {"SCALES", "scale_vec::1X|scale_vec::2X|scale_vec::4X ue8m0 ue4m3"},
    {"SCALEVEC", "scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32"},
    {"COLLECTA", "collector::a::fill|collector::a::use|collector::a::lastuse|"
                 "collector::a::discard"},
    {"COLLECTB",
     "collector::b0::fill|collector::b0::use|collector::b0::lastuse|"
     "collector::b0::discard|collector::b1::fill|collector::b1::use|"
     "collector::b1::lastuse|collector::b1::discard|collector::b2::fill|"
     "collector::b2::use|collector::b2::lastuse|collector::b2::discard|"
     "collector::b3::fill|collector::b3::use|collector::b3::lastuse|"
     "collector::b3::discard"},
};

/// The parts of `text` between separators, none of them empty.
static std::vector<std::string_view> split(std::string_view text,
                                           char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Remove `mark` where the text begins or ends with it.
static bool takeFront(std::string_view &text, char mark) {
  bool isThere = text.starts_with(mark);
  text.remove_prefix(isThere ? 1 : 0);
  return isThere;
}
static bool takeBack(std::string_view &text, std::string_view mark) {
  bool isThere = text.ends_with(mark);
  text.remove_suffix(isThere ? mark.size() : 0);
  return isThere;
}

static std::string_view wordsOfClass(std::string_view name) {
  for (const WordClass &known : kClasses)
    if (known.name == name)
      return known.words;
  return {};
}

const Syntax::Word &Syntax::add(std::string_view text) {
  auto at = std::lower_bound(
      words_.begin(), words_.end(), text,
      [](const Word &word, std::string_view key) { return word.text < key; });
  if (at != words_.end() && at->text == text)
    return *at;
  if (words_.size() == Words().size())
    internalError("an opcode has more than {} modifiers", Words().size());
  Word word{text, static_cast<std::uint8_t>(words_.size()), false, {}};
  word.isType = ptx::parseScalarType(std::string(text), word.type);
  return *words_.insert(at, word);
}

/// All of a|b|CLASS.
Words Syntax::alternatives(std::string_view token, Words &types) {
  Words all;
  for (std::string_view text : split(token, '|')) {
    if (std::string_view inner = wordsOfClass(text); !inner.empty()) {
      for (std::string_view one : split(inner, ' '))
        all |= alternatives(one, types);
      continue;
    }
    const Word &word = add(text);
    all.set(word.number);
    types.set(word.number, word.isType);
  }
  return all;
}

Words Syntax::wordsOf(std::string_view list, FormRule &form) {
  Words all;
  for (std::string_view token : split(list, ' ')) {
    if (std::string_view inner = wordsOfClass(token); !inner.empty()) {
      all |= wordsOf(inner, form);
      continue;
    }
    Words types, some = alternatives(token, types);
    all |= some;
    // Types stand beside each other, other alternatives do not.
    if (token.find('|') != token.npos && (some & ~types).any())
      form.exclusive.push_back(some & ~types);
  }
  return all;
}

const Syntax::Word *Syntax::find(std::string_view text) const {
  auto at = std::lower_bound(
      words_.begin(), words_.end(), text,
      [](const Word &word, std::string_view key) { return word.text < key; });
  return at != words_.end() && at->text == text ? &*at : nullptr;
}

std::string_view Syntax::text(std::size_t number) const {
  return std::find_if(words_.begin(), words_.end(),
                      [&](const Word &word) { return word.number == number; })
      ->text;
}

OperandRule Syntax::operandOf(std::string_view token) {
  using Kind = OperandRule::Kind;
  using TypeOf = OperandRule::TypeOf;
  OperandRule rule;
  if (token == "policy")
    token = "b64:L2::cache_hint";
  else if (token == "mask")
    token = "b16:multicast::cluster";
  if (std::size_t colon = token.find(':'); colon != token.npos) {
    rule.condition = add(token.substr(colon + 1)).number;
    token = token.substr(0, colon);
  }
  rule.isResult = takeFront(token, '=');
  rule.canSink = token != "_" && takeFront(token, '_');
  rule.canNegate = takeFront(token, '-');
  rule.isOptional = takeBack(token, "?");
  rule.mustPair = takeBack(token, "|p!");
  rule.canPair = takeBack(token, "|p") || rule.mustPair;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"p", Kind::predicate},   {"v", Kind::part},      {"[a]", Kind::address},
      {"[t]", Kind::tensor},    {"{*}", Kind::vector},  {"{/}", Kind::parts},
      {"imm", Kind::immediate}, {"label", Kind::label}, {"name", Kind::name},
      {"f", Kind::function},    {"()", Kind::list},     {"_", Kind::sink}};
  rule.canBeSymbol = takeBack(token, "&");
  rule.canBeSpecial = takeBack(token, "%");
  for (const auto &[text, kind] : kKinds)
    if (token == text) {
      rule.kind = kind;
      rule.typeOf = kind == Kind::vector  ? TypeOf::any
                    : kind == Kind::parts ? TypeOf::last
                                          : TypeOf::given;
      return rule;
    }
  if (takeFront(token, '{')) {
    rule.kind = takeBack(token, "*") ? Kind::vector : Kind::byVector;
    takeBack(token, "}");
  }
  rule.canBeWider = takeFront(token, '~');
  static constexpr std::pair<std::string_view, TypeOf> kTypes[] = {
      {"t", TypeOf::last},
      {"t1", TypeOf::first},
      {"t2", TypeOf::second},
      {"w", TypeOf::wide}};
  for (const auto &[text, typeOf] : kTypes)
    if (token == text)
      rule.typeOf = typeOf;
  if (token == "r64") {
    rule.kind = Kind::reg;
    rule.type = ptx::ScalarType::b64;
  } else if (rule.typeOf == TypeOf::given &&
             !ptx::parseScalarType(std::string(token), rule.type)) {
    internalError("'{}' is not the description of an operand", token);
  }
  return rule;
}

bool FormRule::hasModifiers(const Words &words) const {
  return (words & ~takes).none() &&
         std::all_of(needs.begin(), needs.end(),
                     [&](const Words &one) { return (words & one).any(); }) &&
         std::all_of(exclusive.begin(), exclusive.end(), [&](const Words &one) {
           return (words & one).count() <= 1;
         });
}

/// Cut `text` at `mark`: what is behind it, or nothing.
static std::string_view cutAt(std::string_view &text, std::string_view mark) {
  std::size_t at = text.find(mark);
  if (at == text.npos)
    return {};
  std::string_view rest = text.substr(at + mark.size());
  text = text.substr(0, at);
  return rest;
}

/// How many types an instruction has to name for an operand.
static std::size_t typesFor(OperandRule::TypeOf typeOf) {
  using TypeOf = OperandRule::TypeOf;
  if (typeOf == TypeOf::given || typeOf == TypeOf::any)
    return 0;
  return typeOf == TypeOf::second ? 2 : 1;
}

FormRule Syntax::formOf(std::string_view form) {
  FormRule rule;
  std::string_view operands = cutAt(form, "->");
  std::string_view takes = cutAt(form, ",");
  for (std::string_view one : split(form, ' ')) {
    rule.needs.push_back(wordsOf(one, rule));
    rule.takes |= rule.needs.back();
  }
  rule.takes |= wordsOf(takes, rule);
  for (std::string_view token : split(operands, ' ')) {
    rule.operands.push_back(operandOf(token));
    rule.types = std::max(rule.types, typesFor(rule.operands.back().typeOf));
  }
  return rule;
}

Syntax::Syntax(const char *forms) {
  for (std::string_view form : split(forms, ';'))
    rules_.push_back(formOf(form));
  if (rules_.empty()) // an opcode that stands alone
    rules_.emplace_back();
}

} // namespace kiln::sim
