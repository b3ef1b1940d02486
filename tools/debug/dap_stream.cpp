// dap_stream: framing, with limits.
#include "debug/dap_stream.h"

#include <kiln/base/error.h>
#include <kiln/base/text.h>

#include <cerrno>
#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

/// No editor sends more; what does is no editor.
static constexpr std::size_t kMaxHeader = 4096, kMaxBody = 16 << 20;

struct DapStream::Shared {
  std::mutex mutex;
  std::condition_variable has_message;
  std::deque<nlohmann::json> messages;
  std::string failure; ///< what is wrong with the input
  bool is_over = false;
  std::function<void(const nlohmann::json &)> glance;
};

namespace {
class DapReader {
public:
  explicit DapReader(int input) : input_(input) {}

  /// The body of the next message; nothing at the end.
  std::optional<std::string> read() {
    std::size_t end;
    while ((end = text_.find("\r\n\r\n")) == std::string::npos) {
      if (text_.size() > kMaxHeader)
        throw UserError(fmt::format("the header of a message has no end within "
                                    "{} bytes; it begins with '{}'",
                                    kMaxHeader, quote(text_, 40)));
      if (!more()) {
        if (text_.find_first_not_of(" \r\n") != std::string::npos)
          throw UserError(fmt::format("the input ends within the header '{}'",
                                      quote(text_, 40)));
        return {};
      }
    }
    std::size_t bytes = length_of(text_.substr(0, end));
    text_.erase(0, end + 4);
    while (text_.size() < bytes)
      if (!more())
        throw UserError(fmt::format("the input ends after {} of {} bytes of a "
                                    "message",
                                    text_.size(), bytes));
    std::string body = text_.substr(0, bytes);
    text_.erase(0, bytes);
    return body;
  }

private:
  static std::size_t length_of(const std::string &header) {
    constexpr std::string_view kName = "Content-Length:";
    for (std::size_t at = 0; at < header.size();) {
      std::size_t end = std::min(header.find("\r\n", at), header.size());
      std::string line = header.substr(at, end - at);
      at = end + 2;
      if (!line.starts_with(kName))
        continue;
      std::size_t first = line.find_first_not_of(' ', kName.size());
      std::size_t bytes = 0;
      const char *last = line.data() + line.size();
      if (first != std::string::npos)
        if (auto read = std::from_chars(line.data() + first, last, bytes);
            read.ec == std::errc() && read.ptr == last && bytes <= kMaxBody)
          return bytes;
      throw UserError(fmt::format("'{}': a message has from 0 to {} bytes",
                                  quote(line, 60), kMaxBody));
    }
    throw UserError(fmt::format("the header '{}' has no Content-Length",
                                quote(header, 60)));
  }
  bool more() {
    char bytes[1 << 14];
    ssize_t count;
    do
      count = ::read(input_, bytes, sizeof(bytes));
    while (count < 0 && errno == EINTR);
    if (count <= 0)
      return false;
    text_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  int input_;
  std::string text_;
};
} // namespace

DapStream::DapStream(int input, int output,
                     std::function<void(const nlohmann::json &)> glance)
    : shared_(std::make_shared<Shared>()), output_(output) {
  shared_->glance = std::move(glance);
  std::thread([shared = shared_, input] {
    DapReader reader(input);
    std::string failure;
    try {
      while (auto body = reader.read()) {
        // What is no JSON is an answerable message without anything in it.
        auto message = nlohmann::json::parse(*body, nullptr, false);
        std::lock_guard lock(shared->mutex);
        if (shared->glance)
          shared->glance(message);
        shared->messages.push_back(std::move(message));
        shared->has_message.notify_one();
      }
    } catch (const Error &error) {
      failure = error.what();
    }
    std::lock_guard lock(shared->mutex);
    shared->failure = failure;
    shared->is_over = true;
    // Nobody is there any more: what runs shall end.
    if (shared->glance)
      shared->glance({{"command", "disconnect"}});
    shared->has_message.notify_one();
  }).detach();
}

DapStream::~DapStream() {
  std::lock_guard lock(shared_->mutex);
  shared_->glance = nullptr;
}

std::optional<nlohmann::json> DapStream::next() {
  std::unique_lock lock(shared_->mutex);
  shared_->has_message.wait(
      lock, [&] { return !shared_->messages.empty() || shared_->is_over; });
  if (shared_->messages.empty()) {
    if (!shared_->failure.empty())
      throw UserError(shared_->failure);
    return {};
  }
  nlohmann::json message = std::move(shared_->messages.front());
  shared_->messages.pop_front();
  return message;
}

void DapStream::send(nlohmann::json message) {
  message["seq"] = ++number_;
  std::string body =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text =
      fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  for (std::size_t sent = 0; sent < text.size();) {
    ssize_t count = write(output_, text.data() + sent, text.size() - sent);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return; // nobody reads; the end of the input is next
    sent += static_cast<std::size_t>(count);
  }
}

} // namespace kiln::cli
