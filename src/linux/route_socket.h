// Links, addresses and routes of one network namespace, by rtnetlink(7).
//
// A RouteSocket belongs to the namespace it was opened in, wherever its user goes. One request at a
// time, each waits for the kernel's answer (five seconds at most). Not thread-safe. Everything
// throws Error, with the kernel's own explanation where it gives one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linux/netlink_socket.h"

namespace hearth::linux {

struct Link {
  int index = 0;
  std::string name;
  bool up = false;
  std::uint32_t mtu = 0;
  std::string mac;  // "02:00:0a:01:02:03", empty where a link has none
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

struct LinkAddress {
  int link_index = 0;
  std::string address;  // "10.1.2.3"
  unsigned prefix = 0;
  std::string label;  // IPv4: the link's name, or what add_address was told
};

struct Route {
  std::string destination;  // "10.0.0.0", "::"
  unsigned prefix = 0;
  int link_index = 0;  // 0 where it has none, or several
};

struct VethSpec {
  std::string name;  // the end in this namespace
  std::string peer_name;
  int peer_netns_fd = -1;  // where the other end is born; -1: here
  std::string mac;         // empty: the kernel's choice, for either
  std::string peer_mac;
  std::uint32_t mtu = 0;  // of both ends; 0: the kernel's choice
  bool up = false;        // the end here, from birth; the other cannot be (net: veth_open)
};

// By a neighbour, or by a link that reaches the destination directly. Both: by a neighbour on that
// link, even if no address of ours says that it is there.
struct RouteVia {
  std::string gateway;
  std::string link;
  std::string source;  // the address of ours to send from; empty: the kernel's choice
};

class RouteSocket {
 public:
  // In the namespace of the calling thread.
  RouteSocket();
  // In the given one; the caller stays where it is.
  explicit RouteSocket(int netns_fd);

  std::vector<Link> list_links();
  std::optional<Link> find_link(const std::string& link);
  std::optional<int> index_of(const std::string& link);
  void link_up(const std::string& link);
  // The link gets no IPv6 address by itself when it comes up. Success where there is no IPv6.
  void no_ipv6_address(const std::string& link);

  // Both ends come into being where they belong: moving one afterwards takes 27 ms (Linux 6.18). To
  // take a pair away, drop the namespace at its other end if you can; deleting takes 24 ms.
  void create_veth(const VethSpec& spec);
  // A link that is not there is success. Its peer goes with it.
  void delete_link(const std::string& link);

  // IPv6 addresses are usable at once (no duplicate address detection). A label is for IPv4 only,
  // and begins with the link's name and a colon. On `lo` an address is of scope "host": nobody
  // takes it for one by which this host can be reached from elsewhere.
  void add_address(const std::string& link, const std::string& address, unsigned prefix,
                   const std::string& label = {});
  // An address that is not there is success.
  void delete_address(const std::string& link, const std::string& address, unsigned prefix);
  std::vector<LinkAddress> list_addresses();

  // Who has this address on this link is known, for good: nobody needs to ask around.
  void add_neighbour(const std::string& link, const std::string& address, const std::string& mac);

  void add_default_route(const std::string& gateway);
  // `cidr` as "10.0.0.0/8", "fd00::/8" or "0.0.0.0/0".
  void add_route(const std::string& cidr, const RouteVia& via);
  // Also in the place of another route to the same destination.
  void replace_route(const std::string& cidr, const RouteVia& via);
  // Of every table.
  std::vector<Route> list_routes();

 private:
  void make_route(const std::string& cidr, const RouteVia& via, std::uint16_t flags);
  void change(NetlinkRequest& request, const std::string& what);
  int get_index(const std::string& link);

  NetlinkSocket socket_;
};

}  // namespace hearth::linux
