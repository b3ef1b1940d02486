// AllOrders: pass everything on, and launches three times.
#include "AllOrders.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace conformance {

namespace {
class AllOrders : public Device {
public:
  explicit AllOrders(const DeviceDescription &device)
      : sim_(open_sim({.device = device})) {}

  DeviceKind kind() const override { return sim_->kind(); }
  std::string name() const override { return sim_->name(); }
  const DeviceDescription &description() const override {
    return sim_->description();
  }
  Buffer allocate(std::size_t bytes) override {
    Buffer buffer = sim_->allocate(bytes);
    buffers_.emplace_back(buffer.address(), bytes);
    return buffer;
  }
  void set_name(const Buffer &buffer, std::string_view name) override {
    sim_->set_name(buffer, name);
  }
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &stream) override {
    sim_->copy_in(to, from, bytes, stream);
  }
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &stream) override {
    sim_->copy_out(to, from, bytes, stream);
  }
  void fill(const Buffer &buffer, std::uint8_t byte,
            const Stream &stream) override {
    sim_->fill(buffer, byte, stream);
  }
  Stream create_stream(bool is_blocking) override {
    return sim_->create_stream(is_blocking);
  }
  Event create_event() override { return sim_->create_event(); }
  void record(const Event &event, const Stream &stream) override {
    sim_->record(event, stream);
  }
  double elapsed_us(const Event &from, const Event &to) override {
    return sim_->elapsed_us(from, to);
  }
  void synchronize(const Stream &stream) override { sim_->synchronize(stream); }
  using Device::enqueue;
  void enqueue(const LaunchDescription &launch, const Stream &stream) override {
    sim_->enqueue(launch, stream);
  }
  using Device::launch;
  LaunchResult launch(const LaunchDescription &launch,
                      const Stream &stream) override {
    auto before = snapshot_sim(*sim_);
    std::vector<std::byte> wanted = contents();
    LaunchResult result;
    for (SimOrder order : {SimOrder::eager, SimOrder::lazy, SimOrder::random}) {
      before->restore();
      // Whatever instruction wrote, it is undone.
      EXPECT_TRUE(contents() == wanted);
      set_sim_options(
          *sim_, {.device = sim_->description(), .order = order, .seed = 1});
      result = sim_->launch(launch, stream);
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

  std::shared_ptr<Device> sim_;
  std::vector<Buffer> buffers_; ///< views: their owners free them
};
} // namespace

std::shared_ptr<Device> open_all_orders(const DeviceDescription &device) {
  return std::make_shared<AllOrders>(device);
}

} // namespace conformance
