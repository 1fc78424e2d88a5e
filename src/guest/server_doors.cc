// The server's dealings with the sandbox's network and its owner: ports inside, late configuration.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error.h"
#include "guest/configure.h"
#include "guest/ports.h"
#include "guest/server_internal.h"

namespace hearth::guest {
namespace {

using namespace std::chrono_literals;

// How soon somebody who follows hears of a new port. Nobody follows, nobody looks.
constexpr Duration kPortsInterval = 250ms;

// The loopback answers at once, or as soon as the kernel finds time. A listener whose queue is full
// lets its caller wait, not us.
constexpr int kLoopbackMilliseconds = 20;

// A connection within the machine, or why there is none.
struct Attempt {
  Attempt(const sockaddr* address, socklen_t size)
      : socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (!socket) throw_errno("make a socket");
    if (::connect(socket.get(), address, size) == 0) return;
    error = errno;
    if (error != EINPROGRESS) return;
    pollfd waited{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    ::poll(&waited, 1, kLoopbackMilliseconds);
    socklen_t error_size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  }

  linux::Fd socket;
  int error = 0;
};

}  // namespace

void Server::connect_to_port(Client& client, const ConnectRequest& request) {
  sockaddr_in loopback{.sin_family = AF_INET, .sin_port = htons(request.port)};
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Attempt attempt(reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback);
  // Some listen on one address alone: ::1, where a resolver says so of localhost, or the sandbox's.
  if (attempt.error == ECONNREFUSED) {
    if (const auto listener = find_listener(request.port)) {
      attempt = Attempt(reinterpret_cast<const sockaddr*>(&listener->address), listener->size);
    }
  }
  if (attempt.error == ECONNREFUSED)
    fail(Code::unavailable, "connection refused: nobody listens on port {} in the sandbox",
         request.port);
  if (attempt.error != 0)
    throw_errno_text(attempt.error, fmt::format("connect to port {} in the sandbox", request.port));
  linux::set_nonblocking(attempt.socket.get(), false);
  reply(client, Connected{}, attempt.socket.get());
}

void Server::start_ports(Client& client, const PortsRequest& request) {
  client.ports = read_listening_ports();
  client.follows_ports = request.follow;
  if (request.follow) ports_due_ = AwakeDeadline::after(kPortsInterval);
  reply(client, Ports{.listening = client.ports});
}

void Server::tell_of_ports() {
  ports_due_ = AwakeDeadline::never();
  const std::vector<std::uint16_t> now = read_listening_ports();
  std::vector<std::uint64_t> gone;
  for (auto& [id, client] : clients_) {
    if (!client->follows_ports) continue;
    ports_due_ = AwakeDeadline::after(kPortsInterval);
    if (client->ports == now) continue;
    client->ports = now;
    try {
      reply(*client, Ports{.listening = now});
    } catch (const Error&) {
      gone.push_back(id);
    }
  }
  for (const std::uint64_t id : gone) drop_client(id);
}

void Server::become_somebodys(Client& client, const ConfigureRequest& request) {
  if (configured_) fail(Code::conflict, "the sandbox was configured before, and is somebody's");
  configure(request.configuration, core_);
  configured_ = true;
  reply(client, Configured{});
}

}  // namespace hearth::guest
