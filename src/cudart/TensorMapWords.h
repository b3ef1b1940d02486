// TensorMapWords: the numbers of cuTensorMapEncodeTiled, in Kiln's words.
#pragma once

#include "kiln/language/memory/tensor_map.h"

#include <optional>

namespace kiln::cudart {

/// A map of that type and those ways to copy, without its tensor; nothing where
/// a number stands for none.
std::optional<TensorMap> tensorMapOf(std::int64_t type, std::int64_t interleave,
                                     std::int64_t swizzle,
                                     std::int64_t l2Promotion,
                                     std::int64_t oobFill);

} // namespace kiln::cudart
