// dap_stream: messages of the Debug Adapter Protocol: a header with a length,
// an empty line, and so many bytes of JSON.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

namespace kiln::cli {

/// Reads in a thread of its own, so that a request to pause is seen while
/// another one is being answered.
class DapStream {
public:
  /// `glance` is shown each request as it comes, from that thread.
  DapStream(int input, int output,
            std::function<void(const nlohmann::json &)> glance);
  /// Where the reader still waits for the client, it is left to its end.
  ~DapStream();
  DapStream(const DapStream &) = delete;
  DapStream &operator=(const DapStream &) = delete;

  /// The next message; nothing at the end of the input. Throws UserError where
  /// the input is no message of the protocol.
  std::optional<nlohmann::json> next();
  void send(nlohmann::json message);

private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  int output_;
  int number_ = 0;
};

} // namespace kiln::cli
