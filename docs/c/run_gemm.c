/* run_gemm: build a GEMM, run it, look at an element of the product.

   run_gemm [DEVICE]: sim (the default), cuda, auto. Building needs libkiln, the
   compiler; a kernel that was saved needs only kiln_kernel_load. */
#include <kiln/c/kiln_c.h>

#include <stdio.h>
#include <stdlib.h>

enum { M = 64, N = 128, K = 96 };

static void check(kiln_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", kiln_error_message(error));
  exit(kiln_error_code(error));
}

int main(int count, char **words) {
  kiln_device *device;
  check(kiln_device_open(count > 1 ? words[1] : "sim", NULL, &device));
  kiln_kernel *kernel; /* D = A * B: A row-major, B column-major */
  check(kiln_kernel_build(device, "gemm", "64x128x96 tf32 -> f32 tn", NULL,
                          &kernel));
  check(kiln_kernel_save(kernel, "gemm.kiln"));

  static float a[M * K], b[N * K], d[M * N];
  for (int i = 0; i < M * K; ++i)
    a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < N * K; ++i)
    b[i] = (float)(i % 5 - 2);
  kiln_buffer *on_device[3];
  check(kiln_buffer_allocate(device, sizeof(a), &on_device[0]));
  check(kiln_buffer_allocate(device, sizeof(b), &on_device[1]));
  check(kiln_buffer_allocate(device, sizeof(d), &on_device[2]));
  check(kiln_buffer_write(on_device[0], 0, a, sizeof(a)));
  check(kiln_buffer_write(on_device[1], 0, b, sizeof(b)));

  kiln_argument arguments[3] = {{.buffer = on_device[0]},
                                {.buffer = on_device[1]},
                                {.buffer = on_device[2]}};
  kiln_result *result;
  check(kiln_kernel_launch(device, kernel, arguments, 3, &result));
  check(kiln_buffer_read(on_device[2], 0, d, sizeof(d)));

  float wanted = 0;
  for (int k = 0; k < K; ++k)
    wanted += a[5 * K + k] * b[9 * K + k];
  int is_right = d[5 * N + 9] == wanted && kiln_result_is_ok(result);
  printf("%s: D[5][9] is %g, wanted %g, %zu findings\n",
         kiln_kernel_name(kernel), d[5 * N + 9], wanted,
         kiln_result_finding_count(result));

  kiln_result_free(result);
  for (int i = 0; i < 3; ++i)
    kiln_buffer_free(on_device[i]);
  kiln_kernel_free(kernel);
  kiln_device_free(device);
  return is_right ? 0 : 1;
}
