#include "linux/netlink_socket.h"

#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <exception>
#include <thread>

#include "base/error.h"
#include "linux/namespaces.h"
#include "linux/netlink_message.h"

namespace hearth::linux {
namespace {

// The kernel fills at most this much per answer of a dump (net/netlink/af_netlink.c, netlink_dump).
constexpr std::size_t kReceiveSize = std::size_t{32} << 10;
constexpr timeval kReceiveTimeout{.tv_sec = 5, .tv_usec = 0};
// More than this many answers to one question is not a host that we run on.
constexpr int kMostAnswers = 1 << 20;

Fd open_socket(int family) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family));
  if (!socket) throw_errno("open a netlink socket");
  sockaddr_nl address{.nl_family = AF_NETLINK};
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("bind a netlink socket");
  }
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kReceiveTimeout, sizeof kReceiveTimeout);
  // Explanations with errors, and no copy of our request in them. Linux 4.12 and 4.2; without them
  // errors are merely terse.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  return socket;
}

// A socket belongs to the namespace of the thread that opens it, for good.
Fd open_socket_in(int family, int netns_fd) {
  Fd socket;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      enter_namespace(netns_fd, CLONE_NEWNET);
      socket = open_socket(family);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return socket;
}

}  // namespace

NetlinkSocket::NetlinkSocket(int family) : socket_(open_socket(family)) {}

NetlinkSocket::NetlinkSocket(int family, int netns_fd)
    : socket_(open_socket_in(family, netns_fd)) {}

void NetlinkSocket::send(std::string_view messages, const std::string& what) {
  // A message must fit into the socket's buffer as a whole. Some of ours are long; where we may not
  // go past the system's limit, send() says so.
  constexpr std::size_t kUsual = std::size_t{64} << 10;
  if (messages.size() > kUsual) {
    const int size = static_cast<int>(messages.size() * 2);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  }
  if (::send(socket_.get(), messages.data(), messages.size(), 0) < 0) throw_errno("{}", what);
}

std::string_view NetlinkSocket::receive(const std::string& what) {
  received_.resize(kReceiveSize);
  while (true) {
    sockaddr_nl sender{};
    iovec part{.iov_base = received_.data(), .iov_len = received_.size()};
    msghdr message{
        .msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &part, .msg_iovlen = 1};
    const ssize_t got = ::recvmsg(socket_.get(), &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) fail(Code::timeout, "{}: the kernel does not answer", what);
    if (got < 0) throw_errno("{}", what);
    if ((message.msg_flags & MSG_TRUNC) != 0) fail(Code::internal, "{}: answer too long", what);
    // Other processes can send to a netlink socket; the kernel is number 0.
    if (sender.nl_pid != 0) continue;
    return std::string_view(received_).substr(0, static_cast<std::size_t>(got));
  }
}

NetlinkVerdict NetlinkSocket::exchange(NetlinkRequest& request, const std::string& what,
                                       const std::function<void(const NetlinkReply&)>& each) {
  const std::uint32_t sequence = next_sequence();
  send(request.bytes(sequence), what);
  for (int answers = 0; answers < kMostAnswers; ++answers) {
    for (const NetlinkReply& reply : parse_netlink_messages(receive(what))) {
      if (reply.header.nlmsg_seq != sequence) continue;  // of a request that timed out
      if (reply.header.nlmsg_type == NLMSG_ERROR) return parse_netlink_verdict(reply);
      if (reply.header.nlmsg_type == NLMSG_DONE) return {.error = -reply.fixed<int>()};
      each(reply);
    }
  }
  fail(Code::internal, "{}: answers without end", what);
}

void throw_verdict(const NetlinkVerdict& verdict, const std::string& what) {
  const std::string where = verdict.text.empty() ? what : fmt::format("{}: {}", what, verdict.text);
  if (verdict.error == ENODEV) {
    fail(Code::not_found, "{}: {}", where, errno_text(verdict.error));
  }
  throw_errno_text(verdict.error, where);
}

}  // namespace hearth::linux
