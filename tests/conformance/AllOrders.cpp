// AllOrders: pass everything on, and explore launches.
#include "AllOrders.h"
#include "conformance/threads/PassingOn.h"

#include <kiln/check/explore.h>

#include <gtest/gtest.h>

using namespace kiln;

namespace conformance {

namespace {
class AllOrders : public PassingOn {
public:
  using PassingOn::PassingOn;

  Buffer allocate(std::size_t bytes) override {
    Buffer buffer = sim_->allocate(bytes);
    buffers_.emplace_back(buffer.address(), bytes);
    return buffer;
  }
  using Device::launch;
  LaunchResult launch(const LaunchDescription &launch,
                      const Stream &) override {
    std::vector<std::vector<std::byte>> left;
    Exploration all =
        explore(*sim_, {&launch, 1},
                {.interleavings = {.count = 3, .seed = 1},
                 .sim = {.device = sim_->description()}},
                [&](ExploredRun &) { left.push_back(contents()); });
    // Memory is as the first one left it; the last one's is compared.
    EXPECT_TRUE(contents() == left.front());
    putBack(left.back());
    for (const ExploredRun &run : all.runs)
      EXPECT_TRUE(run.launches.front().findings.empty())
          << run.interleaving.to_string() << ": "
          << run.launches.front().to_string();
    return all.runs.back().launches.front();
  }

private:
  /// What is in the buffers that there are still.
  std::vector<std::byte> contents() {
    std::vector<std::byte> all;
    std::erase_if(buffers_, [&](const Buffer &buffer) {
      std::size_t begin = all.size();
      all.resize(begin + buffer.bytes());
      try {
        sim_->copy_out(all.data() + begin, buffer, buffer.bytes());
        return false;
      } catch (const UserError &) {
        all.resize(begin);
        return true;
      }
    });
    return all;
  }

  void putBack(const std::vector<std::byte> &all) {
    std::size_t begin = 0;
    for (const Buffer &buffer : buffers_) {
      sim_->copy_in(buffer, all.data() + begin, buffer.bytes());
      begin += buffer.bytes();
    }
  }

  std::vector<Buffer> buffers_; ///< views: their owners free them
};
} // namespace

std::shared_ptr<Device> open_all_orders(const DeviceDescription &device) {
  return std::make_shared<AllOrders>(device);
}

} // namespace conformance
