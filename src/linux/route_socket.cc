#include "linux/route_socket.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>

#include "base/error.h"
#include "linux/netlink_message.h"

namespace hearth::linux {
namespace {

void check_link_name(const std::string& name) {
  const bool fine = !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
                    name.find_first_of(std::string_view("/ \t\n:\0", 6)) == std::string::npos;
  if (!fine) fail(Code::invalid, "'{}' cannot be the name of a network link", name);
}

IpAddress get_ip(const std::string& text) {
  std::optional<IpAddress> address = parse_ip(text);
  if (!address) fail(Code::invalid, "'{}' is no IP address", text);
  return *std::move(address);
}

unsigned char get_prefix(unsigned prefix, const IpAddress& address) {
  if (prefix > address.bytes.size() * 8) {
    fail(Code::invalid, "/{} is too long a prefix for an address of {} bits", prefix,
         address.bytes.size() * 8);
  }
  return static_cast<unsigned char>(prefix);
}

std::uint32_t as_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::string as_text(std::string_view bytes) {
  return std::string(bytes.substr(0, bytes.find('\0')));
}

void put_traffic(std::string_view bytes, Link& link) {
  // Newer kernels append to it.
  rtnl_link_stats64 counters{};
  bytes.copy(reinterpret_cast<char*>(&counters), sizeof counters);
  link.received_bytes = counters.rx_bytes;
  link.sent_bytes = counters.tx_bytes;
}

Link parse_link(const NetlinkReply& reply) {
  const auto fixed = reply.fixed<ifinfomsg>();
  Link link{.index = fixed.ifi_index, .up = (fixed.ifi_flags & IFF_UP) != 0};
  for (const auto& [type, bytes] : reply.attributes(sizeof fixed)) {
    if (type == IFLA_IFNAME) link.name = as_text(bytes);
    if (type == IFLA_MTU) link.mtu = as_u32(bytes);
    if (type == IFLA_ADDRESS) link.mac = format_mac(bytes);
    if (type == IFLA_STATS64) put_traffic(bytes, link);
  }
  return link;
}

std::optional<LinkAddress> parse_address(const NetlinkReply& reply) {
  const auto fixed = reply.fixed<ifaddrmsg>();
  if (fixed.ifa_family != AF_INET && fixed.ifa_family != AF_INET6) return std::nullopt;
  LinkAddress address{.link_index = static_cast<int>(fixed.ifa_index),
                      .prefix = fixed.ifa_prefixlen};
  for (const auto& [type, bytes] : reply.attributes(sizeof fixed)) {
    // On a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL comes only with IPv4.
    const bool ours = type == IFA_LOCAL || (type == IFA_ADDRESS && address.address.empty());
    if (ours) address.address = format_ip(fixed.ifa_family, bytes);
    if (type == IFA_LABEL) address.label = as_text(bytes);
  }
  return address;
}

std::optional<Route> parse_route(const NetlinkReply& reply) {
  const auto fixed = reply.fixed<rtmsg>();
  if (fixed.rtm_family != AF_INET && fixed.rtm_family != AF_INET6) return std::nullopt;
  Route route{.destination = fixed.rtm_family == AF_INET ? "0.0.0.0" : "::",
              .prefix = fixed.rtm_dst_len};
  for (const auto& [type, bytes] : reply.attributes(sizeof fixed)) {
    if (type == RTA_DST) route.destination = format_ip(fixed.rtm_family, bytes);
    if (type == RTA_OIF) route.link_index = static_cast<int>(as_u32(bytes));
  }
  return route;
}

void put_mac(NetlinkRequest& request, std::uint16_t type, const std::string& text) {
  const std::optional<std::string> mac = parse_mac(text);
  if (!mac) fail(Code::invalid, "'{}' is no MAC address", text);
  request.attribute(type, *mac);
}

// Left alone the kernel makes a queue for each CPU, each with its folder in sysfs: time and memory
// for what a veth does not use.
void put_one_queue(NetlinkRequest& request) {
  request.u32(IFLA_NUM_TX_QUEUES, 1).u32(IFLA_NUM_RX_QUEUES, 1);
}

ifinfomsg link_head(bool up) {
  const unsigned flags = up ? IFF_UP : 0;
  return {.ifi_family = AF_UNSPEC, .ifi_flags = flags, .ifi_change = flags};
}

}  // namespace

RouteSocket::RouteSocket() : socket_(NETLINK_ROUTE) {}

RouteSocket::RouteSocket(int netns_fd) : socket_(NETLINK_ROUTE, netns_fd) {}

void RouteSocket::change(NetlinkRequest& request, const std::string& what) {
  const NetlinkVerdict verdict = socket_.exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0) throw_verdict(verdict, what);
}

std::vector<Link> RouteSocket::list_links() {
  std::vector<Link> links;
  NetlinkRequest request(RTM_GETLINK, NLM_F_DUMP);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC});
  const std::string what = "list network links";
  const NetlinkVerdict verdict = socket_.exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type == RTM_NEWLINK) links.push_back(parse_link(reply));
  });
  if (verdict.error != 0) throw_verdict(verdict, what);
  return links;
}

