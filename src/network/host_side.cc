#include "network/host_side.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/fd.h"
#include "linux/netlink_message.h"

namespace hearth::network {
namespace {

constexpr const char* kInside = "eth0";
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";
// Every host end has this one: each is alone on its wire. Locally administered (02).
constexpr const char* kGatewayMac = "02:68:74:68:00:01";
constexpr unsigned kOneAddress = 32;

// As many names as one index can have (pool.h).
constexpr int kMostTries = 26;

std::string mac_of(std::uint32_t address) {
  return fmt::format("02:68:{:02x}:{:02x}:{:02x}:{:02x}", address >> 24, address >> 16 & 255,
                     address >> 8 & 255, address & 255);
}

std::optional<Cidr> find_range(const std::string& address, unsigned prefix) {
  const std::optional<linux::IpAddress> ip = linux::parse_ip(address);
  if (!ip || ip->family != AF_INET || prefix == 0 || prefix > kOneAddress) return std::nullopt;
  std::uint32_t number = 0;
  for (const char byte : ip->bytes) number = number << 8 | static_cast<unsigned char>(byte);
  const std::uint32_t mask = ~std::uint32_t{0} << (kOneAddress - prefix);
  return Cidr{.address = number & mask, .prefix = static_cast<std::uint8_t>(prefix)};
}

const Cidr* find_overlap(const std::vector<Cidr>& ranges, const Cidr& pool) {
  const auto found =
      std::ranges::find_if(ranges, [&](const Cidr& range) { return range.overlaps(pool); });
  return found == ranges.end() ? nullptr : &*found;
}

}  // namespace

HostSide::Used HostSide::look_around() {
  Used used;
  for (const linux::LinkAddress& address : route_.list_addresses()) {
    const std::optional<Cidr> range = find_range(address.address, address.prefix);
    if (!range) continue;
    if (address.label == names_.gateway_label) {
      used.gateway_of_old = range->address;
    } else {
      used.ranges.push_back(*range);
    }
  }
  std::vector<int> ours;
  for (const linux::Link& link : route_.list_links()) {
    if (find_index(names_, link.name)) ours.push_back(link.index);
  }
  for (const linux::Route& route : route_.list_routes()) {
    const std::optional<Cidr> range = find_range(route.destination, route.prefix);
    if (!range || std::ranges::count(ours, route.link_index) != 0) continue;
    // The kernel's own route to the gateway's address.
    const bool to_gateway = range->prefix == kOneAddress && range->address == used.gateway_of_old;
    if (!to_gateway) used.ranges.push_back(*range);
  }
  return used;
}

// An address can be on a link once: of two engines that start at the same moment one gets it.
bool HostSide::claim_gateway(const Cidr& pool) {
  try {
    route_.add_address("lo", address_text(gateway_of(pool)), kOneAddress, names_.gateway_label);
  } catch (const Error& error) {
    if (error.code() != Code::already_exists) throw;
    return false;
  }
  return true;
}

Cidr HostSide::claim_any(const std::vector<Cidr>& candidates, const Used& used,
                         std::optional<std::uint32_t> not_in_it) {
  if (used.gateway_of_old) {
    const Cidr old{.address = *used.gateway_of_old - 1, .prefix = candidates.front().prefix};
    if (std::ranges::count(candidates, old) != 0) return old;
  }
  for (const Cidr& candidate : candidates) {
    if (find_overlap(used.ranges, candidate) != nullptr) continue;
    if (not_in_it && candidate.contains(*not_in_it)) continue;
    if (claim_gateway(candidate)) return candidate;
  }
  fail(Code::exhausted, "no range of addresses is free for sandboxes: name one");
}

Cidr HostSide::claim_wanted(const std::string& wanted, const Used& used) {
  const Cidr pool = parse_cidr(wanted);
  constexpr unsigned kWidest = 8;
  if (pool.prefix < kWidest || room_in(pool) == 0) {
    fail(Code::invalid, "'{}' is too wide or too narrow for a pool of sandbox addresses", wanted);
  }
  if (used.gateway_of_old == gateway_of(pool)) return pool;
  if (const Cidr* taken = find_overlap(used.ranges, pool)) {
    fail(Code::conflict, "pool '{}': {} is in use on this host", wanted, to_string(*taken));
  }
  if (!claim_gateway(pool)) fail(Code::conflict, "pool '{}' is in use on this host", wanted);
  return pool;
}

Cidr HostSide::claim_pool(const std::string& wanted, const std::vector<Cidr>& candidates,
                          std::optional<std::uint32_t> not_in_it) {
  const std::lock_guard lock(mutex_);
  const Used used = look_around();
  const Cidr pool =
      wanted.empty() ? claim_any(candidates, used, not_in_it) : claim_wanted(wanted, used);
  if (used.gateway_of_old && *used.gateway_of_old != gateway_of(pool)) {
    route_.delete_address("lo", address_text(*used.gateway_of_old), kOneAddress);
  }
  return pool;
}

void HostSide::give_up_pool(const Cidr& pool) {
  const std::lock_guard lock(mutex_);
  route_.delete_address("lo", address_text(gateway_of(pool)), kOneAddress);
}

// A link of the same name may still be dying. The kernel says the same when it is the namespace
// that has an eth0 already.
std::string HostSide::create_pair(int netns_fd, std::uint32_t index, std::uint32_t address) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::string name = link_name(names_, index, generation_++);
    try {
      route_.create_veth({.name = name,
                          .peer_name = kInside,
                          .peer_netns_fd = netns_fd,
                          .mac = kGatewayMac,
                          .peer_mac = mac_of(address),
                          .up = true});
      return name;
    } catch (const Error& error) {
      if (error.code() != Code::already_exists || !route_.index_of(name)) throw;
    }
  }
  fail(Code::unavailable, "network slot {}: every name for its link is taken", index);
}

