// problem_fields: what a GEMM computes, as words: a row for each field.
#include "checks.h"
#include "fields/columns.h"
#include "fields/field_json.h"

#include <kiln/kernels/gemm.h>

namespace kiln {

using namespace fields;
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

static constexpr RecordWords kProblem{
    .what = "problem", .shape = "MxNxK", .example = "4096x4096x1024"};

using P = GemmProblem;
using D = DeviceDescription;

/// "_lda_1032"; none where it is left out.
static std::string stride_name(std::string_view word,
                               const std::optional<Dim> &stride) {
  return stride ? fmt::format("_{}_{}", word, in_name(*stride, word)) : "";
}

/// "_relu" where that is not the usual one.
static std::string suffix(bool is_there, std::string_view name) {
  return is_there ? fmt::format("_{}", name) : "";
}

/// The sums' type, where it is not that of such products.
static std::string accumulator_name(const P &problem) {
  P usual = problem;
  usual.accumulate.reset();
  return suffix(problem.accumulator() != usual.accumulator(),
                fmt::format("acc_{}", name(problem.accumulator())));
}

// In the order of kernels' names.
static constexpr Field<P> kProblemFields[] = {
    {.key = "m",
     .help = "rows of A and D",
     .form = FieldForm::size,
     .label = "M",
     .taken = FieldOption::command,
     .value = "N",
     .get = get_word<&P::m>,
     .set = set_dim<&P::m>,
     .in_name = [](const P &p) { return "_" + in_name(p.m, "m"); },
     .check = [](const P &p, const D &) { check_dim("M", p.m); }},
    {.key = "n",
     .help = "columns of B and D",
     .form = FieldForm::size,
     .label = "N",
     .taken = FieldOption::command,
     .value = "N",
     .get = get_word<&P::n>,
     .set = set_dim<&P::n>,
     .in_name = [](const P &p) { return "x" + in_name(p.n, "n"); },
     .check = [](const P &p, const D &) { check_dim("N", p.n); }},
    {.key = "k",
     .help = "columns of A and rows of B",
     .form = FieldForm::size,
     .label = "K",
     .taken = FieldOption::command,
     .value = "N",
     .get = get_word<&P::k>,
     .set = set_dim<&P::k>,
     .in_name = [](const P &p) { return "x" + in_name(p.k, "k"); },
     .check = [](const P &p, const D &) { check_dim("K", p.k); }},
    {.key = "layout",
     .help = "of A, then B: t row-major, n column-major",
     .form = FieldForm::word,
     .is_always_said = true,
     .get = get_choice<&P::layout, kLayouts>,
     .set = set_choice<&P::layout, kLayouts>,
     .words = words_in<kLayouts>,
     .in_name =
         [](const P &p) {
           return suffix(p.layout != GemmLayout::tt, name(p.layout));
         },
     .check = check_layout},
    {.key = "type",
     .help = "of A and B: f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, i8, "
             "u8",
     .form = FieldForm::type,
     .is_always_said = true,
     .value = "TYPE",
     .get = get_word<&P::type>,
     .set = set_type<&P::type>,
     .in_name =
         [](const P &p) { return suffix(p.type != Type::f16, name(p.type)); },
     .check = check_type},
    {.key = "out",
     .help = "type of C and D: f32, f16, bf16, e4m3, i32",
     .form = FieldForm::result,
     .is_always_said = true,
     .value = "TYPE",
     .get = get_word<&P::out>,
     .set = set_type<&P::out>,
     .in_name =
         [](const P &p) {
           return suffix(p.out != Type::f32,
                         fmt::format("out_{}", name(p.out)));
         },
     .check = check_out},
    {.key = "batch",
     .help = "GEMMs of a batch",
     .value = "N",
     .get = get_word<&P::batch>,
     .set = set_dim<&P::batch>,
     .in_name =
         [](const P &p) {
           return suffix(p.batch != Dim(1),
                         "batch_" + in_name(p.batch, "batch"));
         },
     .check = [](const P &p, const D &) { check_dim("batch", p.batch); }},
    {.key = "acc",
     .help = "type of the accumulators: f32, f16, i32",
     .option = "accumulate",
     .value = "TYPE",
     .get = get_word<&P::accumulate>,
     .set = set_type<&P::accumulate>,
     .in_name = accumulator_name,
     .check = check_accumulator},
    {.key = "lda",
     .help = "elements from one row (column) of A to the next",
     .value = "N",
     .get = get_word<&P::lda>,
     .set = set_dim<&P::lda>,
     .in_name = [](const P &p) { return stride_name("lda", p.lda); },
     .check = check_a},
    {.key = "ldb",
     .help = "the same of B",
     .value = "N",
     .get = get_word<&P::ldb>,
     .set = set_dim<&P::ldb>,
     .in_name = [](const P &p) { return stride_name("ldb", p.ldb); },
     .check = check_b},
    {.key = "ldc",
     .help = "the same of C",
     .value = "N",
     .get = get_word<&P::ldc>,
     .set = set_dim<&P::ldc>,
     .in_name = [](const P &p) { return stride_name("ldc", p.ldc); },
     .check = check_c},
    {.key = "ldd",
     .help = "the same of D",
     .value = "N",
     .get = get_word<&P::ldd>,
     .set = set_dim<&P::ldd>,
     .in_name = [](const P &p) { return stride_name("ldd", p.ldd); },
     .check = check_d},
    {.key = "stride-a",
     .help = "elements from one product's A to the next; 0: one for all",
     .value = "N",
     .get = get_word<&P::batch_stride_a>,
     .set = set_dim<&P::batch_stride_a, 0>,
     .in_name = [](const P &p) { return stride_name("sa", p.batch_stride_a); }},
    {.key = "stride-b",
     .help = "the same of B",
     .value = "N",
     .get = get_word<&P::batch_stride_b>,
     .set = set_dim<&P::batch_stride_b, 0>,
     .in_name = [](const P &p) { return stride_name("sb", p.batch_stride_b); }},
    {.key = "stride-c",
     .help = "the same of C",
     .value = "N",
     .get = get_word<&P::batch_stride_c>,
     .set = set_dim<&P::batch_stride_c, 0>,
     .in_name = [](const P &p) { return stride_name("sc", p.batch_stride_c); }},
    {.key = "stride-d",
     .help = "the same of D, not 0",
     .value = "N",
     .get = get_word<&P::batch_stride_d>,
     .set = set_dim<&P::batch_stride_d, 0>,
     .in_name = [](const P &p) { return stride_name("sd", p.batch_stride_d); },
     .check = check_products},
    {.key = "d",
     .help = "of C and D: row or column",
     .option = "layout-d",
     .label = "layout of D",
     .get = get_choice<&P::is_d_column_major, kMajors>,
     .set = set_choice<&P::is_d_column_major, kMajors>,
     .words = words_in<kMajors>,
     .in_name = [](const P &p) { return suffix(p.is_d_column_major, "dcol"); }},
    {.key = "alpha",
     .help = "a number A * B is multiplied by",
     .form = FieldForm::flag,
     .taken = FieldOption::command,
     .get = get_flag<&P::has_alpha>,
     .set = set_flag<&P::has_alpha>,
     .in_name = [](const P &p) { return suffix(p.has_alpha, "alpha"); }},
    {.key = "beta",
     .help = "a number C is multiplied by, and added",
     .form = FieldForm::flag,
     .taken = FieldOption::command,
     .get = get_flag<&P::has_beta>,
     .set = set_flag<&P::has_beta>,
     .in_name = [](const P &p) { return suffix(p.has_beta, "beta"); }},
    {.key = "bias",
     .help = "add a vector: a number per row, or per column",
     .get = get_choice<&P::bias, kBiases>,
     .set = set_choice<&P::bias, kBiases>,
     .words = words_in<kBiases>,
     .in_name =
         [](const P &p) {
           return suffix(p.bias != GemmBias::none,
                         fmt::format("bias_{}", name(p.bias)));
         }},
    {.key = "act",
     .help = "relu, gelu or silu, last",
     .label = "activation",
     .get = get_choice<&P::act, kActivations>,
     .set = set_choice<&P::act, kActivations>,
     .words = words_in<kActivations>,
     .in_name =
         [](const P &p) {
           return suffix(p.act != Activation::none, name(p.act));
         }},
    {.key = "scales",
     .help = "scale factors of A and B: none, tensor, blocks, mx, nv",
     .value = "WORD",
     .get = get_scaling<&P::scaling>,
     .set = set_scaling<&P::scaling>,
     .in_name =
         [](const P &p) {
           return suffix(p.scaling != Scaling::none,
                         fmt::format("scales_{}", name(p.scaling)));
         },
     .check = check_scaling},
};

std::span<const Field<GemmProblem>> GemmProblem::fields() {
  return kProblemFields;
}
std::string GemmProblem::to_string() const { return text_of(*this); }
GemmProblem GemmProblem::parse(const std::string &text) {
  return parse_text<GemmProblem>(text, kProblem);
}
GemmProblem GemmProblem::with(const std::string &text) const {
  return parse_text(text, kProblem, *this);
}
std::string GemmProblem::to_json() const { return json_of(*this); }
GemmProblem GemmProblem::from_json(const std::string &text) {
  return parse_json<GemmProblem>(text, kProblem);
}

} // namespace kiln
