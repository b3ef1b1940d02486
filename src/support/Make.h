// Make: the compiler's way to make objects that users only receive.
#pragma once

#include "kiln/base/export.h"

#include <utility>

namespace KILN_API kiln {

struct Make {
  template <typename T, typename... Arguments>
  static T a(Arguments &&...arguments) {
    return T(std::forward<Arguments>(arguments)...);
  }
};

} // namespace kiln
