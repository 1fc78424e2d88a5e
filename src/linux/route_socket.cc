#include "linux/route_socket.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <charconv>
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

Fd open_route_socket() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
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
Fd open_route_socket_in(int netns_fd) {
  Fd socket;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      enter_namespace(netns_fd, CLONE_NEWNET);
      socket = open_route_socket();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return socket;
}

[[noreturn]] void throw_verdict(const NetlinkVerdict& verdict, const std::string& what) {
  const std::string where = verdict.text.empty() ? what : fmt::format("{}: {}", what, verdict.text);
  if (verdict.error == ENODEV) {
    fail(Code::not_found, "{}: {}", where, errno_text(verdict.error));
  }
  throw_errno_text(verdict.error, where);
}

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

Link parse_link(const NetlinkReply& reply) {
  const auto fixed = reply.fixed<ifinfomsg>();
  Link link{.index = fixed.ifi_index, .up = (fixed.ifi_flags & IFF_UP) != 0};
  for (const auto& [type, bytes] : reply.attributes(sizeof fixed)) {
    if (type == IFLA_IFNAME) link.name = as_text(bytes);
    if (type == IFLA_MTU) link.mtu = as_u32(bytes);
    if (type == IFLA_ADDRESS) link.mac = format_mac(bytes);
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
  }
  return address;
}

}  // namespace

RouteSocket::RouteSocket() : socket_(open_route_socket()) {}

RouteSocket::RouteSocket(int netns_fd) : socket_(open_route_socket_in(netns_fd)) {}

std::string RouteSocket::receive(const std::string& what) {
  while (true) {
    std::string bytes(kReceiveSize, '\0');
    sockaddr_nl sender{};
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{
        .msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &part, .msg_iovlen = 1};
    const ssize_t got = ::recvmsg(socket_.get(), &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) fail(Code::timeout, "{}: the kernel does not answer", what);
    if (got < 0) throw_errno("{}", what);
    if ((message.msg_flags & MSG_TRUNC) != 0) fail(Code::internal, "{}: answer too long", what);
    // Other processes can send to a netlink socket; the kernel is number 0.
    if (sender.nl_pid != 0) continue;
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
}

NetlinkVerdict RouteSocket::exchange(NetlinkRequest& request, const std::string& what,
                                     const std::function<void(const NetlinkReply&)>& each) {
  const std::string_view message = request.bytes(++sequence_);
  if (::send(socket_.get(), message.data(), message.size(), 0) < 0) throw_errno("{}", what);
  for (int answers = 0; answers < kMostAnswers; ++answers) {
    const std::string bytes = receive(what);
    for (const NetlinkReply& reply : parse_netlink_messages(bytes)) {
      if (reply.header.nlmsg_seq != sequence_) continue;  // of a request that timed out
      if (reply.header.nlmsg_type == NLMSG_ERROR) return parse_netlink_verdict(reply);
      if (reply.header.nlmsg_type == NLMSG_DONE) return {.error = -reply.fixed<int>()};
      each(reply);
    }
  }
  fail(Code::internal, "{}: answers without end", what);
}

void RouteSocket::change(NetlinkRequest& request, const std::string& what) {
  const NetlinkVerdict verdict = exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0) throw_verdict(verdict, what);
}

std::vector<Link> RouteSocket::list_links() {
  std::vector<Link> links;
  NetlinkRequest request(RTM_GETLINK, NLM_F_DUMP);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC});
  const std::string what = "list network links";
  const NetlinkVerdict verdict = exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type == RTM_NEWLINK) links.push_back(parse_link(reply));
  });
  if (verdict.error != 0) throw_verdict(verdict, what);
  return links;
}

std::optional<int> RouteSocket::index_of(const std::string& link) {
  check_link_name(link);
  std::optional<int> index;
  NetlinkRequest request(RTM_GETLINK, NLM_F_ACK);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC}).text(IFLA_IFNAME, link);
  const std::string what = fmt::format("find network link '{}'", link);
  const NetlinkVerdict verdict = exchange(request, what, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type == RTM_NEWLINK) index = parse_link(reply).index;
  });
  if (verdict.error != 0 && verdict.error != ENODEV) throw_verdict(verdict, what);
  return index;
}

