#include "cli/listening.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <limits>
#include <memory>

#include "base/error.h"
#include "cli/values.h"

namespace hearth::cli {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses parse_address(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  // No names: what they stand for may change, and an engine on the wrong address is open to others.
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    fail(Code::invalid, "--listen: '{}' is no address; write one such as 127.0.0.1, 0.0.0.0 or ::1",
         address);
  }
  return {found, &::freeaddrinfo};
}

// Where a client on this machine finds what listens on `address`.
std::string reachable(const std::string& address) {
  if (address == "0.0.0.0") return "127.0.0.1";
  return address == "::" ? "::1" : address;
}

// As it stands in a URL.
std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : '[' + address + ']';
}

std::string bound_port(int socket_fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(socket_fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                    NI_NUMERICSERV) != 0) {
    throw_errno("ask which port was taken");
  }
  return port.data();
}

}  // namespace

Listening listen_on(const std::string& address, std::uint16_t port, const std::string& port_flag) {
  const Addresses where = parse_address(address, port);
  linux::Fd socket(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("make a socket for {}", address);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = ::bind(socket.get(), where->ai_addr, where->ai_addrlen) == 0;
  if (!bound || ::listen(socket.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) {
      fail(Code::already_exists, "port {} of {} is taken; choose another with {} (0: any free one)",
           port, address, port_flag);
    }
    if (errno == EADDRNOTAVAIL)
      fail(Code::invalid, "--listen: '{}' is not an address of this machine", address);
    throw_errno("listen on port {} of {} ({})", port, address, port_flag);
  }
  std::string found_at = reachable(address);
  std::string url = fmt::format("http://{}:{}", bracketed(found_at), bound_port(socket.get()));
  return {.socket = std::move(socket), .address = std::move(found_at), .url = std::move(url)};
}

Listening listen_on(const std::string& bind_address, const std::string& flag) {
  const std::size_t colon = bind_address.rfind(':');
  if (colon == std::string::npos) {
    fail(Code::invalid, "{}: '{}' is no ADDRESS:PORT; write :8080 or 127.0.0.1:8080", flag,
         bind_address);
  }
  const std::uint32_t port =
      parse_count(flag, bind_address.substr(colon + 1), std::numeric_limits<std::uint16_t>::max());
  std::string address = bind_address.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  if (address == "localhost") address = "127.0.0.1";
  if (!address.empty()) return listen_on(address, static_cast<std::uint16_t>(port), flag);
  // Both families, where there are two.
  try {
    return listen_on("::", static_cast<std::uint16_t>(port), flag);
  } catch (const Error& error) {
    if (error.code() == Code::already_exists) throw;
    return listen_on("0.0.0.0", static_cast<std::uint16_t>(port), flag);
  }
}

}  // namespace hearth::cli
