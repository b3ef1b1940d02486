// KernelPlugin: what libkiln has for libkiln_c, which knows no compiler.
#include "kiln/kernels/attention.h"
#include "kiln/kernels/gemm.h"
#include "kiln/kernels/grouped_gemm.h"
#include "kiln/run/compile.h"

#include <cstdlib>
#include <cstring>

using namespace kiln;

/// Hand a text over; the caller frees it.
static void give(const std::string &text, char **to, std::size_t *bytes) {
  *bytes = text.size();
  *to = static_cast<char *>(std::malloc(text.size() + 1));
  if (*to)
    std::memcpy(*to, text.data(), text.size());
}

/// 0 and the bytes of a saved kernel, or an exit status and a message.
template <typename Build>
static int giveKernel(const Build &build, char **text, std::size_t *bytes) {
  try {
    give(compile(build()).serialize(), text, bytes);
    return 0;
  } catch (const Error &error) {
    give(error.what(), text, bytes);
    return static_cast<int>(error.exit_status());
  } catch (const std::exception &error) {
    give(error.what(), text, bytes);
    return static_cast<int>(ExitStatus::internal);
  }
}

// The schedule of each may be null: Kiln picks one.
extern "C" {
__attribute__((visibility("default"))) int
kiln_plugin_build_gemm(const char *problem, const char *schedule, char **text,
                       std::size_t *bytes) {
  return giveKernel(
      [&] {
        GemmProblem wanted = GemmProblem::parse(problem);
        return build_gemm(wanted, schedule ? GemmSchedule::parse(schedule)
                                           : pick_schedule(wanted));
      },
      text, bytes);
}

__attribute__((visibility("default"))) int
kiln_plugin_build_attention(const char *problem, const char *schedule,
                            char **text, std::size_t *bytes) {
  return giveKernel(
      [&] {
        return build_attention(
            AttentionProblem::parse(problem),
            AttentionSchedule::parse(schedule ? schedule : ""));
      },
      text, bytes);
}

__attribute__((visibility("default"))) int
kiln_plugin_build_grouped_gemm(const char *problem, const char *schedule,
                               char **text, std::size_t *bytes) {
  return giveKernel(
      [&] {
        return build_grouped_gemm(
            GroupedGemmProblem::parse(problem),
            GroupedGemmSchedule::parse(schedule ? schedule : ""));
      },
      text, bytes);
}
}
