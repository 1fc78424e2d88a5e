// The kernel's table of connections, which address translation works by, of one network namespace.
//
// A ConntrackSocket belongs to the namespace it was opened in, wherever its user goes. Not
// thread-safe. Everything throws Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "linux/netlink_socket.h"

namespace hearth::linux {

// IPv4, in host byte order: as its first packet was sent, and as answers come.
struct TrackedConnection {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t answer_source = 0;
  std::uint32_t answer_destination = 0;
};

class ConntrackSocket {
 public:
  // In the namespace of the calling thread.
  ConntrackSocket();

  // Takes out those that are chosen, and returns how many: their next packet is a first one. Goes
  // through all of the table, which is about a millisecond on a machine with much memory.
  std::size_t forget(const std::function<bool(const TrackedConnection&)>& is_chosen);

 private:
  NetlinkSocket socket_;
};

}  // namespace hearth::linux
