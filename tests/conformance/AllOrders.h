// AllOrders: a simulator whose every launch is run in each order of effects,
// and has nothing to say against any of them.
#pragma once

#include <kiln/check/sim.h>

#include <memory>

namespace conformance {

/// Each launch starts from the same memory; what the last one leaves is there
/// to be compared. A finding of any grade fails the test.
std::shared_ptr<kiln::Device> open_all_orders(
    const kiln::DeviceDescription &device = kiln::DeviceDescription::h200());

} // namespace conformance
