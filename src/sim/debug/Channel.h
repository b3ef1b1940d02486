// Channel: messages between the process of the debugger and those that
// simulate: lines of JSON on a socket, which can bring another channel along.
#pragma once

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace kiln::sim {

class Channel {
public:
  Channel() = default;
  explicit Channel(int file) : file_(file) {}
  Channel(Channel &&other) noexcept { *this = std::move(other); }
  Channel &operator=(Channel &&other) noexcept;
  ~Channel() { close(); }

  /// Both ends. Throws RuntimeError.
  static std::pair<Channel, Channel> pair();

  bool isOpen() const { return file_ >= 0; }
  void close();
  /// False where the other end is gone. `along` is closed here afterwards.
  bool send(const nlohmann::json &message, Channel along);
  bool send(const nlohmann::json &message) { return send(message, Channel()); }
  enum class Got : std::uint8_t { message, nothing, closed };
  /// Wait for the next message; 0 ms: look, -1: for ever.
  Got receive(nlohmann::json &message, int limitMs = -1);
  /// What came along with a message, in their order.
  Channel takeAlong();

private:
  bool takeLine(nlohmann::json &message);

  int file_ = -1;
  std::string text_;
  std::deque<int> along_;
};

} // namespace kiln::sim
