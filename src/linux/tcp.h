// Listening sockets of TCP over IPv4.
#pragma once

#include <cstdint>

#include "linux/fd.h"

namespace hearth::linux {

inline constexpr std::uint32_t kLoopback = 0x7f00'0001;
inline constexpr std::uint32_t kEveryAddress = 0;

struct TcpListener {
  Fd socket;  // non-blocking
  std::uint16_t port = 0;
};

// Port 0: any free one. Throws Error that names address and port.
TcpListener listen_tcp(std::uint32_t address, std::uint16_t port, int backlog);

}  // namespace hearth::linux
