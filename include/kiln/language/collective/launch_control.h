// launch_control.h: LaunchControl, work that CTAs which have not begun would
// do.
//
// On Blackwell a CTA can ask for one of the grid that has not begun: that one
// never does, and this one does its work (clusterlaunchcontrol.try_cancel). So
// CTAs take tiles as they get done with them, as a persistent kernel's do, and
// the grid still has one for each: who is late takes fewer.
//
//     LaunchControl control(kb, 1 + 128);       // threads that call for_each
//     warpgroup(1, [&] {
//       one_thread_of(0, [&] { control.ask_all(); });
//       one_thread_of(1, [&] {
//         control.for_each([&](const GridPlace &at) { ... at.x ... });
//       });
//     });
//     warpgroup(0, [&] { control.for_each([&](const GridPlace &at) { ... });
//     });
//
// Simulated and assembled, not run on hardware.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/mbarrier.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/value/value.h>

#include <functional>
#include <optional>

namespace KILN_API kiln {

/// A CTA of the grid.
struct GridPlace {
  Value x, y, z;
};

class LaunchControl {
public:
  /// `readers`: threads of the CTA that call for_each. Synchronises the CTA:
  /// all threads must reach it, outside roles. Of kernels without clusters.
  LaunchControl(KernelBuilder &kb, int readers, Where where = Where::current());
  LaunchControl(const LaunchControl &) = delete;

  /// Ask until no CTA is left that has not begun: in one_thread, once.
  void ask_all(Where where = Where::current());
  /// Run `body` for this CTA, then for each that it has got instead. Every one
  /// of the readers sees the same ones in the same order.
  void for_each(const std::function<void(const GridPlace &)> &body,
                Where where = Where::current());

private:
  SharedTile answer_;
  std::optional<MbarrierArray> barriers_; ///< answered, read
};

} // namespace kiln
