/* check_kernel: load PTX, launch it on the simulator, print what is wrong.

   The kernel reverses 64 integers in shared memory and lacks a barrier. */
#include <kiln/c/kiln_c.h>

#include <stdio.h>
#include <stdlib.h>

static const char *const ptx =
    ".version 8.0\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ".visible .entry reverse(.param .u64 x)\n"
    "{\n"
    ".reg .b32 %r<7>;\n"
    ".reg .b64 %rd<4>;\n"
    ".shared .align 4 .b8 tile[256];\n"
    "ld.param.u64 %rd1, [x];\n"
    "mov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4;\n"
    "add.s64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r2, [%rd3];\n"
    "mov.u32 %r3, tile;\n"
    "shl.b32 %r4, %r1, 2;\n"
    "add.u32 %r5, %r3, %r4;\n"
    "st.shared.u32 [%r5], %r2;\n"
    "// bar.sync 0; belongs here\n"
    "sub.u32 %r6, %r3, %r4;\n"
    "ld.shared.u32 %r2, [%r6 + 252];\n"
    "st.global.u32 [%rd3], %r2;\n"
    "ret;\n"
    "}\n";

/* Every function that can fail returns NULL or an error. */
static void check(kiln_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", kiln_error_message(error));
  exit(kiln_error_code(error));
}

int main(void) {
  kiln_device *device;
  check(kiln_device_open("sim", "seed=7", &device));
  kiln_module *module;
  check(kiln_module_load(device, &ptx, 1, &module));

  int32_t data[64];
  for (int i = 0; i < 64; ++i)
    data[i] = i;
  kiln_buffer *x; /* the kernel works on `data` itself */
  check(kiln_buffer_share(device, data, sizeof(data), &x));
  check(kiln_buffer_set_name(x, "x"));

  uint64_t address = kiln_buffer_address(x);
  const void *parameters[] = {&address};
  kiln_launch launch = {.bytes = sizeof(launch),
                        .module = module,
                        .entry = "reverse",
                        .grid = {1},
                        .block = {64},
                        .parameters = parameters};
  kiln_result *result;
  check(kiln_device_launch(device, &launch, &result));

  for (size_t i = 0; i < kiln_result_finding_count(result); ++i) {
    kiln_finding finding = {.bytes = sizeof(finding)};
    check(kiln_result_finding(result, i, &finding));
    printf("%s in %s interleavings, PTX line %d: %s\n", finding.id,
           finding.interleavings, finding.ptx_line, finding.message);
  }
  check(kiln_result_save(result, "reverse.html"));
  int status = kiln_result_is_ok(result) ? 0 : 2;

  kiln_result_free(result);
  kiln_buffer_free(x);
  kiln_module_free(module);
  kiln_device_free(device);
  return status;
}
