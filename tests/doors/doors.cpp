// doors: one launch of the kernel lazy_only through a door of the check library.
//
//     doors driver|mlir|c|kernels PTX REPORT
//
// driver and mlir speak to libraries that report by themselves (KILN_REPORT); c
// and kernels, which is what `kiln gemm` and its siblings are behind their
// options, write the report themselves. No door is told an option of the checks.
#include "console/output_file.h"
#include "kernels/kernel_run.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/c/kiln_c.h>
#include <kiln/check/sim.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

static constexpr std::size_t kBytes = 128; // of `in`

namespace {
/// A library that stands where a program would find NVIDIA's or MLIR's.
class Library {
public:
  explicit Library(const char *path) : handle_(dlopen(path, RTLD_NOW)) {
    if (!handle_)
      throw kiln::RuntimeError(dlerror());
  }
  template <typename Result = int, typename... Parameters>
  Result call(const char *name, Parameters... parameters) const {
    auto *function =
        reinterpret_cast<Result (*)(Parameters...)>(dlsym(handle_, name));
    if (!function)
      throw kiln::RuntimeError(std::string("there is no ") + name);
    return function(parameters...);
  }

private:
  void *handle_;
};
} // namespace

static void throughDriver(const std::string &ptx) {
  Library cuda("libcuda.so.1");
  void *module = nullptr, *function = nullptr;
  std::uint64_t in = 0;
  cuda.call("cuInit", 0u);
  cuda.call("cuModuleLoadData", &module, ptx.c_str());
  cuda.call("cuModuleGetFunction", &function, module, "lazy_only");
  cuda.call("cuMemAlloc_v2", &in, kBytes);
  cuda.call("cuMemsetD8_v2", in, static_cast<unsigned char>(0), kBytes);
  void *parameters[] = {&in};
  cuda.call("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u,
            static_cast<void *>(nullptr), static_cast<void **>(parameters),
            static_cast<void **>(nullptr));
}

static void throughMlir(const std::string &ptx) {
  Library mgpu(KILN_MLIR_RUNTIME);
  using Size = std::int64_t;
  void *none = nullptr;
  void *module = mgpu.call<void *>("mgpuModuleLoad", ptx.c_str(), ptx.size());
  void *function =
      mgpu.call<void *>("mgpuModuleGetFunction", module, "lazy_only");
  void *in =
      mgpu.call<void *>("mgpuMemAlloc", std::uint64_t(kBytes), none, false);
  mgpu.call<void>("mgpuMemset32", in, 0u, kBytes / 4, none);
  void *parameters[] = {&in};
  mgpu.call<void>("mgpuLaunchKernel", function, Size(1), Size(1), Size(1),
                  Size(32), Size(1), Size(1), 0, none,
                  static_cast<void **>(parameters),
                  static_cast<void **>(nullptr), std::size_t(1));
}

static void check(kiln_error *error) {
  if (error)
    throw kiln::RuntimeError(kiln_error_message(error));
}

static void throughC(const std::string &ptx, const char *report) {
  kiln_device *device = nullptr;
  kiln_module *module = nullptr;
  kiln_buffer *in = nullptr;
  kiln_result *result = nullptr;
  const char *text = ptx.c_str();
  std::vector<char> zeros(kBytes);
  // A result may be saved or not: it keeps details where that is asked for.
  check(kiln_device_open("sim", "detail=on", &device));
  check(kiln_module_load(device, &text, 1, &module));
  check(kiln_buffer_allocate(device, kBytes, &in));
  check(kiln_buffer_write(in, 0, zeros.data(), kBytes));
  std::uint64_t address = kiln_buffer_address(in);
  const void *parameters[] = {&address};
  kiln_launch launch = {};
  launch.bytes = sizeof launch;
  launch.module = module;
  launch.entry = "lazy_only";
  launch.block[0] = 32;
  launch.parameters = parameters;
  check(kiln_device_launch(device, &launch, &result));
  check(kiln_result_save(result, report));
  kiln_result_free(result);
  kiln_buffer_free(in);
  kiln_module_free(module);
  kiln_device_free(device);
}

static void throughKernels(const std::string &ptx, const char *report) {
  using namespace kiln;
  std::shared_ptr<Device> device = open_sim();
  std::vector<float> zeros(kBytes / sizeof(float));
  Buffer in = device->allocate(kBytes);
  device->copy_in(in, zeros.data(), kBytes);
  Kernel kernel;
  kernel.name = "lazy_only";
  kernel.ptx = ptx;
  kernel.contract.arguments = {{.name = "in", .shape = {32}}};
  kernel.contract.parameters = {{}};
  kernel.contract.block = {32, 1, 1};
  CheckSettings settings;
  settings.report_path = report;
  cli::Outputs outputs;
  cli::run_kernel(*device, kernel, {in}, {.launches = 1, .operations = 1},
                  settings, outputs, [&] {
                    device->copy_out(zeros.data(), in, kBytes);
                    return std::vector{std::as_bytes(std::span(zeros))};
                  });
}

int main(int count, char **words) {
  try {
    if (count != 4)
      throw kiln::UserError("doors driver|mlir|c|kernels PTX REPORT");
    std::string door = words[1], ptx = kiln::read_file(words[2], 1 << 20);
    if (door == "driver")
      throughDriver(ptx);
    else if (door == "mlir")
      throughMlir(ptx);
    else if (door == "c")
      throughC(ptx, words[3]);
    else if (door == "kernels")
      throughKernels(ptx, words[3]);
    return 0;
  } catch (const kiln::Error &error) {
    std::fprintf(stderr, "doors: %s\n", error.what());
    return 4;
  }
}
