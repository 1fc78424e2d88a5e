#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/id.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

constexpr int kPatienceMilliseconds = 10'000;

int connected(int family, const sockaddr* address, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address, length) != 0) throw_errno("connect a raw client");
  return fd;
}

int milliseconds(Duration time) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

bool wait_for(int fd, short events, int patience_milliseconds) {
  pollfd state{.fd = fd, .events = events, .revents = 0};
  return ::poll(&state, 1, patience_milliseconds) > 0;
}

}  // namespace

RawClient::RawClient(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fd_ = connected(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof(address));
}

RawClient::RawClient(const std::string& unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, unix_path.c_str(), sizeof(address.sun_path) - 1);
  fd_ = connected(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof(address));
}

RawClient::~RawClient() {
  close();
}

void RawClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the server has had enough; reading will show its answer
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t RawClient::send_until_stuck(std::string_view piece, std::size_t most,
                                        Duration stall) const {
  std::size_t sent = 0;
  while (sent < most && wait_for(fd_, POLLOUT, milliseconds(stall))) {
    const ssize_t count = ::send(fd_, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) continue;
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  return sent;
}

void RawClient::half_close() const {
  ::shutdown(fd_, SHUT_WR);
}

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

bool RawClient::fill() {
  if (!wait_for(fd_, POLLIN, kPatienceMilliseconds)) return false;
  std::array<char, 4096> buffer{};
  const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  ahead_.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

bool RawClient::has_answer(Duration patience) const {
  return wait_for(fd_, POLLIN, milliseconds(patience));
}

std::string RawClient::read_until(std::string_view end) {
  std::size_t at = 0;
  while ((at = ahead_.find(end)) == std::string::npos) {
    if (!fill()) return std::exchange(ahead_, {});
  }
  std::string found = ahead_.substr(0, at + end.size());
  ahead_.erase(0, at + end.size());
  return found;
}

std::string RawClient::read_exactly(std::size_t count) {
  while (ahead_.size() < count && fill()) {
  }
  std::string found = ahead_.substr(0, count);
  ahead_.erase(0, found.size());
  return found;
}

std::string RawClient::read_response() {
  std::string head = read_until("\r\n\r\n");
  constexpr std::string_view kLength = "Content-Length: ";
  const auto at = head.find(kLength);
  if (at == std::string::npos) return head;
  const auto length = std::strtoull(head.c_str() + at + kLength.size(), nullptr, 10);
  return head + read_exactly(length);
}

std::string RawClient::read_all() {
  while (fill()) {
  }
  return std::exchange(ahead_, {});
}

bool RawClient::sees_end() {
  std::array<char, 4096> buffer{};
  while (wait_for(fd_, POLLIN, kPatienceMilliseconds)) {
    if (::recv(fd_, buffer.data(), buffer.size(), 0) <= 0) return true;
  }
  return false;
}

TemporaryFolder::TemporaryFolder()
    : folder_(std::filesystem::temp_directory_path() / ("hearth-net-" + random_hex(8))) {
  std::filesystem::create_directory(folder_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace hearth::net