// Nothing where the host has no IPv6, or does not let us.
linux::Fd HostSide::find_ipv6_switch(const std::string& link) {
  const std::string path = fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", link);
  return linux::Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
}

// Without an address the link would still have a route for multicast, and the kernel goes through
// the routes of all links whenever one comes or goes (Linux 6.18, net/ipv6/route.c,
// rt6_sync_down_dev).
void HostSide::keep_ipv6_off(const linux::Fd& off_switch, const std::string& link) {
  if (!off_switch || ::write(off_switch.get(), "1", 1) != 1) route_.no_ipv6_address(link);
}

std::string HostSide::connect(int netns_fd, std::uint32_t index, const Cidr& pool) {
  const std::uint32_t address = address_of(pool, index);
  const std::lock_guard lock(mutex_);
  const std::string link = create_pair(netns_fd, index, address);
  OnFailure disconnect([&] { route_.delete_link(link); });
  const linux::Fd off_switch = find_ipv6_switch(link);
  // The route by a link that is still dying gives way.
  route_.replace_route(address_text(address) + "/32",
                       {.link = link, .source = address_text(gateway_of(pool))});
  // In time: it has no carrier before the other end is up. And right behind a change that waited
  // for its turn, because this one does not: as long as somebody else has his, the kernel begins
  // the write again and again (net/ipv6/addrconf.c, restart_syscall).
  keep_ipv6_off(off_switch, link);
  route_.add_neighbour(link, address_text(address), mac_of(address));
  disconnect.release();
  return link;
}

// A link that was up before its other end drops what it is to send until the kernel's link watch
// comes round, which costs a program its first packet and so a second. Whoever asks for the state
// of one link makes it come at once (Linux 6.8, net/core/rtnetlink.c, rtnl_getlink).
void HostSide::settle(const std::string& link) {
  const std::lock_guard lock(mutex_);
  route_.find_link(link);
}

void HostSide::reach_loopback_from(const std::string& link) {
  linux::write_file(fmt::format("/proc/sys/net/ipv4/conf/{}/route_localnet", link), "1");
}

void HostSide::disconnect(const std::string& link) {
  const std::lock_guard lock(mutex_);
  route_.delete_link(link);
}

std::multimap<std::uint32_t, std::string> HostSide::list_links() {
  const std::lock_guard lock(mutex_);
  std::map<int, std::uint32_t> leads_to;
  for (const linux::Route& route : route_.list_routes()) {
    if (route.prefix != kOneAddress) continue;
    if (const auto to = find_range(route.destination, kOneAddress)) {
      leads_to.emplace(route.link_index, to->address);
    }
  }
  std::multimap<std::uint32_t, std::string> found;
  for (const linux::Link& link : route_.list_links()) {
    if (!find_index(names_, link.name)) continue;
    const auto to = leads_to.find(link.index);
    found.emplace(to == leads_to.end() ? 0 : to->second, link.name);
  }
  return found;
}

std::optional<linux::Link> HostSide::find_link(const std::string& link) {
  const std::lock_guard lock(mutex_);
  return route_.find_link(link);
}

void set_up_inside(int netns_fd, std::uint32_t address, std::uint32_t gateway) {
  linux::RouteSocket inside(netns_fd);
  inside.no_ipv6_address(kInside);
  inside.link_up("lo");
  inside.link_up(kInside);
  inside.add_address(kInside, address_text(address), kOneAddress);
  inside.add_route("0.0.0.0/0", {.gateway = address_text(gateway), .link = kInside});
  inside.add_neighbour(kInside, address_text(gateway), kGatewayMac);
}

bool allow_forwarding() {
  if (linux::read_file(kForwarding).starts_with('1')) return true;
  try {
    linux::write_file(kForwarding, "1");
  } catch (const Error& error) {
    log::warning("sandboxes have no way out: the host does not forward packets",
                 {{"setting", kForwarding}, {"error", error.what()}});
    return false;
  }
  log::info("the host now forwards packets, for sandboxes", {{"setting", kForwarding}});
  return true;
}

}  // namespace hearth::network
