// problem_fields: what attention is asked for, and how it is divided, as words:
// a row for each field.
#include "fields/columns.h"
#include "fields/field_json.h"

#include <kiln/kernels/attention.h>

#include <cmath>

namespace kiln {

using namespace fields;

static constexpr std::pair<AttentionLayout, std::string_view>
    kAttentionLayouts[] = {{AttentionLayout::bhsd, "bhsd"},
                           {AttentionLayout::bshd, "bshd"}};

std::string_view name(AttentionLayout layout) {
  return name_in(kAttentionLayouts, layout);
}

static constexpr RecordWords kAttentionProblem{
    .what = "problem",
    .shape = "SEQUENCESxHEADSxKEY_HEADSxQUERIESxKEYSxHEAD_DIM",
    .example = "4x16x16x4096x4096x128"};

template <typename... Args>
[[noreturn]] static void refuse_attention(fmt::format_string<Args...> format,
                                          Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

static void check_count(const char *what, int count) {
  if (count < 1)
    refuse_attention("attention with {} {}; at least 1 is needed", count, what);
}

/// Throw where rows of all heads are too many to count.
static void check_rows(const AttentionProblem &p, int heads, int rows) {
  if (double(p.batch) * heads * rows > double(1 << 30))
    refuse_attention("attention of {} sequences with {} heads of {} queries "
                     "and {} keys is too large to count in 32 bits",
                     p.batch, p.heads, p.queries, p.keys);
}

static void check_kv_heads(const AttentionProblem &p,
                           const DeviceDescription &) {
  check_count("key heads", p.kv_heads);
  if (p.heads % p.kv_heads)
    refuse_attention("{} heads cannot share {} key heads evenly; use a divisor "
                     "of {}",
                     p.heads, p.kv_heads, p.heads);
}

static void check_queries(const AttentionProblem &p,
                          const DeviceDescription &) {
  check_count("queries", p.queries);
  check_rows(p, p.heads, p.queries);
}

static void check_keys(const AttentionProblem &p, const DeviceDescription &) {
  check_count("keys", p.keys);
  check_rows(p, p.kv_heads, p.keys);
}

static void check_head_dim(const AttentionProblem &p,
                           const DeviceDescription &) {
  if (p.head_dim != 64 && p.head_dim != 128 && p.head_dim != 256)
    refuse_attention("a head dimension of {}; attention takes 64, 128 and 256",
                     p.head_dim);
}

static void check_attention_type(const AttentionProblem &p,
                                 const DeviceDescription &) {
  if (p.type != Type::bf16 && p.type != Type::f16)
    refuse_attention("attention of bf16 or f16, not of {}", name(p.type));
}

static void check_window(const AttentionProblem &p, const DeviceDescription &) {
  if (p.is_causal && p.window_right > 0)
    refuse_attention("a causal mask with a window of {} keys behind a query; "
                     "use one of them",
                     p.window_right);
  if (p.window_left < -1 || p.window_right < -1)
    refuse_attention("a window of {} keys before and {} behind a query; use 0 "
                     "or more, or -1 for all",
                     p.window_left, p.window_right);
}

static void check_soft_cap(const AttentionProblem &p,
                           const DeviceDescription &) {
  if (!(p.soft_cap >= 0) || std::isinf(p.soft_cap))
    refuse_attention("scores capped at {}; use a number greater than 0, or 0 "
                     "for none",
                     p.soft_cap);
}

static void check_totals(const AttentionProblem &p, const DeviceDescription &) {
  if (p.is_packed() && (p.total_queries < p.queries || p.total_keys < p.keys))
    refuse_attention("packed sequences of {} queries and {} keys in all; the "
                     "longest ones have {} and {}",
                     p.total_queries, p.total_keys, p.queries, p.keys);
}

static void check_scale(const AttentionProblem &p, const DeviceDescription &) {
  if (!(p.scale > 0) || std::isinf(p.scale))
    refuse_attention("scores scaled by {}; use a number greater than 0",
                     p.scale);
}

/// The scale of the scores; 0 stands for the usual one.
static double scale_of(const AttentionProblem &p) {
  return p.scale == 0 ? 1 / std::sqrt(static_cast<double>(p.head_dim))
                      : p.scale;
}

/// "512" or "512,0"; the end of a causal window needs no word.
static std::string get_window(const AttentionProblem &p) {
  bool has_end = p.window_right > 0 || (p.window_right == 0 && !p.is_causal);
  return has_end ? fmt::format("{},{}", p.window_left, p.window_right)
                 : std::to_string(p.window_left);
}

static void set_window(AttentionProblem &p, std::string_view label,
                       const std::string &text) {
  std::vector<std::string> sides = split(text, ',');
  if (sides.size() > 2)
    refuse_attention("{} is '{}'; write one number or two, for example 512,0",
                     label, text);
  p.window_left = parse_number(sides[0], label, -1);
  p.window_right = sides.size() == 2 ? parse_number(sides[1], label, -1) : -1;
}

/// "_causal", "_window512to0"
static std::string mask_name(const AttentionProblem &p) {
  auto side = [](int keys) { return keys < 0 ? "all" : std::to_string(keys); };
  if (p.window_right == 0 && p.window_left < 0)
    return "_causal";
  if (p.window_left < 0 && p.window_right < 0)
    return "";
  return fmt::format("_window{}to{}", side(p.window_left),
                     side(p.window_right));
}

using A = AttentionProblem;

// In the order of kernels' names.
static constexpr Field<A> kAttentionFields[] = {
    {.key = "batch",
     .help = "sequences",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::batch>,
     .set = set_number<&A::batch>,
     .in_name = [](const A &p) { return fmt::format("_{}", p.batch); },
     .check =
         [](const A &p, const DeviceDescription &) {
           check_count("sequences", p.batch);
         }},
    {.key = "heads",
     .help = "heads",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::heads>,
     .set = set_number<&A::heads>,
     .in_name = [](const A &p) { return fmt::format("x{}", p.heads); },
     .check = [](const A &p,
                 const DeviceDescription &) { check_count("heads", p.heads); }},
    {.key = "kv-heads",
     .help = "key heads",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::kv_heads>,
     .set = set_number<&A::kv_heads>,
     .in_name = [](const A &p) { return fmt::format("x{}", p.kv_heads); },
     .check = check_kv_heads},
    {.key = "queries",
     .help = "queries",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::queries>,
     .set = set_number<&A::queries>,
     .in_name = [](const A &p) { return fmt::format("_{}", p.queries); },
     .check = check_queries},
    {.key = "keys",
     .help = "keys",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::keys>,
     .set = set_number<&A::keys>,
     .in_name = [](const A &p) { return fmt::format("x{}", p.keys); },
     .check = check_keys},
    {.key = "head-dim",
     .help = "the head dimension: 64, 128 or 256",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::head_dim>,
     .set = set_number<&A::head_dim>,
     .in_name = [](const A &p) { return fmt::format("_d{}", p.head_dim); },
     .check = check_head_dim},
    {.key = "type",
     .help = "of Q, K, V and O: bf16, f16",
     .form = FieldForm::type,
     .is_always_said = true,
     .value = "TYPE",
     .get = get_word<&A::type>,
     .set = set_type<&A::type>,
     .in_name = [](const A &p) { return fmt::format("_{}", name(p.type)); },
     .check = check_attention_type},
    {.key = "causal",
     .help = "query i sees the keys up to i + keys - queries",
     .form = FieldForm::flag,
     .taken = FieldOption::flag,
     .get = get_flag<&A::is_causal>,
     .set = set_flag<&A::is_causal>},
    {.key = "window",
     .help = "keys that a query sees before its own, and behind it: LEFT or "
             "LEFT,RIGHT; -1: all",
     .value = "LEFT,RIGHT",
     .get = get_window,
     .set = set_window,
     .in_name = mask_name,
     .check = check_window},
    {.key = "soft-cap",
     .help = "scores become C * tanh(score / C); 0: they do not",
     .value = "X",
     .get = get_real<&A::soft_cap>,
     .set = set_real<&A::soft_cap>,
     .in_name = [](const A &p) -> std::string {
       return p.soft_cap ? "_cap" : "";
     },
     .check = check_soft_cap},
    {.key = "total-queries",
     .help = "pack sequences of these numbers of queries, one behind the other",
     .option = "lengths",
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::total_queries>,
     .set = set_number<&A::total_queries>,
     .in_name = [](const A &p) -> std::string {
       return p.is_packed() ? "_packed" : "";
     },
     .check = check_totals},
    {.key = "total-keys",
     .help = "and of these numbers of keys; as many as queries where it is not "
             "given",
     .option = "key-lengths",
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&A::total_keys>,
     .set = set_number<&A::total_keys>},
    {.key = "layout",
     .help = "the slowest dimension first: bhsd or bshd",
     .form = FieldForm::word,
     .get = get_choice<&A::layout, kAttentionLayouts>,
     .set = set_choice<&A::layout, kAttentionLayouts>,
     .words = words_in<kAttentionLayouts>,
     .in_name = [](const A &p) -> std::string {
       return p.layout == AttentionLayout::bshd ? "_bshd" : "";
     }},
    {.key = "scale",
     .help = "of the scores; 0: 1 / sqrt(head dimension)",
     .value = "X",
     .get = [](const A &p) { return fmt::format("{}", scale_of(p)); },
     .set = set_real<&A::scale>,
     .follow = [](A &p) { p.scale = 0; },
     .check = check_scale},
};

std::span<const Field<AttentionProblem>> AttentionProblem::fields() {
  return kAttentionFields;
}
std::string AttentionProblem::to_string() const { return text_of(*this); }
AttentionProblem AttentionProblem::parse(const std::string &text) {
  return parse_text<AttentionProblem>(text, kAttentionProblem);
}
std::string AttentionProblem::to_json() const { return json_of(*this); }
AttentionProblem AttentionProblem::from_json(const std::string &text) {
  return parse_json<AttentionProblem>(text, kAttentionProblem);
}

AttentionProblem AttentionProblem::resolved() const {
  AttentionProblem known = *this;
  if (known.kv_heads == 0)
    known.kv_heads = heads;
  known.scale = scale_of(*this);
  if (is_causal && window_right == -1)
    known.window_right = 0;
  check_fields(known, DeviceDescription::h200());
  return known;
}

} // namespace kiln
