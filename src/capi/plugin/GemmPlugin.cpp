// GemmPlugin: what libkiln has for libkiln_c, which knows no compiler.
#include "kiln/run/compile.h"
#include "kiln/kernels/gemm.h"

#include <cstdlib>
#include <cstring>

/// Hand a text over; the caller frees it.
static void give(const std::string &text, char **to, std::size_t *bytes) {
  *bytes = text.size();
  *to = static_cast<char *>(std::malloc(text.size() + 1));
  if (*to)
    std::memcpy(*to, text.data(), text.size());
}

/// 0 and the bytes of a saved kernel, or an exit status and a message.
extern "C" __attribute__((visibility("default"))) int
kiln_plugin_build_gemm(const char *problem, const char *schedule, char **text,
                       std::size_t *bytes) {
  using namespace kiln;
  try {
    GemmProblem wanted = GemmProblem::parse(problem);
    GemmSchedule plan =
        schedule ? GemmSchedule::parse(schedule) : pick_schedule(wanted);
    give(compile(build_gemm(wanted, plan)).serialize(), text, bytes);
    return 0;
  } catch (const Error &error) {
    give(error.what(), text, bytes);
    return static_cast<int>(error.exit_status());
  } catch (const std::exception &error) {
    give(error.what(), text, bytes);
    return static_cast<int>(ExitStatus::internal);
  }
}
