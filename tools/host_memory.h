// host_memory: memory of this machine, for buffers that a command line or a
// launch file asks for.
//
// The kernel of the machine promises more memory than there is and kills who
// uses it. So what is going to be used is added up before, and what does not
// fit is refused with its name and its size.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::cli {

class MemoryBudget {
public:
  MemoryBudget();
  /// Throws RuntimeError, "not enough memory for WHAT, ...", where it
  /// and what was taken before is more than the machine has.
  void take(const std::string &what, double bytes);

private:
  double available_;
  double taken_ = 0;
};

/// `bytes` on the host, each of them `fill`. Throws RuntimeError.
std::vector<std::byte> host_bytes(const std::string &what, std::size_t bytes,
                                  std::byte fill = {});

} // namespace kiln::cli
