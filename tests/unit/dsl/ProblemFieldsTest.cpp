// ProblemFields: problems of each kind as text and JSON, there and back, and
// what their tables say.
#include "RandomGemm.h"
#include "RandomProblems.h"

#include "../support/ErrorText.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln {

TEST(ProblemFields, OfGemmThroughJson) {
  RandomGemm random(11);
  for (int i = 0; i < 2000; ++i) {
    GemmProblem problem = random.problem();
    EXPECT_EQ(GemmProblem::from_json(problem.to_json()), problem)
        << problem.to_json();
  }
}

TEST(ProblemFields, OfAttentionThereAndBack) {
  RandomProblems random(12);
  for (int i = 0; i < 2000; ++i) {
    AttentionProblem problem = random.attention(), known = problem.resolved();
    for (const AttentionProblem &one : {problem, known}) {
      SCOPED_TRACE(one.to_string());
      EXPECT_EQ(AttentionProblem::parse(one.to_string()).resolved(), known);
      EXPECT_EQ(AttentionProblem::from_json(one.to_json()).resolved(), known);
    }
    EXPECT_EQ(AttentionProblem::parse(problem.to_string()), problem);
    // What was filled in is not said.
    problem.kv_heads = known.kv_heads;
    EXPECT_EQ(known.to_string(), problem.to_string());
  }
}

TEST(ProblemFields, OfGroupedGemmThereAndBack) {
  RandomProblems random(13);
  for (int i = 0; i < 2000; ++i) {
    GroupedGemmProblem problem = random.grouped();
    problem.check();
    EXPECT_EQ(GroupedGemmProblem::parse(problem.to_string()), problem)
        << problem.to_string();
    EXPECT_EQ(GroupedGemmProblem::from_json(problem.to_json()), problem)
        << problem.to_json();
  }
}

TEST(ProblemFields, OfSchedulesThereAndBack) {
  EXPECT_EQ(AttentionSchedule().to_string(), "");
  AttentionSchedule attention{
      .consumers = 3, .tile_n = 80, .stages = 4, .q_stages = 1};
  EXPECT_EQ(attention.to_string(), "consumers=3 tile-n=80 stages=4 q-stages=1");
  EXPECT_EQ(AttentionSchedule::parse(attention.to_string()), attention);
  GroupedGemmSchedule grouped{.tile_n = 192, .stages = 3, .ctas = 7};
  EXPECT_EQ(grouped.to_string(), "tile-n=192 stages=3 ctas=7");
  EXPECT_EQ(GroupedGemmSchedule::parse(grouped.to_string()), grouped);
}

TEST(ProblemFields, EveryFieldOfAttentionIsInItsText) {
  AttentionProblem problem{.batch = 2,
                           .heads = 6,
                           .kv_heads = 3,
                           .queries = 20,
                           .keys = 30,
                           .head_dim = 64,
                           .type = Type::f16,
                           .scale = 0.5,
                           .layout = AttentionLayout::bshd,
                           .window_left = 7,
                           .window_right = 3,
                           .soft_cap = 20,
                           .total_queries = 40,
                           .total_keys = 60};
  EXPECT_EQ(problem.to_string(),
            "2x6x3x20x30x64 f16 bshd window=7,3 soft-cap=20 total-queries=40 "
            "total-keys=60 scale=0.5");
  EXPECT_EQ(problem.to_json(),
            R"({"batch":2,"heads":6,"kv-heads":3,"queries":20,"keys":30,)"
            R"("head-dim":64,"type":"f16","layout":"bshd","window":"7,3",)"
            R"("soft-cap":20,"total-queries":40,"total-keys":60,"scale":0.5})");
  problem = {.window_left = -1, .window_right = 3};
  EXPECT_EQ(problem.to_string(), "1x1x0x1x1x128 bf16 window=-1,3");
  // A causal window ends at the query without a word.
  problem = {.is_causal = true, .window_left = 5, .window_right = 0};
  EXPECT_EQ(problem.to_string(), "1x1x0x1x1x128 bf16 causal window=5");
}

TEST(ProblemFields, EveryFieldOfAGroupedGemmIsInItsText) {
  GroupedGemmProblem problem{.groups = 2,
                             .rows = 3,
                             .n = 4,
                             .k = 16,
                             .type = Type::e4m3,
                             .out = Type::f32,
                             .layout = GroupLayout::masked,
                             .scaling = Scaling::blocks,
                             .is_swiglu = true};
  EXPECT_EQ(problem.to_string(),
            "2x3x4x16 e4m3 -> f32 masked scales=blocks swiglu");
  EXPECT_EQ(problem.to_json(),
            R"({"groups":2,"rows":3,"n":4,"k":16,"type":"e4m3","out":"f32",)"
            R"("layout":"masked","scales":"blocks","swiglu":true})");
}

