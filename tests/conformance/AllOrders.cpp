// AllOrders: pass everything on, and launches three times.
#include "AllOrders.h"
#include "conformance/threads/PassingOn.h"

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
                      const Stream &stream) override {
    auto before = sim_->simulation()->snapshot();
    std::vector<std::byte> wanted = contents();
    LaunchResult result;
    for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
      before->restore();
      // Whatever instruction wrote, it is undone.
      EXPECT_TRUE(contents() == wanted);
      LaunchDescription one = launch;
      one.options = std::make_shared<SimOptions>(SimOptions{
          .device = sim_->description(), .interleaving = order, .seed = 1});
      result = sim_->launch(one, stream);
      EXPECT_TRUE(result.findings.empty())
          << "order " << static_cast<int>(order) << ": " << result.to_string();
    }
    return result;
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

  std::vector<Buffer> buffers_; ///< views: their owners free them
};
} // namespace

std::shared_ptr<Device> open_all_orders(const DeviceDescription &device) {
  return std::make_shared<AllOrders>(device);
}

} // namespace conformance
