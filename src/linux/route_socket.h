// Links, addresses and routes of one network namespace, by rtnetlink(7).
//
// A RouteSocket belongs to the namespace it was opened in, wherever its user goes. One request at a
// time, each waits for the kernel's answer (five seconds at most). Not thread-safe. Everything
// throws Error, with the kernel's own explanation where it gives one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "linux/fd.h"

namespace hearth::linux {

class NetlinkRequest;
struct NetlinkReply;
struct NetlinkVerdict;

struct Link {
  int index = 0;
  std::string name;
  bool up = false;
  std::uint32_t mtu = 0;
  std::string mac;  // "02:00:0a:01:02:03", empty where a link has none
};

struct LinkAddress {
  int link_index = 0;
  std::string address;  // "10.1.2.3"
  unsigned prefix = 0;
};

struct VethSpec {
  std::string name;  // the end in this namespace
  std::string peer_name;
  int peer_netns_fd = -1;  // where the other end is born; -1: here
  std::string peer_mac;    // empty: the kernel's choice
  std::uint32_t mtu = 0;   // of both ends; 0: the kernel's choice
};

// By a neighbour, or by a link that reaches the destination directly. Both: by a neighbour on that
// link, even if no address of ours says that it is there.
struct RouteVia {
  std::string gateway;
  std::string link;
};

class RouteSocket {
 public:
  // In the namespace of the calling thread.
  RouteSocket();
  // In the given one; the caller stays where it is.
  explicit RouteSocket(int netns_fd);

  std::vector<Link> list_links();
  std::optional<int> index_of(const std::string& link);
  void link_up(const std::string& link);

  // Both ends come into being where they belong: moving one afterwards takes 27 ms (Linux 6.18). To
  // take a pair away, drop the namespace at its other end if you can; deleting takes 24 ms.
  void create_veth(const VethSpec& spec);
  // A link that is not there is success. Its peer goes with it.
  void delete_link(const std::string& link);

  // IPv6 addresses are usable at once (no duplicate address detection).
  void add_address(const std::string& link, const std::string& address, unsigned prefix);
  std::vector<LinkAddress> list_addresses();

  void add_default_route(const std::string& gateway);
  // `cidr` as "10.0.0.0/8", "fd00::/8" or "0.0.0.0/0".
  void add_route(const std::string& cidr, const RouteVia& via);

 private:
  // Sends, hands every answer to `each`, and returns how the kernel ended the exchange.
  NetlinkVerdict exchange(NetlinkRequest& request, const std::string& what,
                          const std::function<void(const NetlinkReply&)>& each);
  void change(NetlinkRequest& request, const std::string& what);
  std::string receive(const std::string& what);
  int get_index(const std::string& link);

  Fd socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace hearth::linux
