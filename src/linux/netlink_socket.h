// A socket to one of the kernel's netlink families: questions out, answers in.
//
// It belongs to the network namespace it was opened in, wherever its user goes. Every answer is
// waited for, five seconds at most. Not thread-safe. Everything throws Error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::linux {

class NetlinkRequest;
struct NetlinkReply;
struct NetlinkVerdict;

class NetlinkSocket {
 public:
  // `family` is a NETLINK_... number. In the namespace of the calling thread.
  explicit NetlinkSocket(int family);
  // In the given one; the caller stays where it is.
  NetlinkSocket(int family, int netns_fd);

  // Sends, hands every answer to `each`, and returns how the kernel ended the exchange.
  NetlinkVerdict exchange(NetlinkRequest& request, const std::string& what,
                          const std::function<void(const NetlinkReply&)>& each);

  // For exchanges of another shape.
  std::uint32_t next_sequence() { return ++sequence_; }
  void send(std::string_view messages, const std::string& what);
  // Valid until the next one.
  std::string_view receive(const std::string& what);

  int fd() const { return socket_.get(); }

 private:
  Fd socket_;
  std::uint32_t sequence_ = 0;
  std::string received_;
};

// Error for a verdict that is none of success, with the kernel's own explanation where it has one.
[[noreturn]] void throw_verdict(const NetlinkVerdict& verdict, const std::string& what);

}  // namespace hearth::linux