TEST(ProblemFields, WhatIsLeftOutFollows) {
  EXPECT_EQ(GroupedGemmProblem::parse("1x2x3x8 f16").out, Type::f16);
  EXPECT_EQ(GroupedGemmProblem::parse("1x2x3x16 e4m3").out, Type::bf16);
  EXPECT_EQ(GroupedGemmProblem::parse("1x2x3x8 f16 -> f32").out, Type::f32);
  EXPECT_EQ(GroupedGemmProblem::from_json(
                R"({"groups": 1, "rows": 2, "n": 3, "k": 8, "type": "f16"})")
                .out,
            Type::f16);
  EXPECT_EQ(AttentionProblem::parse("1x1x1x1x1x64 scale=0").scale, 0);
}

TEST(ProblemFields, ATextOverAProblem) {
  GemmProblem usual{.type = Type::bf16, .lda = 16, .bias = GemmBias::row};
  EXPECT_EQ(usual.with("8x16x32 lda=24 act=relu"),
            (GemmProblem{.m = 8,
                         .n = 16,
                         .k = 32,
                         .type = Type::bf16,
                         .lda = 24,
                         .bias = GemmBias::row,
                         .act = Activation::relu}));
  EXPECT_EQ(
      GemmSchedule{.stages = 3}.with("pingpong cluster=2x1"),
      (GemmSchedule{.kind = GemmKind::pingpong, .stages = 3, .cluster_m = 2}));
}

TEST(ProblemFields, TextsThatAreRefused) {
  auto attention = [](const char *text) {
    return errorText([&] { AttentionProblem::parse(text); });
  };
  auto grouped = [](const char *text) {
    return errorText([&] { GroupedGemmProblem::parse(text); });
  };
  EXPECT_EQ(attention("4x16x4096x128 bf16"),
            "'4x16x4096x128 bf16' is not a valid problem: it must begin with "
            "SEQUENCESxHEADSxKEY_HEADSxQUERIESxKEYSxHEAD_DIM, for example "
            "4x16x16x4096x4096x128");
  EXPECT_EQ(attention("1x1x1x1x1x64 fast"),
            "unknown problem field 'fast': a problem is "
            "SEQUENCESxHEADSxKEY_HEADSxQUERIESxKEYSxHEAD_DIM, then a type, a "
            "layout (bhsd, bshd), causal, and window, soft-cap, total-queries, "
            "total-keys or scale with = and a value");
  EXPECT_EQ(attention("1x1x1x1x1x64 -> f32"),
            "unknown problem field '->': a problem is "
            "SEQUENCESxHEADSxKEY_HEADSxQUERIESxKEYSxHEAD_DIM, then a type, a "
            "layout (bhsd, bshd), causal, and window, soft-cap, total-queries, "
            "total-keys or scale with = and a value");
  EXPECT_EQ(attention("1x-1x1x1x1x64"),
            "heads is '-1'; it must be a whole number from 0 to 2147483647");
  EXPECT_EQ(attention("1x1x1x1x1x64 window=1,2,3"),
            "window is '1,2,3'; write one number or two, for example 512,0");
  EXPECT_EQ(attention("1x1x1x1x1x64 window=-2"),
            "window is '-2'; it must be a whole number from -1 to 2147483647");
  EXPECT_EQ(attention("1x1x1x1x1x64 soft-cap=warm"),
            "soft-cap is 'warm'; it must be a number");
  EXPECT_EQ(attention("1x1x1x1x1x64 scale=nan"),
            "scale is 'nan'; it must be a number");
  EXPECT_EQ(attention("1x1x1x1x1x64 causal=maybe"),
            "'maybe' is not a valid value of causal; use one of on, off");
  EXPECT_EQ(grouped("1x2x3"),
            "'1x2x3' is not a valid problem: it must begin with "
            "GROUPSxROWSxNxK, for example 64x16384x4096x2048");
  EXPECT_EQ(
      grouped("1x2x3x8 fast"),
      "unknown problem field 'fast': a problem is GROUPSxROWSxNxK, "
      "then a type, -> and a type, a layout (contiguous, masked), swiglu, "
      "and scales with = and a value");
  EXPECT_EQ(grouped("1x2x3x8 scales=both"),
            "'both' is not a valid scaling; use one of none, tensor, blocks, "
            "mx, nv");
  EXPECT_EQ(errorText([] { AttentionSchedule::parse("fast"); }),
            "unknown schedule field 'fast': a schedule is consumers, "
            "tile-n, stages or q-stages with = and a value");
  EXPECT_EQ(errorText([] { GroupedGemmSchedule::parse("ctas=x"); }),
            "ctas is 'x'; it must be a whole number from 0 to 2147483647");
}

