// SpoiltPages: memory whose bytes are all 0xff, and that costs nothing until it
// is written.
//
// That is NaN in every float type: what nobody writes cannot pass for a zero.
// A program that allocates a gigabyte and uses a part of it shall pay for that
// part, so that large memory is mapped, copy on write, from one short file of
// such bytes that is in memory alone.
#pragma once

#include <cstddef>
#include <memory>

namespace kiln::sim {

/// Throws std::bad_alloc.
std::shared_ptr<unsigned char[]> spoiltBytes(std::size_t bytes);

} // namespace kiln::sim
