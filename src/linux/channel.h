// Whole messages, with file descriptors, between two processes on this machine.
//
// A channel is a connected unix SEQPACKET socket: a message arrives whole or not at all, together
// with the descriptors sent with it. What does not fit a packet travels in a sealed memfd behind
// the same call, up to kMaxMessage. The other end may be hostile: sizes and counts are bounded, and
// descriptors that nobody asked for are closed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::linux {

// Two of what execve(2) takes at most, so that any command line the kernel accepts fits.
inline constexpr std::size_t kMaxMessage = std::size_t{4} << 20;
// An image of 128 layers with as many volumes as anyone needs; the kernel takes 253.
inline constexpr std::size_t kMaxMessageFds = 192;

struct Message {
  std::string bytes;
  std::vector<Fd> fds;
};

class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}

  static std::pair<Channel, Channel> make_pair();

  // Blocks until the kernel took the message. Throws Error: timeout, unavailable (the other end is
  // gone), exhausted (larger than kMaxMessage).
  void send(std::string_view bytes, std::span<const int> fds = {},
            Deadline deadline = Deadline::never());

  // For event loops: false when the other end reads too slowly and its buffer is full.
  bool try_send(std::string_view bytes, std::span<const int> fds = {});

  // The next message; nothing when the other end hung up. Throws Error: timeout, invalid,
  // exhausted (this process may have no more files open than it has).
  std::optional<Message> receive(Deadline deadline = Deadline::never());

  enum class Arrival { message, nothing_yet, hung_up };
  // For event loops: never waits.
  Arrival try_receive(Message& message) { return receive_packet(message, /*wait=*/false); }

  int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  Fd take_fd() && { return std::move(socket_); }

 private:
  Arrival receive_packet(Message& message, bool wait);

  Fd socket_;
};

// A listening socket at dir_fd/name, mode 0600, replacing what is there. The folder is named by
// descriptor because a socket address holds 107 bytes only.
Fd listen_at(int dir_fd, const std::string& name, int backlog = 64);

// Throws Error(unavailable) when nobody listens, not_found when nothing is there.
Channel connect_at(int dir_fd, const std::string& name);

// The next connection, non-blocking socket: nothing if there is none right now.
std::optional<Channel> try_accept(int listen_fd);

struct Peer {
  int pid = 0;
  unsigned uid = 0;
};
Peer peer_of(int socket_fd);

}  // namespace hearth::linux
