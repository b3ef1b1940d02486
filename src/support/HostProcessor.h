// HostProcessor: what differs between the processors that Kiln itself runs on.
//
// A function marked KILN_WIDEST_VECTORS is compiled for three widths of x86
// vectors, and the widest that the processor has is chosen while the program is
// loaded; elsewhere, and by clang, which knows no such levels here, it is
// compiled once, for the vectors every such processor has. Sanitizers are not
// ready when that choice is made.
#pragma once

#include "kiln/base/export.h"

#include <cstdint>

#if defined(__x86_64__) && !defined(__clang__) &&                              \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KILN_HAS_VECTOR_CHOICE 1
#define KILN_WIDEST_VECTORS                                                    \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KILN_HAS_VECTOR_CHOICE 0
#define KILN_WIDEST_VECTORS
#endif

// A function that multiplies and adds in one rounding; to be called where
// hasFusedMultiply().
#if defined(__x86_64__)
#include <x86intrin.h>
#define KILN_FUSED_MULTIPLY __attribute__((target("avx2,fma")))
#else
#define KILN_FUSED_MULTIPLY
#endif

// A loop over lanes for vectors of 32 bytes; to be called where hasWideLanes().
// Nothing in it is fused: what is multiplied and added is rounded twice.
#if defined(__x86_64__)
#define KILN_WIDE_LANES __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define KILN_WIDE_LANES
#endif

namespace KILN_API kiln {

inline bool hasWideLanes() {
#if defined(__x86_64__)
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("popcnt");
  return has;
#else
  return false;
#endif
}

inline bool hasFusedMultiply() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

/// A counter that runs evenly and is read in some nanoseconds.
inline std::uint64_t ticksNow() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "kiln: tell HostProcessor.h how ticks are counted on this processor"
#endif
}

} // namespace kiln
