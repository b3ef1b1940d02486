// check.h: what the programs share: an API call or a value that is wrong ends
// them with status 1 and a line.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::printf("%s:%d: %s is wrong\n", __FILE__, __LINE__, #condition);     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)
#define OK(call)                                                               \
  do {                                                                         \
    cudaError_t error = call;                                                  \
    if (error != cudaSuccess) {                                                \
      std::printf("%s:%d: %s is %s\n", __FILE__, __LINE__, #call,              \
                  cudaGetErrorString(error));                                  \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)
