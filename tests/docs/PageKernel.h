// PageKernel: a kernel that stands on a page, as page_kernels lists it.
#pragma once

#include <kiln/kiln.h>

#include <functional>
#include <string>
#include <vector>

struct PageKernel {
  unsigned first_line, last_line; ///< of its block, on the page
  std::function<kiln::Kernel()> build;
  /// What the page says it is refused with; empty: it is built.
  std::string message;
};
