// litmus_kernel: where a litmus test's kernel leaves what it has seen.
#pragma once

#include "litmus_test.h"

namespace kiln::cli {

/// Registers of a thread that a condition can see.
inline constexpr int kLitmusRegisters = 8;
/// In front of an instance's variables: where its threads meet.
inline constexpr std::uint32_t kMeetingBytes = 128;

} // namespace kiln::cli
