// control.h: loops and branches of a kernel.
//
// Bodies are lambdas, run once while the kernel is built. A C++ `for` around
// kernel code unrolls; for_range is a loop of the kernel.
#pragma once

#include <kiln/value.h>

#include <functional>

namespace kiln {

/// for (i = lower; i < upper; i += step). The induction variable has the type
/// of the bounds (i32 for literals and Dims).
void for_range(At lower, At upper, const std::function<void(Value)> &body);
void for_range(At lower, At upper, At step,
               const std::function<void(Value)> &body);

/// Run `then` where the i1 `condition` holds, and `otherwise` where not.
void if_(At condition, const std::function<void()> &then,
         const std::function<void()> &otherwise = nullptr);

/// Run `body` as long as `condition` holds; both are kernel code.
void while_(const std::function<Value()> &condition,
            const std::function<void()> &body,
            std::source_location where = std::source_location::current());

} // namespace kiln
