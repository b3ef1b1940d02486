// problem: what a GEMM computes, as words.
#include "words.h"

#include <kiln/kernels/gemm.h>

namespace kiln {

using namespace gemm_kernel;

static constexpr std::pair<GemmLayout, std::string_view> kLayouts[] = {
    {GemmLayout::tn, "tn"},
    {GemmLayout::nn, "nn"},
    {GemmLayout::nt, "nt"},
    {GemmLayout::tt, "tt"}};

static constexpr std::pair<GemmBias, std::string_view> kBiases[] = {
    {GemmBias::none, "none"},
    {GemmBias::row, "row"},
    {GemmBias::column, "column"}};

static constexpr std::pair<Activation, std::string_view> kActivations[] = {
    {Activation::none, "none"},
    {Activation::relu, "relu"},
    {Activation::gelu, "gelu"},
    {Activation::silu, "silu"}};

/// Whether D is column-major.
static constexpr std::pair<bool, std::string_view> kMajors[] = {
    {false, "row"}, {true, "column"}};

static constexpr std::pair<std::optional<Dim> GemmProblem::*, std::string_view>
    kLeading[] = {{&GemmProblem::lda, "lda"},
                  {&GemmProblem::ldb, "ldb"},
                  {&GemmProblem::ldc, "ldc"},
                  {&GemmProblem::ldd, "ldd"}};
static constexpr std::pair<std::optional<Dim> GemmProblem::*, std::string_view>
    kBatchStrides[] = {{&GemmProblem::batch_stride_a, "stride-a"},
                       {&GemmProblem::batch_stride_b, "stride-b"},
                       {&GemmProblem::batch_stride_c, "stride-c"},
                       {&GemmProblem::batch_stride_d, "stride-d"}};

static constexpr const char *kKnown =
    "a problem is MxNxK, then a type, -> and a type, a layout (tn, nn, nt, "
    "tt), alpha, beta, and batch, acc, lda, ldb, ldc, ldd, stride-a, stride-b, "
    "stride-c, stride-d, d, bias, act or scales with = and a value";

std::string_view name(GemmLayout layout) { return name_in(kLayouts, layout); }
GemmLayout parse_gemm_layout(std::string_view text) {
  return parse_in(kLayouts, text, "layout");
}
std::string_view name(GemmBias bias) { return name_in(kBiases, bias); }
GemmBias parse_gemm_bias(std::string_view text) {
  return parse_in(kBiases, text, "bias");
}
std::string_view name(Activation act) { return name_in(kActivations, act); }
Activation parse_activation(std::string_view text) {
  return parse_in(kActivations, text, "activation");
}

Type GemmProblem::accumulator() const {
  if (accumulate)
    return *accumulate;
  return is_float(type) ? Type::f32 : Type::i32;
}

Dim GemmProblem::stride_a() const {
  return lda.value_or(a_is_k_major() ? k : m);
}
Dim GemmProblem::stride_b() const {
  return ldb.value_or(b_is_k_major() ? k : n);
}
Dim GemmProblem::stride_c() const {
  return ldc.value_or(is_d_column_major ? m : n);
}
Dim GemmProblem::stride_d() const {
  return ldd.value_or(is_d_column_major ? m : n);
}

Dim GemmProblem::product_stride_a() const {
  return batch_stride_a.value_or((a_is_k_major() ? m : k) * stride_a());
}
Dim GemmProblem::product_stride_b() const {
  return batch_stride_b.value_or((b_is_k_major() ? n : k) * stride_b());
}
Dim GemmProblem::product_stride_c() const {
  return batch_stride_c.value_or((is_d_column_major ? n : m) * stride_c());
}
Dim GemmProblem::product_stride_d() const {
  return batch_stride_d.value_or((is_d_column_major ? n : m) * stride_d());
}

/// A dimension among words: in parentheses where an x or a space is in it.
static std::string text_of(const Dim &dim) {
  std::string text = dim.to_string();
  bool is_one_word = text.find_first_of("x ") == std::string::npos;
  return is_one_word ? text : fmt::format("({})", text);
}

static Dim parse_dim(std::string text, std::string_view what, int least = 1) {
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

std::string GemmProblem::to_string() const {
  GemmProblem usual;
  std::string text =
      fmt::format("{}x{}x{} {} -> {} {}", text_of(m), text_of(n), text_of(k),
                  name(type), name(out), name(layout));
  if (!(batch == usual.batch))
    text += fmt::format(" batch={}", text_of(batch));
  if (accumulate)
    text += fmt::format(" acc={}", name(*accumulate));
  for (const auto &[field, word] : kLeading)
    if (this->*field)
      text += fmt::format(" {}={}", word, text_of(*(this->*field)));
  for (const auto &[field, word] : kBatchStrides)
    if (this->*field)
      text += fmt::format(" {}={}", word, text_of(*(this->*field)));
  if (is_d_column_major)
    text += " d=column";
  if (has_alpha)
    text += " alpha";
  if (has_beta)
    text += " beta";
  if (bias != GemmBias::none)
    text += fmt::format(" bias={}", name(bias));
  if (act != Activation::none)
    text += fmt::format(" act={}", name(act));
  if (scaling != Scaling::none)
    text += fmt::format(" scales={}", name(scaling));
  return text;
}

/// Set the field that "key=value" or a flag names; false where none has it.
static bool set_field(GemmProblem &problem, const std::string &key,
                      const std::string &value) {
  for (const auto &[field, word] : kLeading)
    if (key == word) {
      problem.*field = parse_dim(value, word);
      return true;
    }
  for (const auto &[field, word] : kBatchStrides)
    if (key == word) {
      problem.*field = parse_dim(value, word, 0);
      return true;
    }
  if (key == "batch")
    problem.batch = parse_dim(value, key);
  else if (key == "acc")
    problem.accumulate = parse_type(value);
  else if (key == "d")
    problem.is_d_column_major = parse_in(kMajors, value, "layout of D");
  else if (key == "alpha" && value.empty())
    problem.has_alpha = true;
  else if (key == "beta" && value.empty())
    problem.has_beta = true;
  else if (key == "bias")
    problem.bias = parse_gemm_bias(value);
  else if (key == "act")
    problem.act = parse_activation(value);
  else if (key == "scales")
    problem.scaling = parse_scaling(value);
  else
    return false;
  return true;
}

/// A type, where the word is one.
static std::optional<Type> find_type(const std::string &word) {
  try {
    return parse_type(word);
  } catch (const UserError &) {
    return std::nullopt;
  }
}

GemmProblem GemmProblem::parse(const std::string &text) {
  std::vector<std::string> words = split(text, ' ');
  std::vector<std::string> sizes =
      words.empty() ? words : split(words.front(), 'x');
  if (sizes.size() != 3)
    throw UserError(
        fmt::format("'{}' is not a valid problem: it must begin with MxNxK, "
                    "for example 4096x4096x1024",
                    text));
  GemmProblem problem;
  problem.m = parse_dim(sizes[0], "M");
  problem.n = parse_dim(sizes[1], "N");
  problem.k = parse_dim(sizes[2], "K");
  for (std::size_t i = 1; i < words.size(); ++i) {
    auto [key, value] = key_value(words[i]);
    if (words[i] == "->")
      problem.out = parse_type(++i < words.size() ? words[i] : "");
    else if (has_word(kLayouts, words[i]))
      problem.layout = parse_gemm_layout(words[i]);
    else if (std::optional<Type> type = find_type(words[i]))
      problem.type = *type;
    else if (!set_field(problem, key, value))
      throw UserError(
          fmt::format("'{}' is not a word of a problem: {}", words[i], kKnown));
  }
  return problem;
}

} // namespace kiln
