// async_copy.h: copies to shared memory by each thread, done in the background.
//
// Older and smaller than TMA: each thread copies 4, 8 or 16 bytes of its own
// and goes on. Copies belong to groups of their thread, or are signalled to an
// mbarrier (Mbarrier::arrive_copies):
//
//     async_copy(tile(row, 8 * t), x(row, 8 * t), 8);     // 16 bytes of f16
//     async_copy_commit();
//     async_copy_wait(0);
//     sync_threads();                      // what the others copied, too
//
// The bytes are written like those of a store: no proxy fence is needed to read
// them, one is (fence_async_shared) before wgmma or TMA does.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>

#include <optional>

namespace KILN_API kiln {

struct AsyncCopyOptions {
  /// Keep the line in L1 too (.ca); without it 16 bytes pass L1 by (.cg).
  /// Smaller copies always keep it.
  bool through_l1 = false;
  /// How many of the elements are read, an i32; zeros take the place of the
  /// others. Nothing: all.
  std::optional<Value> valid;
};

/// Copy `count` neighbours from a tensor's element on to a tile's element on:
/// 4, 8 or 16 bytes, aligned to their size on both sides. Both have one type.
///
/// Becomes cp.async.cg.shared.global [to], [from], 16, valid.
void async_copy(const Element &to, const Element &from, int count,
                const AsyncCopyOptions &options = {},
                Where where = Where::current());

/// Close the group of the copies this thread has issued
/// (cp.async.commit_group).
void async_copy_commit(Where where = Where::current());
/// Wait until at most `groups` of this thread's groups are in flight
/// (cp.async.wait_group).
void async_copy_wait(int groups, Where where = Where::current());
/// Wait for all copies of this thread, committed or not (cp.async.wait_all).
void async_copy_wait_all(Where where = Where::current());

} // namespace kiln
