// buffer_compare: is a buffer what it should be, element by element.
#pragma once

#include "launch_file.h"

namespace kiln::cli {

struct BufferComparison {
  std::uint64_t wrong = 0;        ///< elements
  std::vector<std::string> first; ///< "out[3, 4] is 1, should be 2 within 0.1"
};

/// Compare as the buffer's tolerance says.
BufferComparison compare_buffer(const BufferSpec &buffer,
                                const std::vector<std::byte> &got,
                                const std::vector<std::byte> &want);

} // namespace kiln::cli
