// RandomProblems: valid attentions and grouped GEMMs of random fields.
#pragma once

#include <kiln/kernels/attention.h>
#include <kiln/kernels/grouped_gemm.h>

#include <random>

namespace kiln {

class RandomProblems {
public:
  explicit RandomProblems(unsigned seed) : engine_(seed) {}

  AttentionProblem attention() {
    AttentionProblem problem{.batch = number(8),
                             .queries = number(300),
                             .keys = number(300),
                             .head_dim = pick({64, 128, 256}),
                             .type = pick({Type::bf16, Type::f16})};
    problem.kv_heads = number(4);
    problem.heads = problem.kv_heads * number(4);
    vary(problem.kv_heads, [] { return 0; });
    vary(problem.is_causal, [] { return true; });
    vary(problem.scale, [&] { return real(); });
    vary(problem.soft_cap, [&] { return real(); });
    vary(problem.layout, [] { return AttentionLayout::bshd; });
    vary(problem.window_left, [&] { return number(100) - 1; });
    if (!problem.is_causal)
      vary(problem.window_right, [&] { return number(100) - 1; });
    if (number(4) == 1) {
      problem.total_queries = problem.queries + number(500);
      problem.total_keys = problem.keys + number(500);
    }
    return problem;
  }

  GroupedGemmProblem grouped() {
    GroupedGemmProblem problem{.groups = number(64),
                               .rows = number(5000),
                               .n = number(5000),
                               .k = 16 * number(100),
                               .type =
                                   pick({Type::bf16, Type::f16, Type::e4m3})};
    bool is_fp8 = problem.type == Type::e4m3;
    problem.out = is_fp8 ? pick({Type::bf16, Type::f16, Type::f32})
                         : pick({problem.type, Type::f32});
    vary(problem.layout, [] { return GroupLayout::masked; });
    vary(problem.is_swiglu, [] { return true; });
    if (is_fp8)
      vary(problem.scaling, [] { return Scaling::blocks; });
    return problem;
  }

private:
  template <typename T> T pick(std::initializer_list<T> list) {
    return list.begin()[engine_() % list.size()];
  }
  int number(int most) { return 1 + static_cast<int>(engine_() % most); }
  double real() { return std::uniform_real_distribution(1e-3, 50.0)(engine_); }
  /// Change a field, one time in three.
  template <typename T, typename Make> void vary(T &field, Make make) {
    if (engine_() % 3 == 0)
      field = make();
  }

  std::mt19937 engine_;
};

} // namespace kiln
