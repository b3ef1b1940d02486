// PassingOn: a device that hands everything to a simulator, to be watched or
// changed in one place.
#pragma once

#include <kiln/check/sim.h>

#include <memory>

namespace conformance {

class PassingOn : public kiln::Device {
public:
  explicit PassingOn(const kiln::DeviceDescription &device)
      : sim_(kiln::open_sim({.device = device})) {}

  kiln::DeviceKind kind() const override { return sim_->kind(); }
  std::string name() const override { return sim_->name(); }
  const kiln::DeviceDescription &description() const override {
    return sim_->description();
  }
  kiln::Buffer allocate(std::size_t bytes) override {
    return sim_->allocate(bytes);
  }
  void set_name(const kiln::Buffer &buffer, std::string_view name) override {
    sim_->set_name(buffer, name);
  }
  void copy_in(const kiln::Buffer &to, const void *from, std::size_t bytes,
               const kiln::Stream &stream) override {
    sim_->copy_in(to, from, bytes, stream);
  }
  void copy_out(void *to, const kiln::Buffer &from, std::size_t bytes,
                const kiln::Stream &stream) override {
    sim_->copy_out(to, from, bytes, stream);
  }
  void fill(const kiln::Buffer &buffer, std::uint8_t byte,
            const kiln::Stream &stream) override {
    sim_->fill(buffer, byte, stream);
  }
  kiln::Stream create_stream(bool is_blocking) override {
    return sim_->create_stream(is_blocking);
  }
  kiln::Event create_event() override { return sim_->create_event(); }
  void record(const kiln::Event &event, const kiln::Stream &stream) override {
    sim_->record(event, stream);
  }
  double elapsed_us(const kiln::Event &from, const kiln::Event &to) override {
    return sim_->elapsed_us(from, to);
  }
  void synchronize(const kiln::Stream &stream) override {
    sim_->synchronize(stream);
  }
  using Device::enqueue;
  void enqueue(const kiln::LaunchDescription &launch,
               const kiln::Stream &stream) override {
    sim_->enqueue(launch, stream);
  }
  using Device::launch;
  kiln::LaunchResult launch(const kiln::LaunchDescription &launch,
                            const kiln::Stream &stream) override {
    return sim_->launch(launch, stream);
  }

protected:
  std::shared_ptr<kiln::Device> sim_;
};

} // namespace conformance
