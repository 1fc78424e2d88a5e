// Which TCP ports somebody listens on, as the kernel tells it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth::guest {

// `text` is that of /proc/net/tcp or tcp6; lines that are none are passed over. Sorted, each once.
std::vector<std::uint16_t> parse_listening(std::string_view text);

// Of this network namespace.
std::vector<std::uint16_t> read_listening_ports();

}  // namespace hearth::guest
