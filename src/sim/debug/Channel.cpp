// Channel: lines of JSON, and descriptors beside them.
#include "sim/debug/Channel.h"
#include "support/Error.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln::sim {

/// Answers are bounded well below it; a process that says more is broken.
static constexpr std::size_t kMaxMessage = std::size_t(256) << 20;

Channel &Channel::operator=(Channel &&other) noexcept {
  close();
  file_ = std::exchange(other.file_, -1);
  text_ = std::move(other.text_);
  along_ = std::exchange(other.along_, {});
  return *this;
}

void Channel::close() {
  if (file_ >= 0)
    ::close(std::exchange(file_, -1));
  for (int file : along_)
    ::close(file);
  along_.clear();
}

std::pair<Channel, Channel> Channel::pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    runtimeError("a socket to a checkpoint could not be made: {}",
                 std::strerror(errno));
  return {Channel(ends[0]), Channel(ends[1])};
}

bool Channel::send(const nlohmann::json &message, Channel along) {
  std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line += '\n';
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  for (std::size_t sent = 0; sent < line.size();) {
    iovec piece{line.data() + sent, line.size() - sent};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (sent == 0 && along.isOpen()) {
      header.msg_control = control;
      header.msg_controllen = sizeof(control);
      cmsghdr *first = CMSG_FIRSTHDR(&header);
      first->cmsg_level = SOL_SOCKET;
      first->cmsg_type = SCM_RIGHTS;
      first->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(first), &along.file_, sizeof(int));
    }
    ssize_t count = sendmsg(file_, &header, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

bool Channel::takeLine(nlohmann::json &message) {
  std::size_t end = text_.find('\n');
  if (end == std::string::npos)
    return false;
  message = nlohmann::json::parse(text_.substr(0, end), nullptr, false);
  text_.erase(0, end + 1);
  return true;
}

Channel::Got Channel::receive(nlohmann::json &message, int limitMs) {
  while (!takeLine(message)) {
    pollfd ready{file_, POLLIN, 0};
    int count = poll(&ready, 1, limitMs);
    if (count == 0 || (count < 0 && errno == EINTR))
      return Got::nothing;
    char bytes[1 << 16];
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    iovec piece{bytes, sizeof(bytes)};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    ssize_t got = recvmsg(file_, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0 || text_.size() > kMaxMessage)
      return Got::closed;
    for (cmsghdr *one = CMSG_FIRSTHDR(&header); one;
         one = CMSG_NXTHDR(&header, one))
      for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= one->cmsg_len;
           ++i) {
        int file;
        std::memcpy(&file, CMSG_DATA(one) + i * sizeof(int), sizeof(int));
        along_.push_back(file);
      }
    text_.append(bytes, static_cast<std::size_t>(got));
  }
  return Got::message;
}

Channel Channel::takeAlong() {
  if (along_.empty())
    return {};
  Channel channel(along_.front());
  along_.pop_front();
  return channel;
}

} // namespace kiln::sim
