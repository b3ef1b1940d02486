// grid_barrier.h: all CTAs of a launch meet.
//
// What one part of a kernel writes to global memory, by all CTAs, another one
// reads behind the barrier:
//
//     GridBarrier written(kb);
//     ... copy, each CTA its part ...
//     written.sync();
//     ... tma_load what others copied ...
//
// All CTAs must be there at once: the launch is cooperative, and a grid that
// the device cannot hold is refused. grid_work.h has what does without.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>

#include <string>

namespace KILN_API kiln {

class GridBarrier {
public:
  /// Its counter is a workspace of that name.
  explicit GridBarrier(KernelBuilder &kb, const std::string &name = "arrivals",
                       Where where = Where::current());

  /// Wait for every thread of every CTA; all of them call, outside of roles.
  /// What they wrote before is seen behind it, by TMA too. As often as one
  /// likes.
  void sync(Where where = Where::current()) const;

private:
  Tensor counter_;
};

} // namespace kiln
