// A port of this machine, taken before anything else is started.
#pragma once

#include <cstdint>
#include <string>

#include "linux/fd.h"

namespace hearth::cli {

struct Listening {
  linux::Fd socket;
  std::string address;  // that a client on this machine can connect to
  std::string url;      // http://ADDRESS:PORT
};

// Throws Error(invalid) for what is no address, Error(already_exists) for a port that is taken;
// both name the flag that would change it.
Listening listen_on(const std::string& address, std::uint16_t port, const std::string& port_flag);
// For "ADDRESS:PORT", "[ADDRESS]:PORT" or ":PORT", which is every address.
Listening listen_on(const std::string& bind_address, const std::string& flag);

}  // namespace hearth::cli
