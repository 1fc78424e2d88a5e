#include "linux/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "linux/sealed_memfd.h"

namespace hearth::linux {
namespace {

// A packet is one of these and what follows; do not renumber.
constexpr char kInline = 'i';
constexpr char kInMemfd = 'm';  // the first descriptor holds the bytes

// Comfortably below the smallest usual send buffer (208 KiB, counted with overhead).
constexpr std::size_t kMaxInline = std::size_t{64} << 10;

void wait_for(int fd, short events, Deadline deadline, const char* what) {
  while (true) {
    pollfd waiting{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
    if (ready > 0) return;
    if (ready == 0) fail(Code::timeout, "{}: the deadline passed", what);
    if (errno != EINTR) throw_errno("{}", what);
  }
}

// One sendmsg(2). False for a full buffer; throws for anything else.
bool send_packet(int socket_fd, char kind, std::string_view body, std::span<const int> fds) {
  iovec parts[2] = {{.iov_base = &kind, .iov_len = 1},
                    {.iov_base = const_cast<char*>(body.data()), .iov_len = body.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * (kMaxMessageFds + 1))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  while (::sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    throw_errno("send a message");
  }
  return true;
}

std::vector<Fd> take_fds(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

sockaddr_un address_of(int dir_fd, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}/{}", dir_fd, name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    fail(Code::invalid, "socket name '{}' is too long", name);
  std::ranges::copy(path, address.sun_path);
  return address;
}

Fd make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw_errno("make a unix socket");
  return socket;
}

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("make a pair of unix sockets");
  }
  return {Channel(Fd(ends[0])), Channel(Fd(ends[1]))};
}

bool Channel::try_send(std::string_view bytes, std::span<const int> fds) {
  if (fds.size() > kMaxMessageFds) fail(Code::invalid, "{} descriptors in a message", fds.size());
  if (bytes.size() <= kMaxInline) return send_packet(fd(), kInline, bytes, fds);
  if (bytes.size() > kMaxMessage) {
    fail(Code::exhausted, "message of {} bytes is larger than {}", bytes.size(), kMaxMessage);
  }
  const Fd body = make_sealed_memfd("message", bytes);
  std::vector<int> all{body.get()};
  all.insert(all.end(), fds.begin(), fds.end());
  return send_packet(fd(), kInMemfd, {}, all);
}

void Channel::send(std::string_view bytes, std::span<const int> fds, Deadline deadline) {
  while (!try_send(bytes, fds)) wait_for(fd(), POLLOUT, deadline, "send a message");
}

Channel::Arrival Channel::receive_packet(Message& message, bool wait) {
  // A string of full size would be filled with zeros for every message; and what every thread has
  // is made for threads that never read.
  static thread_local std::unique_ptr<char[]> packet;
  if (!packet) packet.reset(new char[1 + kMaxInline]);
  message.fds.clear();
  iovec part{.iov_base = packet.get(), .iov_len = 1 + kMaxInline};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * (kMaxMessageFds + 1))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;

  ssize_t got = 0;
  do {
    got = ::recvmsg(fd(), &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Arrival::nothing_yet;
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return Arrival::hung_up;
  if (got < 0) throw_errno("receive a message");

  message.fds = take_fds(header);
  // What came whole, but for files that this process has no number left for.
  if ((header.msg_flags & MSG_CTRUNC) != 0 && message.fds.size() <= kMaxMessageFds)
    throw_errno_text(EMFILE, "receive the files of a message");
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    fail(Code::invalid, "message was cut off");
  if (packet[0] == kInline) {
    message.bytes.assign(packet.get() + 1, static_cast<std::size_t>(got) - 1);
    return Arrival::message;
  }
  if (packet[0] != kInMemfd || message.fds.empty())
    fail(Code::invalid, "message of an unknown kind");
  message.bytes = read_sealed_memfd(message.fds.front().get(), kMaxMessage);
  message.fds.erase(message.fds.begin());
  return Arrival::message;
}

std::optional<Message> Channel::receive(Deadline deadline) {
  Message message;
  while (true) {
    switch (receive_packet(message, deadline.is_never())) {
      case Arrival::message:
        return message;
      case Arrival::hung_up:
        return std::nullopt;
      case Arrival::nothing_yet:
        wait_for(fd(), POLLIN, deadline, "wait for a message");
    }
  }
}

Fd listen_at(int dir_fd, const std::string& name, int backlog) {
  Fd socket = make_socket();
  set_nonblocking(socket.get(), true);
  ::unlinkat(dir_fd, name.c_str(), 0);
  const sockaddr_un address = address_of(dir_fd, name);
  // fchmod(2) before bind(2) sets the mode that the file is born with.
  if (::fchmod(socket.get(), 0600) != 0) throw_errno("set the mode of socket '{}'", name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("make socket '{}'", name);
  }
  if (::listen(socket.get(), backlog) != 0) throw_errno("listen on socket '{}'", name);
  return socket;
}

Channel connect_at(int dir_fd, const std::string& name) {
  Fd socket = make_socket();
  const sockaddr_un address = address_of(dir_fd, name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("connect to socket '{}'", name);
  }
  return Channel(std::move(socket));
}

std::optional<Channel> try_accept(int listen_fd) {
  while (true) {
    Fd socket(::accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) return Channel(std::move(socket));
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    throw_errno("accept a connection");
  }
}

Peer peer_of(int socket_fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw_errno("ask who is at the other end of a socket");
  }
  return {.pid = credentials.pid, .uid = credentials.uid};
}

}  // namespace hearth::linux
