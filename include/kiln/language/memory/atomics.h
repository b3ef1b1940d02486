// atomics.h: read, change and write an element in one step nobody can split.
//
// The element lies in global or in shared memory. atomic_... gives what was
// there before (atom); reduce_... gives nothing, and the thread does not wait
// for it (red).
//
//     Value ticket = atomic_add(counter(0), 1);     // atom.relaxed.gpu.global
//     reduce_add(histogram(0, bin), 1);             // red.relaxed.gpu.shared
//
// Which operation has which types (PTX, "atom"):
//
//     add                         i32 u32 i64 u64 index f32 f64
//     min max                     i32 u32 i64 u64 index
//     and or xor                  i32 u32 i64 u64 index
//     exchange, compare_exchange  any of 32 or 64 bits, compared bit by bit
//     load                        any of 32 or 64 bits
//
// The order in which threads add floats is not fixed, so their sum may differ
// in its last bits from one launch to the next.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/memory/scope.h>

namespace KILN_API kiln {

/// What an atomic says about the accesses around it.
enum class MemoryOrder : std::uint8_t {
  relaxed,         ///< nothing: it is only undivided itself
  acquire,         ///< what follows it is not done before it
  release,         ///< what precedes it is seen by who acquires it
  acquire_release, ///< both
};

struct AtomicOptions {
  MemoryOrder order = MemoryOrder::relaxed;
  Scope scope = Scope::gpu;
};

/// What is there now (ld); the order is relaxed or acquire. To wait for
/// another thread, read with this again and again: it costs less than an
/// operation that writes.
Value atomic_load(const Element &element, const AtomicOptions &options = {},
                  Where where = Where::current());

/// Each writes the result and returns the old value.
Value atomic_add(const Element &element, At value,
                 const AtomicOptions &options = {});
Value atomic_min(const Element &element, At value,
                 const AtomicOptions &options = {});
Value atomic_max(const Element &element, At value,
                 const AtomicOptions &options = {});
Value atomic_and(const Element &element, At value,
                 const AtomicOptions &options = {});
Value atomic_or(const Element &element, At value,
                const AtomicOptions &options = {});
Value atomic_xor(const Element &element, At value,
                 const AtomicOptions &options = {});
/// Write `value`.
Value atomic_exchange(const Element &element, At value,
                      const AtomicOptions &options = {});
/// Write `value` where the element is `expected` (atom.cas); it was written if
/// the result equals `expected`.
Value atomic_compare_exchange(const Element &element, At expected, At value,
                              const AtomicOptions &options = {});

/// The same without the old value; the order is relaxed or release.
void reduce_add(const Element &element, At value,
                const AtomicOptions &options = {});
void reduce_min(const Element &element, At value,
                const AtomicOptions &options = {});
void reduce_max(const Element &element, At value,
                const AtomicOptions &options = {});
void reduce_and(const Element &element, At value,
                const AtomicOptions &options = {});
void reduce_or(const Element &element, At value,
               const AtomicOptions &options = {});
void reduce_xor(const Element &element, At value,
                const AtomicOptions &options = {});

} // namespace kiln
