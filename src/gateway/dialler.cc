#include "gateway/dialler.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/ip_text.h"
#include "base/log.h"
#include "client/watch_cache.h"
#include "model/json.h"
#include "pool/reach.h"

namespace hearth::gateway {
namespace {

Dialled connect_socket(int family, const void* address, socklen_t size) {
  linux::Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {.state = DialState::refused};
  const auto* generic = static_cast<const sockaddr*>(address);
  if (::connect(socket.get(), generic, size) == 0) {
    return {.state = DialState::connected, .socket = std::move(socket)};
  }
  if (errno == EINPROGRESS) return {.state = DialState::connecting, .socket = std::move(socket)};
  return {.state = DialState::refused};
}

}  // namespace

Dialled dial_tcp(const std::string& address, std::uint16_t port) {
  if (const auto v4 = parse_ipv4(address)) {
    const sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = *v4};
    return connect_socket(AF_INET, &to, sizeof to);
  }
  if (const auto v6 = parse_ipv6(address)) {
    const sockaddr_in6 to{.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *v6};
    return connect_socket(AF_INET6, &to, sizeof to);
  }
  return {.state = DialState::absent};
}

Dialled Dialler::dial_pod(const Route& route, std::uint16_t port) const {
  const client::Object pod = pods_.find(route.key.ns, route.pod_name);
  // A Sandbox may name any pod of its namespace; only its own is opened to it.
  if (!pod || !model::is_controlled_by(*pod, route.uid)) return {};
  if (reach_ != nullptr && reach_->is_here(*pod)) {
    return {.state = DialState::connected, .socket = reach_->connect(*pod, port)};
  }
  return dial_tcp(std::string(model::text_at(*pod, {"status", "podIP"})), port);
}

Dialled Dialler::dial(const Route& route, std::uint16_t port) const {
  try {
    return dial_pod(route, port);
  } catch (const Error& error) {
    log::debug("connect to a sandbox", {{"sandbox", route.key.text()}, {"why", error.what()}});
    const bool is_refused = std::string_view(error.what()).find("refused") != std::string::npos;
    return {.state = is_refused ? DialState::refused : DialState::absent};
  } catch (const std::exception& error) {
    log::warning("connect to a sandbox", {{"sandbox", route.key.text()}, {"why", error.what()}});
    return {};
  }
}

}  // namespace hearth::gateway
