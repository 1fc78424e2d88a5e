#include "guest/surfaces.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"

namespace hearth::guest {
namespace {

// Connections that wait to be taken; SDKs open hundreds at once.
constexpr int kBacklog = 1024;

linux::Fd listen_on(std::uint16_t port) {
  linux::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("make a socket");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw_errno("listen on port {}", port);
  }
  return socket;
}

}  // namespace

std::vector<Door> make_doors(const std::vector<SurfacePort>& ports) {
  std::vector<Door> doors;
  for (const SurfacePort& each : ports)
    doors.push_back({.surface = each.surface, .listen = listen_on(each.port)});
  return doors;
}

}  // namespace hearth::guest