int RouteSocket::get_index(const std::string& link) {
  const std::optional<int> index = index_of(link);
  if (!index) fail(Code::not_found, "there is no network link '{}'", link);
  return *index;
}

void RouteSocket::link_up(const std::string& link) {
  check_link_name(link);
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP})
      .text(IFLA_IFNAME, link);
  change(request, fmt::format("bring network link '{}' up", link));
}

void RouteSocket::create_veth(const VethSpec& spec) {
  check_link_name(spec.name);
  check_link_name(spec.peer_name);
  NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC}).text(IFLA_IFNAME, spec.name);
  if (spec.mtu != 0) request.u32(IFLA_MTU, spec.mtu);

  const std::size_t info = request.nest(IFLA_LINKINFO);
  request.text(IFLA_INFO_KIND, "veth");
  const std::size_t data = request.nest(IFLA_INFO_DATA);
  const std::size_t peer = request.nest(VETH_INFO_PEER);
  request.body(ifinfomsg{.ifi_family = AF_UNSPEC}).text(IFLA_IFNAME, spec.peer_name);
  if (spec.mtu != 0) request.u32(IFLA_MTU, spec.mtu);
  if (spec.peer_netns_fd >= 0) {
    request.u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(spec.peer_netns_fd));
  }
  if (!spec.peer_mac.empty()) {
    const std::optional<std::string> mac = parse_mac(spec.peer_mac);
    if (!mac) fail(Code::invalid, "'{}' is no MAC address", spec.peer_mac);
    request.attribute(IFLA_ADDRESS, *mac);
  }
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
  const NetlinkVerdict verdict = exchange(request, what, [](const NetlinkReply&) {});
  if (verdict.error != 0 && verdict.error != ENODEV) throw_verdict(verdict, what);
}

void RouteSocket::add_address(const std::string& link, const std::string& address,
                              unsigned prefix) {
  const IpAddress ip = get_ip(address);
  NetlinkRequest request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  request
      .body(ifaddrmsg{.ifa_family = static_cast<unsigned char>(ip.family),
                      .ifa_prefixlen = get_prefix(prefix, ip),
                      .ifa_index = static_cast<unsigned>(get_index(link))})
      .attribute(IFA_LOCAL, ip.bytes)
      .attribute(IFA_ADDRESS, ip.bytes);
  if (ip.family == AF_INET6) request.u32(IFA_FLAGS, IFA_F_NODAD);
  change(request, fmt::format("add address {}/{} to network link '{}'", address, prefix, link));
}

std::vector<LinkAddress> RouteSocket::list_addresses() {
  std::vector<LinkAddress> addresses;
  NetlinkRequest request(RTM_GETADDR, NLM_F_DUMP);
  request.body(ifaddrmsg{.ifa_family = AF_UNSPEC});
  const std::string what = "list network addresses";
  const NetlinkVerdict verdict = exchange(request, what, [&](const NetlinkReply& reply) {
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

void RouteSocket::add_route(const std::string& cidr, const RouteVia& via) {
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
  NetlinkRequest request(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  request.body(fixed);
  if (prefix != 0) request.attribute(RTA_DST, to.bytes);
  if (!via.gateway.empty()) {
    const IpAddress gateway = get_ip(via.gateway);
    if (gateway.family != to.family) {
      fail(Code::invalid, "{} cannot be the gateway to {}", via.gateway, cidr);
    }
    request.attribute(RTA_GATEWAY, gateway.bytes);
  }
  if (!via.link.empty()) request.u32(RTA_OIF, static_cast<std::uint32_t>(get_index(via.link)));
  change(request, fmt::format("add route {} by '{}{}'", cidr, via.gateway, via.link));
}

}  // namespace hearth::linux
