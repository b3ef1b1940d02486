// host_memory: count it, take it, and name what there is not enough for.
#include "host_memory.h"

#include <kiln/error.h>

#include <fmt/format.h>
#include <new>
#include <stdexcept>
#include <unistd.h>

namespace kiln::cli {

MemoryBudget::MemoryBudget()
    : available_(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                 static_cast<double>(sysconf(_SC_PAGESIZE))) {}

void MemoryBudget::take(const std::string &what, double bytes) {
  std::string others;
  if (taken_ > 0)
    others = fmt::format(" besides {:.0f} for others", taken_);
  taken_ += bytes;
  if (taken_ > available_)
    throw RuntimeError(
        fmt::format("not enough memory for {}, which needs {:.0f} bytes{}; "
                    "this machine has {:.0f}",
                    what, bytes, others, available_));
}

std::vector<std::byte> host_bytes(const std::string &what, std::size_t bytes,
                                  std::byte fill) {
  try {
    return std::vector<std::byte>(bytes, fill);
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) {
  }
  throw RuntimeError(fmt::format(
      "not enough memory for {}, which needs {} bytes", what, bytes));
}

} // namespace kiln::cli
