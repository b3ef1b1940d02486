// KernelPlugin: what libkiln has for libkiln_c, which knows no compiler.
#include "kiln/kernels/attention.h"
#include "kiln/kernels/gemm.h"
#include "kiln/kernels/grouped_gemm.h"
#include "kiln/run/compile.h"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

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

/// The device of a target, with as many multiprocessors; null: an H200.
static DeviceDescription describe(const char *target, int sms) {
  if (!target)
    return DeviceDescription::h200();
  DeviceDescription device = DeviceDescription::for_target(target);
  device.sms = sms;
  return device;
}

static Module buildGemm(const char *problem, const char *schedule,
                        const DeviceDescription &device) {
  GemmProblem wanted = GemmProblem::parse(problem);
  return build_gemm(wanted,
                    schedule ? GemmSchedule::parse(schedule)
                             : pick_schedule(wanted, device),
                    {}, device);
}
static Module buildAttention(const char *problem, const char *schedule,
                             const DeviceDescription &) {
  return build_attention(AttentionProblem::parse(problem),
                         AttentionSchedule::parse(schedule ? schedule : ""));
}
static Module buildGroupedGemm(const char *problem, const char *schedule,
                               const DeviceDescription &) {
  return build_grouped_gemm(
      GroupedGemmProblem::parse(problem),
      GroupedGemmSchedule::parse(schedule ? schedule : ""));
}

/// `kind`: gemm, attention, grouped-gemm; a null schedule: Kiln picks one.
extern "C" __attribute__((visibility("default"))) int
kiln_plugin_build_kernel(const char *kind, const char *problem,
                         const char *schedule, const char *target, int sms,
                         char **text, std::size_t *bytes) {
  using Build =
      Module (*)(const char *, const char *, const DeviceDescription &);
  static constexpr std::pair<std::string_view, Build> kBuilds[] = {
      {"gemm", buildGemm},
      {"attention", buildAttention},
      {"grouped-gemm", buildGroupedGemm},
  };
  return giveKernel(
      [&] {
        for (auto [name, build] : kBuilds)
          if (name == kind)
            return build(problem, schedule, describe(target, sms));
        throw UserError(std::string("'") + kind +
                        "' is not a kind of kernel; use gemm, attention or "
                        "grouped-gemm");
      },
      text, bytes);
}