TEST(ProblemFields, JsonThatIsRefused) {
  auto refused = [](const char *text) {
    return errorText([&] { GroupedGemmProblem::from_json(text); });
  };
  for (const char *text : {"", "[1]", "{\"groups\": 1", "7"})
    EXPECT_EQ(refused(text), std::string("'") + text +
                                 "' is not the JSON of a problem; it must be "
                                 "an object, for example {\"type\": \"bf16\"}");
  EXPECT_EQ(refused(R"({"groups": 1, "rows": 2, "n": 3})"),
            "the JSON of a problem has no \"k\"");
  EXPECT_EQ(refused(R"({"groups": 1, "rows": 2, "n": 3, "k": 8, "m": 4})"),
            "\"m\" is not a field of a problem; it has groups, rows, n, k, "
            "type, out, layout, scales, swiglu");
  EXPECT_EQ(refused(R"({"groups": true, "rows": 2, "n": 3, "k": 8})"),
            "groups is true; it must be a number or a string");
  EXPECT_EQ(refused(R"({"groups": 1, "rows": 2, "n": 3, "k": 8, "swiglu": 1})"),
            "swiglu is 1; it must be true or false");
  EXPECT_EQ(refused(R"({"groups": 1.5, "rows": 2, "n": 3, "k": 8})"),
            "groups is '1.5'; it must be a whole number from 0 to 2147483647");
  EXPECT_EQ(refused(R"({"groups": 1, "rows": 2, "n": 3, "k": 8, "type": 16})")
                .find("there is no type \"16\""),
            0u);
  EXPECT_EQ(errorText([] { GemmProblem::from_json(R"({"m": 0})"); }),
            "M is '0'; it must be a whole number from 1 on, or the name of an "
            "argument");
}

/// A row with a value it cannot have is refused by this row.
template <typename Record>
static std::string refusal(const char *key, const Record &record) {
  for (const Field<Record> &field : Record::fields())
    if (field.key == key && field.check)
      return errorText([&] { field.check(record, DeviceDescription::h200()); });
  return "there is no such check";
}

TEST(ProblemFields, ChecksOfGemm) {
  using P = GemmProblem;
  EXPECT_EQ(refusal("m", P{.m = 0}), "M is 0; it must be at least 1");
  EXPECT_EQ(refusal("n", P{.n = -8}), "N is -8; it must be at least 1");
  EXPECT_EQ(refusal("k", P{.k = std::int64_t{1} << 40}),
            "K is 1099511627776; it must be at most 2147483647");
  EXPECT_EQ(refusal("batch", P{.batch = Dim::argument("b") + 1}),
            "batch is add(b, 1); a runtime dimension is one argument");
  EXPECT_EQ(refusal("type", P{.type = Type::f64}),
            "gemm multiplies f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, i8 "
            "or u8, not f64");
  EXPECT_EQ(refusal("out", P{.out = Type::e5m2}),
            "gemm writes f32, f16, bf16, e4m3 or i32, not e5m2");
  EXPECT_EQ(refusal("layout", P{.type = Type::i8, .layout = GemmLayout::nt}),
            "i8 has no layout nt; wgmma takes it with K contiguous alone: tn");
  EXPECT_EQ(refusal("acc", P{.accumulate = Type::i32}),
            "f16 products accumulate in f32 or f16, not i32");
  EXPECT_EQ(refusal("lda", P{.lda = 8}),
            "the rows of A are 1024 elements long and 8 apart; they would "
            "overlap");
  EXPECT_EQ(refusal("ldb", P{.ldb = 8}),
            "the rows of B are 1024 elements long and 8 apart; they would "
            "overlap");
  EXPECT_EQ(refusal("ldc", P{.ldc = 8, .has_beta = true}),
            "the rows of C are 1024 elements long and 8 apart; they would "
            "overlap");
  EXPECT_NO_THROW(fit({.ldc = 8}, {})); // there is no C
  EXPECT_EQ(refusal("ldd", P{.ldd = 8}),
            "the rows of D are 1024 elements long and 8 apart; they would "
            "overlap");
  EXPECT_EQ(refusal("stride-d", P{.batch = 2, .batch_stride_d = 0}),
            "the matrices of D are 0 elements apart; they would overlap: use "
            "1048576 or more; or, side by side, 1024 with ldd=2048 or more");
  EXPECT_EQ(refusal("scales", P{.scaling = Scaling::tensor}),
            "scales=tensor of f16; e4m3 and e5m2 have them");
}

