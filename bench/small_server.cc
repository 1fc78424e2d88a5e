#include "bench/small_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

// Of one whole request at the beginning of `bytes`; 0: there is more to come. Clients here spell
// their headers as we do, or (proxies) have no body.
std::size_t request_size(std::string_view bytes) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  std::size_t size = 0;
  if (const std::size_t at = bytes.substr(0, head).find(kLength); at != std::string_view::npos)
    std::from_chars(bytes.data() + at + kLength.size(), bytes.data() + head, size);
  const std::size_t all = head + 4 + size;
  return all <= bytes.size() ? all : 0;
}

void watch(int epoll_fd, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) throw_errno("watch a connection");
}

}  // namespace

std::string answer_text(unsigned status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
      body.size(), body);
}

SmallServer::Answer SmallServer::echo(unsigned status, std::size_t body_bytes) {
  return [answer = answer_text(status, std::string(body_bytes, 'x'))](
             std::string_view) -> std::string_view { return answer; };
}

SmallServer::SmallServer(Answer answer)
    : answer_(std::move(answer)),
      listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!listening_ || !epoll_ ||
      ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 ||
      ::listen(listening_.get(), SOMAXCONN) < 0)
    throw_errno("listen");
  watch(epoll_.get(), listening_.get());
}

std::uint16_t SmallServer::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0)
    throw_errno("ask for a port");
  return ntohs(address.sin_port);
}

void SmallServer::accept() {
  linux::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto index = static_cast<std::size_t>(socket.get());
  if (connections_.size() <= index) connections_.resize(index + 1);
  watch(epoll_.get(), socket.get());
  connections_[index] = {.socket = std::move(socket), .request = {}};
}

void SmallServer::talk(int connection_fd) {
  Connection& connection = connections_[static_cast<std::size_t>(connection_fd)];
  std::array<char, 16384> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const ssize_t got = ::recv(connection_fd, piece.data(), piece.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    connection = {};
    return;
  }
  connection.request.append(piece.data(), static_cast<std::size_t>(got));
  while (const std::size_t size = request_size(connection.request)) {
    const std::string_view answer = answer_(std::string_view(connection.request).substr(0, size));
    connection.request.erase(0, size);
    // An answer always fits into an empty socket buffer, and nobody here asks ahead.
    if (::send(connection_fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) connection = {};
  }
}

void SmallServer::serve() {
  std::array<epoll_event, 128> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) throw_errno("wait for requests");
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listening_.get()) {
        accept();
      } else {
        talk(fd);
      }
    }
  }
}

}  // namespace hearth::bench