std::optional<Link> RouteSocket::find_link(const std::string& link) {
  check_link_name(link);
  std::optional<Link> found;
  NetlinkRequest request(RTM_GETLINK, NLM_F_ACK);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC}).text(IFLA_IFNAME, link);
  const std::string what = fmt::format("find network link '{}'", link);
  const NetlinkVerdict verdict = socket_.exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type == RTM_NEWLINK) found = parse_link(reply);
  });
  if (verdict.error != 0 && verdict.error != ENODEV) throw_verdict(verdict, what);
  return found;
}

std::optional<int> RouteSocket::index_of(const std::string& link) {
  const std::optional<Link> found = find_link(link);
  return found ? std::optional(found->index) : std::nullopt;
}

// Not by netlink: that tells all there is to tell of a link, and waits for its turn to do so.
int RouteSocket::get_index(const std::string& link) {
  check_link_name(link);
  ifreq request{};
  link.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(socket_.fd(), SIOCGIFINDEX, &request) == 0) return request.ifr_ifindex;
  if (errno == ENODEV) fail(Code::not_found, "there is no network link '{}'", link);
  throw_errno("find network link '{}'", link);
}

void RouteSocket::link_up(const std::string& link) {
  check_link_name(link);
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK);
  request.body(link_head(/*up=*/true)).text(IFLA_IFNAME, link);
  change(request, fmt::format("bring network link '{}' up", link));
}

void RouteSocket::no_ipv6_address(const std::string& link) {
  check_link_name(link);
  const std::string_view none("\1", 1);  // IN6_ADDR_GEN_MODE_NONE
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK);
  request.body(link_head(/*up=*/false))
      .text(IFLA_IFNAME, link)
      .attributes(netlink_nest(
          IFLA_AF_SPEC, netlink_nest(AF_INET6, netlink_attribute(IFLA_INET6_ADDR_GEN_MODE, none))));
  const std::string what = fmt::format("keep IPv6 off network link '{}'", link);
  const NetlinkVerdict verdict = socket_.exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0 && verdict.error != EAFNOSUPPORT) throw_verdict(verdict, what);
}

void RouteSocket::create_veth(const VethSpec& spec) {
  check_link_name(spec.name);
  check_link_name(spec.peer_name);
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  request.body(link_head(spec.up)).text(IFLA_IFNAME, spec.name);
  if (spec.mtu != 0) request.u32(IFLA_MTU, spec.mtu);
  put_one_queue(request);
  if (!spec.mac.empty()) put_mac(request, IFLA_ADDRESS, spec.mac);

  const std::size_t info = request.nest(IFLA_LINKINFO);
  request.text(IFLA_INFO_KIND, "veth");
  const std::size_t data = request.nest(IFLA_INFO_DATA);
  const std::size_t peer = request.nest(VETH_INFO_PEER);
  request.body(link_head(/*up=*/false)).text(IFLA_IFNAME, spec.peer_name);
  if (spec.mtu != 0) request.u32(IFLA_MTU, spec.mtu);
  put_one_queue(request);
  if (spec.peer_netns_fd >= 0) {
    request.u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(spec.peer_netns_fd));
  }
  if (!spec.peer_mac.empty()) put_mac(request, IFLA_ADDRESS, spec.peer_mac);
  request.end(peer);
  request.end(data);
  request.end(info);
  change(request, fmt::format("create veth '{}' with peer '{}'", spec.name, spec.peer_name));
}

void RouteSocket::delete_link(const std::string& link) {
  check_link_name(link);
  NetlinkRequest request(RTM_DELLINK, NLM_F_ACK);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC}).text(IFLA_IFNAME, link);
  const std::string what = fmt::format("delete network link '{}'", link);
  const NetlinkVerdict verdict = socket_.exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0 && verdict.error != ENODEV) throw_verdict(verdict, what);
}

void RouteSocket::add_address(const std::string& link, const std::string& address, unsigned prefix,
                              const std::string& label) {
  const IpAddress ip = get_ip(address);
  if (label.size() >= IFNAMSIZ) fail(Code::invalid, "'{}' is too long a label", label);
  const unsigned char scope = link == "lo" ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  NetlinkRequest request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  request
      .body(ifaddrmsg{.ifa_family = static_cast<unsigned char>(ip.family),
                      .ifa_prefixlen = get_prefix(prefix, ip),
                      .ifa_scope = scope,
                      .ifa_index = static_cast<unsigned>(get_index(link))})
      .attribute(IFA_LOCAL, ip.bytes)
      .attribute(IFA_ADDRESS, ip.bytes);
  if (ip.family == AF_INET6) request.u32(IFA_FLAGS, IFA_F_NODAD);
  if (!label.empty()) request.text(IFA_LABEL, label);
  change(request, fmt::format("add address {}/{} to network link '{}'", address, prefix, link));
}