TEST(ProblemFields, ChecksOfAttention) {
  using P = AttentionProblem;
  EXPECT_EQ(refusal("batch", P{.batch = 0}),
            "attention with 0 sequences; at least 1 is needed");
  EXPECT_EQ(refusal("heads", P{.heads = 0}),
            "attention with 0 heads; at least 1 is needed");
  EXPECT_EQ(refusal("kv-heads", P{.heads = 6, .kv_heads = 4}),
            "6 heads cannot share 4 key heads evenly; use a divisor of 6");
  EXPECT_EQ(refusal("queries", P{.queries = 0}),
            "attention with 0 queries; at least 1 is needed");
  EXPECT_EQ(refusal("keys", P{.batch = 1 << 20, .kv_heads = 1, .keys = 1025}),
            "attention of 1048576 sequences with 1 heads of 1 queries and 1025 "
            "keys is too large to count in 32 bits");
  EXPECT_EQ(refusal("head-dim", P{.head_dim = 96}),
            "a head dimension of 96; attention takes 64, 128 and 256");
  EXPECT_EQ(refusal("type", P{.type = Type::f32}),
            "attention of bf16 or f16, not of f32");
  EXPECT_EQ(refusal("window", P{.window_left = -2}),
            "a window of -2 keys before and -1 behind a query; use 0 or more, "
            "or -1 for all");
  EXPECT_EQ(refusal("soft-cap", P{.soft_cap = -1}),
            "scores capped at -1; use a number greater than 0, or 0 for none");
  EXPECT_EQ(refusal("total-queries", P{.queries = 20, .total_queries = 19}),
            "packed sequences of 19 queries and 0 keys in all; the longest "
            "ones have 20 and 1");
  EXPECT_EQ(refusal("scale", P{.scale = -1}),
            "scores scaled by -1; use a number greater than 0");
}

TEST(ProblemFields, ChecksOfGroupedGemm) {
  using P = GroupedGemmProblem;
  EXPECT_EQ(refusal("groups", P{.groups = 0}),
            "a grouped GEMM of 0 groups; at least 1 is needed");
  EXPECT_EQ(refusal("rows", P{.rows = 0}),
            "a grouped GEMM of 0 rows; at least 1 is needed");
  EXPECT_EQ(refusal("n", P{.groups = 1 << 20, .n = 1025}),
            "a grouped GEMM of 1048576 groups of 1 rows and 1025 columns is "
            "too large to count in 32 bits");
  EXPECT_EQ(refusal("k", P{.k = 20}),
            "a grouped GEMM with K = 20; TMA takes rows of a multiple of 16 "
            "bytes, 8 elements of bf16");
  EXPECT_EQ(refusal("type", P{.type = Type::f32}),
            "a grouped GEMM of bf16, f16 or e4m3, not of f32");
  EXPECT_EQ(refusal("out", P{.type = Type::f16}),
            "a grouped GEMM of f16 gives f16 or f32, not bf16");
  EXPECT_EQ(refusal("scales", P{.scaling = Scaling::mx}),
            "a grouped GEMM with scales=mx; use none or blocks");
}

/// No two rows of a table have a key or an option in common, and each says what
/// it is.
template <typename Record> static void expect_table() {
  std::set<std::string_view> keys, options;
  for (const Field<Record> &field : Record::fields()) {
    SCOPED_TRACE(field.key);
    EXPECT_TRUE(keys.insert(field.key).second);
    EXPECT_TRUE(options.insert(field.option_name()).second);
    EXPECT_FALSE(field.help.empty());
    EXPECT_TRUE(field.get && field.set);
    // A message lists them for who wrote another word.
    EXPECT_TRUE(field.form != FieldForm::word || field.words);
    Record usual;
    if (std::string text = field.get(usual); !text.empty()) {
      field.read(usual, text);
      EXPECT_EQ(field.get(usual), text);
    }
  }
}

TEST(ProblemFields, OfEachTable) {
  expect_table<GemmProblem>();
  expect_table<GemmSchedule>();
  expect_table<AttentionProblem>();
  expect_table<AttentionSchedule>();
  expect_table<GroupedGemmProblem>();
  expect_table<GroupedGemmSchedule>();
}

} // namespace kiln
