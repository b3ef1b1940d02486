/* client_1: a program that was compiled with version 1 of kiln_c.h, on the
   library of today. It ends with 0, or says what is not as it was. */
#include "headers/kiln_c_1.h"

#include <stdio.h>
#include <string.h>

static const char *ptx = ".version 8.0\n"
                         ".target sm_90\n"
                         ".address_size 64\n"
                         ".visible .entry store(.param .u64 out)\n"
                         "{\n"
                         ".reg .u32 %r<3>;\n"
                         ".reg .u64 %a<2>;\n"
                         "ld.param.u64 %a1, [out];\n"
                         "mov.u32 %r1, 42;\n"
                         "st.global.u32 [%a1], %r1;\n"
                         "ret;\n"
                         "}\n";
static int failures;

static void expect(int holds, const char *what) {
  if (holds)
    return;
  printf("not as in version 1: %s\n", what);
  ++failures;
}

static void succeed(kiln_error *error, const char *call) {
  if (!error)
    return;
  printf("%s: %s\n", call, kiln_error_message(error));
  ++failures;
  kiln_error_free(error);
}

int main(void) {
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  kiln_buffer *out = NULL;
  kiln_result *result = NULL;
  uint64_t address;
  uint32_t word = 0;
  const void *parameters[1];
  kiln_launch launch;
  /* What lies behind the structure is not the library's. */
  struct {
    kiln_finding finding;
    unsigned char behind[64];
  } guarded;

  expect(kiln_c_version() >= KILN_C_VERSION, "the version goes up");
  succeed(kiln_device_open(
              "sim", "order=lazy,seed=3,threads=1,checks=on,time_limit=60",
              &device),
          "kiln_device_open");
  succeed(kiln_module_load(device, &ptx, 1, &module), "kiln_module_load");
  succeed(kiln_buffer_allocate(device, 4, &out), "kiln_buffer_allocate");
  address = kiln_buffer_address(out);
  parameters[0] = &address;
  memset(&launch, 0, sizeof launch);
  launch.bytes = sizeof launch;
  launch.module = module;
  launch.entry = "store";
  launch.parameters = parameters;
  succeed(kiln_device_launch(device, &launch, &result), "kiln_device_launch");
  expect(kiln_result_is_ok(result) && kiln_result_is_finished(result),
         "a launch without findings");
  expect(strstr(kiln_result_json(result), "\"verdict\": \"ok\"") != NULL,
         "kiln_result_json");
  kiln_result_free(result);
  succeed(kiln_buffer_read(out, 0, &word, 4), "kiln_buffer_read");
  expect(word == 42, "what the kernel stores");

  address += 4096;
  succeed(kiln_device_launch(device, &launch, &result), "kiln_device_launch");
  expect(kiln_result_finding_count(result) == 1, "one finding");
  memset(&guarded, 0x5a, sizeof guarded);
  guarded.finding.bytes = sizeof guarded.finding;
  succeed(kiln_result_finding(result, 0, &guarded.finding),
          "kiln_result_finding");
  expect(guarded.finding.bytes == sizeof guarded.finding, "its size");
  expect(strcmp(guarded.finding.id, "out-of-bounds") == 0, "its id");
  expect(guarded.finding.ptx_line == 10, "its line");
  for (size_t i = 0; i < sizeof guarded.behind; ++i)
    expect(guarded.behind[i] == 0x5a, "a byte behind the structure");
  kiln_result_free(result);
  kiln_buffer_free(out);
  kiln_module_free(module);
  kiln_device_free(device);
  return failures != 0;
}
