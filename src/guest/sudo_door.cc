#include "guest/sudo_door.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/error.h"

namespace hearth::guest {
namespace {

// Bursts of a parallel script wait here.
constexpr int kBacklog = 256;

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

// Such names belong to a network namespace, which containers of a pod share. What they do not share
// is the namespace of processes.
Address door_address() {
  struct stat status{};
  if (::stat("/proc/self/ns/pid", &status) != 0) throw_errno("look for the sandbox's own name");
  const std::string text = fmt::format("hearth-sudo-{}", status.st_ino);
  Address address;
  address.name.sun_family = AF_UNIX;
  std::ranges::copy(text, address.name.sun_path + 1);  // the first byte stays zero: abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

linux::Fd make_socket(int flags) {
  linux::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!socket) throw_errno("make a unix socket");
  return socket;
}

}  // namespace

void link_sudo() {
  // Of no consequence where it fails: an image without /usr/bin has no PATH that names it.
  [[maybe_unused]] const int linked = ::symlink(kSudoPath, kSudoLink);
}

linux::Fd open_sudo_door() {
  linux::Fd socket = make_socket(SOCK_NONBLOCK);
  const Address address = door_address();
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw_errno("make the door of sudo");
  }
  return socket;
}

linux::Channel knock_at_sudo_door() {
  linux::Fd socket = make_socket(0);
  const Address address = door_address();
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0)
    fail(Code::unavailable, "this sandbox does not offer it");
  const linux::Peer peer = linux::peer_of(socket.get());
  if (peer.pid != 1 || peer.uid != 0) fail(Code::unavailable, "whoever answers is not the sandbox");
  return linux::Channel(std::move(socket));
}

}  // namespace hearth::guest
