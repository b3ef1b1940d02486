// Sanitized: what a test cannot ask of a build under sanitizers.
#pragma once

#include <gtest/gtest.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KILN_SANITIZED 1
#endif
#endif

/// Skip a test that measures time, or asks for memory that cannot be had: a
/// sanitizer ends the process where `new` would throw.
#ifdef KILN_SANITIZED
#define SKIP_WHERE_SANITIZED(reason)                                           \
  GTEST_SKIP() << "under a sanitizer: " << (reason)
#else
#define SKIP_WHERE_SANITIZED(reason) static_assert(true)
#endif