void RouteSocket::delete_address(const std::string& link, const std::string& address,
                                 unsigned prefix) {
  const IpAddress ip = get_ip(address);
  NetlinkRequest request(RTM_DELADDR, NLM_F_ACK);
  request
      .body(ifaddrmsg{.ifa_family = static_cast<unsigned char>(ip.family),
                      .ifa_prefixlen = get_prefix(prefix, ip),
                      .ifa_index = static_cast<unsigned>(get_index(link))})
      .attribute(IFA_LOCAL, ip.bytes);
  const std::string what =
      fmt::format("delete address {}/{} of network link '{}'", address, prefix, link);
  const NetlinkVerdict verdict = socket_.exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0 && verdict.error != EADDRNOTAVAIL) throw_verdict(verdict, what);
}

std::vector<LinkAddress> RouteSocket::list_addresses() {
  std::vector<LinkAddress> addresses;
  NetlinkRequest request(RTM_GETADDR, NLM_F_DUMP);
  request.body(ifaddrmsg{.ifa_family = AF_UNSPEC});
  const std::string what = "list network addresses";
  const NetlinkVerdict verdict = socket_.exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type != RTM_NEWADDR) return;
    if (auto address = parse_address(reply)) addresses.push_back(*std::move(address));
  });
  if (verdict.error != 0) throw_verdict(verdict, what);
  return addresses;
}

void RouteSocket::add_default_route(const std::string& gateway) {
  const bool v6 = get_ip(gateway).family == AF_INET6;
  add_route(v6 ? "::/0" : "0.0.0.0/0", {.gateway = gateway});
}

void RouteSocket::add_neighbour(const std::string& link, const std::string& address,
                                const std::string& mac) {
  const IpAddress ip = get_ip(address);
  NetlinkRequest request(RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);
  request
      .body(ndmsg{.ndm_family = static_cast<unsigned char>(ip.family),
                  .ndm_ifindex = get_index(link),
                  .ndm_state = NUD_PERMANENT})
      .attribute(NDA_DST, ip.bytes);
  put_mac(request, NDA_LLADDR, mac);
  change(request, fmt::format("add neighbour {} at {} on network link '{}'", address, mac, link));
}

void RouteSocket::add_route(const std::string& cidr, const RouteVia& via) {
  make_route(cidr, via, NLM_F_EXCL);
}

void RouteSocket::replace_route(const std::string& cidr, const RouteVia& via) {
  make_route(cidr, via, NLM_F_REPLACE);
}

std::vector<Route> RouteSocket::list_routes() {
  std::vector<Route> routes;
  NetlinkRequest request(RTM_GETROUTE, NLM_F_DUMP);
  request.body(rtmsg{.rtm_family = AF_UNSPEC});
  const std::string what = "list routes";
  const NetlinkVerdict verdict = socket_.exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type != RTM_NEWROUTE) return;
    if (auto route = parse_route(reply)) routes.push_back(*std::move(route));
  });
  if (verdict.error != 0) throw_verdict(verdict, what);
  return routes;
}

void RouteSocket::make_route(const std::string& cidr, const RouteVia& via, std::uint16_t flags) {
  const std::size_t slash = cidr.find('/');
  unsigned prefix = 0;
  const char* last = cidr.data() + cidr.size();
  const char* digits = slash == std::string::npos ? last : cidr.data() + slash + 1;
  const auto [end, error] = std::from_chars(digits, last, prefix);
  if (error != std::errc() || end != last) fail(Code::invalid, "'{}' is no address range", cidr);
  const IpAddress to = get_ip(cidr.substr(0, slash));
  if (via.gateway.empty() && via.link.empty()) fail(Code::invalid, "route {}: by what?", cidr);

  rtmsg fixed{.rtm_family = static_cast<unsigned char>(to.family),
              .rtm_dst_len = get_prefix(prefix, to),
              .rtm_table = RT_TABLE_MAIN,
              .rtm_protocol = RTPROT_STATIC,
              .rtm_scope = RT_SCOPE_UNIVERSE,
              .rtm_type = RTN_UNICAST};
  if (via.gateway.empty()) fixed.rtm_scope = RT_SCOPE_LINK;
  if (!via.gateway.empty() && !via.link.empty()) fixed.rtm_flags = RTNH_F_ONLINK;
  NetlinkRequest request(RTM_NEWROUTE,
                         static_cast<std::uint16_t>(NLM_F_ACK | NLM_F_CREATE | flags));
  request.body(fixed);
  if (prefix != 0) request.attribute(RTA_DST, to.bytes);
  if (!via.gateway.empty()) {
    const IpAddress gateway = get_ip(via.gateway);
    if (gateway.family != to.family) {
      fail(Code::invalid, "{} cannot be the gateway to {}", via.gateway, cidr);
    }
    request.attribute(RTA_GATEWAY, gateway.bytes);
  }
  if (!via.source.empty()) request.attribute(RTA_PREFSRC, get_ip(via.source).bytes);
  if (!via.link.empty()) request.u32(RTA_OIF, static_cast<std::uint32_t>(get_index(via.link)));
  change(request, fmt::format("add route {} by '{}{}'", cidr, via.gateway, via.link));
}

}  // namespace hearth::linux
