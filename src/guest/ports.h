// Which TCP ports somebody listens on, as the kernel tells it.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth::guest {

// What somebody listens on, to connect to it.
struct Listener {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::uint16_t port = 0;
};

// `text` is that of /proc/net/tcp or tcp6; lines that are none are passed over.
std::vector<Listener> parse_listeners(std::string_view text);
// Their ports, sorted, each once.
std::vector<std::uint16_t> parse_listening(std::string_view text);

// Of this network namespace.
std::vector<std::uint16_t> read_listening_ports();
std::optional<Listener> find_listener(std::uint16_t port);

}  // namespace hearth::guest
