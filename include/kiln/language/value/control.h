// control.h: loops and branches of a kernel.
//
// Bodies are lambdas, run once while the kernel is built. A C++ `for` around
// kernel code unrolls; for_range is a loop of the kernel.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>
#include <kiln/language/value/vector.h>

#include <functional>

namespace KILN_API kiln {

struct ForOptions {
  /// Copies of the body in one turn of the loop, made by the compiler: what the
  /// lanes of a warp do together then asks them to turn equally often. 1 keeps
  /// the assembler from making any too (.pragma "nounroll"). 0: the compiler
  /// makes none, the assembler what it likes.
  int unroll = 0;
};

/// for (i = lower; i < upper; i += step), and with a literal step below 0
/// for (i = lower; i > upper; i += step). The induction variable has the type
/// of the bounds (i32 for literals and Dims); a step known at run time alone
/// is at least 1.
void for_range(At lower, At upper, const std::function<void(Value)> &body,
               const ForOptions &options = {});
void for_range(At lower, At upper, At step,
               const std::function<void(Value)> &body,
               const ForOptions &options = {});

/// The same with values handed from turn to turn: the body gets what the turn
/// before gave, the first one `initial`, and gives as many of the same types.
/// Returns what the last turn gave.
///
///     Value sum = for_range(0, n, 1, {zero}, [&](Value i, Values carried) {
///       return Values{carried[0] + x(i)};
///     })[0];
Values for_range(At lower, At upper, At step, const Values &initial,
                 const std::function<Values(Value, Values)> &body,
                 const ForOptions &options = {});

/// The same loop written out while the kernel is built: `body` is run with each
/// number, which can be used where C++ wants one.
void unrolled(int lower, int upper, int step,
              const std::function<void(int)> &body,
              Where where = Where::current());

/// Run `then` where the i1 `condition` holds, and `otherwise` where not.
void if_(At condition, const std::function<void()> &then,
         const std::function<void()> &otherwise = nullptr);

/// if_ without a branch: each instruction of the body has the condition in
/// front of it (@p). For atoms: loads and stores, atomics, copies, barriers,
/// fences, inline_ptx. What only computes is computed in any case, and a load
/// or atomic gives 0 where the condition does not hold. Loops, branches,
/// assignments to a Var and collectives have no place in it.
///
///     predicated(row < m, [&] { y(row) = sum; });   // @%p1 st.global.b32
void predicated(At condition, const std::function<void()> &body);

/// Run `body` as long as `condition` holds; both are kernel code.
void while_(const std::function<Value()> &condition,
            const std::function<void()> &body, Where where = Where::current());

} // namespace kiln
