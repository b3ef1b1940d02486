// MappedMemory: how far the memory of this process goes that a stranger's number
// speaks of.
//
// A program hands over an address and says, or has a header say, how many bytes
// are there. Before they are read, the kernel is asked.
#pragma once

#include "kiln/base/export.h"

#include <cstddef>

namespace KILN_API kiln {

enum class MemoryUse : unsigned char { read, write };

/// How many of `wanted` bytes from an address on may be used so, without a gap.
/// All of them where the kernel does not tell.
std::size_t mappedBytes(const void *address, std::size_t wanted,
                        MemoryUse use = MemoryUse::read);

} // namespace kiln
