// problem_fields: what a grouped GEMM is asked for, as words: a row for each
// field.
#include "fields/columns.h"
#include "fields/field_json.h"

#include <kiln/kernels/grouped_gemm.h>

namespace kiln {

using namespace fields;

static constexpr std::pair<GroupLayout, std::string_view> kGroupLayouts[] = {
    {GroupLayout::contiguous, "contiguous"}, {GroupLayout::masked, "masked"}};

std::string_view name(GroupLayout layout) {
  return name_in(kGroupLayouts, layout);
}

static constexpr RecordWords kGroupedProblem{.what = "problem",
                                             .shape = "GROUPSxROWSxNxK",
                                             .example = "64x16384x4096x2048"};

template <typename... Args>
[[noreturn]] static void refuse_groups(fmt::format_string<Args...> format,
                                       Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

static void check_groups(const char *what, int count) {
  if (count < 1)
    refuse_groups("a grouped GEMM of {} {}; at least 1 is needed", count, what);
}

/// Throw where rows are too many to count in 32 bits, with a tile beyond the
/// last one.
static void check_group_rows(const GroupedGemmProblem &p, std::int64_t rows) {
  if (rows > (1 << 30))
    refuse_groups("a grouped GEMM of {} groups of {} rows and {} columns is "
                  "too large to count in 32 bits",
                  p.groups, p.rows, p.n);
}

static void check_rows_of_a(const GroupedGemmProblem &p,
                            const DeviceDescription &) {
  check_groups("rows", p.rows);
  check_group_rows(p, p.stored_rows());
}

static void check_rows_of_b(const GroupedGemmProblem &p,
                            const DeviceDescription &) {
  check_groups("columns", p.n);
  check_group_rows(p, p.groups * p.b_rows());
}

static void check_group_k(const GroupedGemmProblem &p,
                          const DeviceDescription &) {
  check_groups("elements along K", p.k);
  int least = 16 / size_bytes(p.type);
  if (p.k % least != 0)
    refuse_groups("a grouped GEMM with K = {}; TMA takes rows of a multiple of "
                  "16 bytes, {} elements of {}",
                  p.k, least, name(p.type));
}

static void check_group_type(const GroupedGemmProblem &p,
                             const DeviceDescription &) {
  if (p.type != Type::bf16 && p.type != Type::f16 && p.type != Type::e4m3)
    refuse_groups("a grouped GEMM of bf16, f16 or e4m3, not of {}",
                  name(p.type));
}

static void check_group_out(const GroupedGemmProblem &p,
                            const DeviceDescription &) {
  bool is_fp8 = p.type == Type::e4m3;
  bool is_half = p.out == Type::bf16 || p.out == Type::f16;
  if (p.out != Type::f32 && !(is_fp8 ? is_half : p.out == p.type))
    refuse_groups("a grouped GEMM of {} gives {} or f32, not {}", name(p.type),
                  is_fp8 ? "bf16, f16" : name(p.type), name(p.out));
}

static void check_group_scales(const GroupedGemmProblem &p,
                               const DeviceDescription &) {
  if (p.scaling != Scaling::none && p.scaling != Scaling::blocks)
    refuse_groups("a grouped GEMM with scales={}; use none or blocks",
                  name(p.scaling));
  if (p.scaling != Scaling::none && p.type != Type::e4m3)
    refuse_groups("factors of blocks of {}; e4m3 has them", name(p.type));
}

using G = GroupedGemmProblem;

// In the order of kernels' names.
static constexpr Field<G> kGroupedFields[] = {
    {.key = "groups",
     .help = "groups",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&G::groups>,
     .set = set_number<&G::groups>,
     .in_name = [](const G &p) { return fmt::format("_{}", p.groups); },
     .check =
         [](const G &p, const DeviceDescription &) {
           check_groups("groups", p.groups);
         }},
    {.key = "rows",
     .help = "rows of each",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&G::rows>,
     .set = set_number<&G::rows>,
     .in_name = [](const G &p) { return fmt::format("x{}", p.rows); },
     .check = check_rows_of_a},
    {.key = "n",
     .help = "N",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&G::n>,
     .set = set_number<&G::n>,
     .in_name = [](const G &p) { return fmt::format("x{}", p.n); },
     .check = check_rows_of_b},
    {.key = "k",
     .help = "K",
     .form = FieldForm::size,
     .taken = FieldOption::command,
     .value = "N",
     .get = get_number<&G::k>,
     .set = set_number<&G::k>,
     .in_name = [](const G &p) { return fmt::format("x{}", p.k); },
     .check = check_group_k},
    {.key = "type",
     .help = "of A and B: bf16, f16, e4m3",
     .form = FieldForm::type,
     .is_always_said = true,
     .value = "TYPE",
     .get = get_word<&G::type>,
     .set = set_type<&G::type>,
     .in_name = [](const G &p) { return fmt::format("_{}", name(p.type)); },
     .check = check_group_type},
    {.key = "out",
     .help = "type of D: that of A and B, or f32; of e4m3 bf16, f16 or f32",
     .form = FieldForm::result,
     .is_always_said = true,
     .value = "TYPE",
     .get = get_word<&G::out>,
     .set = set_type<&G::out>,
     .follow = [](G &p) { p.out = p.type == Type::e4m3 ? Type::bf16 : p.type; },
     .in_name = [](const G &p) { return fmt::format("_{}", name(p.out)); },
     .check = check_group_out},
    {.key = "layout",
     .help = "each group has room for all its rows, and a count",
     .form = FieldForm::word,
     .option = "masked",
     .taken = FieldOption::flag,
     .flag_value = "masked",
     .is_always_said = true,
     .get = get_choice<&G::layout, kGroupLayouts>,
     .set = set_choice<&G::layout, kGroupLayouts>,
     .words = words_in<kGroupLayouts>,
     .in_name = [](const G &p) -> std::string {
       return p.layout == GroupLayout::masked ? "_masked" : "";
     }},
    {.key = "scales",
     .help = "scale factors of 1x128 elements of A and 128x128 of B; of e4m3",
     .taken = FieldOption::flag,
     .flag_value = "blocks",
     .value = "WORD",
     .get = get_scaling<&G::scaling>,
     .set = set_scaling<&G::scaling>,
     .in_name = [](const G &p) -> std::string {
       return p.scaling == Scaling::none ? "" : "_scaled";
     },
     .check = check_group_scales},
    {.key = "swiglu",
     .help = "D = silu(A * gate^T) * (A * up^T), both of N rows in B",
     .form = FieldForm::flag,
     .taken = FieldOption::flag,
     .get = get_flag<&G::is_swiglu>,
     .set = set_flag<&G::is_swiglu>,
     .in_name = [](const G &p) -> std::string {
       return p.is_swiglu ? "_swiglu" : "";
     }},
};

std::span<const Field<GroupedGemmProblem>> GroupedGemmProblem::fields() {
  return kGroupedFields;
}
std::string GroupedGemmProblem::to_string() const { return text_of(*this); }
GroupedGemmProblem GroupedGemmProblem::parse(const std::string &text) {
  return parse_text<GroupedGemmProblem>(text, kGroupedProblem);
}
std::string GroupedGemmProblem::to_json() const { return json_of(*this); }
GroupedGemmProblem GroupedGemmProblem::from_json(const std::string &text) {
  return parse_json<GroupedGemmProblem>(text, kGroupedProblem);
}
void GroupedGemmProblem::check() const {
  check_fields(*this, DeviceDescription::h200());
}

} // namespace kiln
