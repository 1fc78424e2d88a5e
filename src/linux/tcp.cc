#include "linux/tcp.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"

namespace hearth::linux {

TcpListener listen_tcp(std::uint32_t address, std::uint16_t port, int backlog) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("make a socket");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(address);
  place.sin_port = htons(port);
  socklen_t size = sizeof place;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(socket.get(), backlog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    throw_errno("listen on {}:{}", address == kLoopback ? "127.0.0.1" : "0.0.0.0", port);
  }
  return {.socket = std::move(socket), .port = ntohs(place.sin_port)};
}

}  // namespace hearth::linux
