// Reserve: room for what is expected, as far as a stranger's number is to be
// believed.
#pragma once

#include <algorithm>
#include <cstddef>

namespace kiln {

/// `container.reserve(count)`, and no more than a megabyte: what is really
/// there makes more room as it comes.
template <typename Container>
void reserveBounded(Container &container, std::size_t count) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  container.reserve(std::min(
      count, kMostBytes / sizeof(typename Container::value_type)));
}

} // namespace kiln
