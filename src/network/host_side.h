// The host's share of the network: which ranges it uses, the gateway's address, links and routes to
// sandboxes, the kernel's settings. Thread-safe; everything throws Error.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "linux/fd.h"
#include "linux/route_socket.h"
#include "network/policy.h"
#include "network/pool.h"

namespace hearth::network {

class HostSide {
 public:
  explicit HostSide(Names names) : names_(std::move(names)) {}

  // The pool whose gateway this host has already, from an earlier life; else one that nothing on
  // this host uses and that does not hold `not_in_it`. An empty `wanted`: any. The gateway's
  // address is claimed.
  Cidr claim_pool(const std::string& wanted, const std::vector<Cidr>& candidates,
                  std::optional<std::uint32_t> not_in_it);
  void give_up_pool(const Cidr& pool);

  // A pair from here to eth0 of the namespace, the end here up, and the route to it. All or
  // nothing. Returns the name of the host's end.
  std::string connect(int netns_fd, std::uint32_t index, const Cidr& pool);
  // To be called when the other end is up: from then on packets go both ways.
  void settle(const std::string& link);
  // Answers of the loopback reach the sandbox by this link, and questions the loopback.
  void reach_loopback_from(const std::string& link);
  // Success if it is not there.
  void disconnect(const std::string& link);

  // Our links, by the address they lead to; also the one without a route, as address 0.
  std::multimap<std::uint32_t, std::string> list_links();
  std::optional<linux::Link> find_link(const std::string& link);

 private:
  struct Used {
    std::vector<Cidr> ranges;                     // what others use on this host
    std::optional<std::uint32_t> gateway_of_old;  // what an earlier life of ours claimed
  };
  Used look_around();
  bool claim_gateway(const Cidr& pool);
  Cidr claim_any(const std::vector<Cidr>& candidates, const Used& used,
                 std::optional<std::uint32_t> not_in_it);
  Cidr claim_wanted(const std::string& wanted, const Used& used);
  static linux::Fd find_ipv6_switch(const std::string& link);
  void keep_ipv6_off(const linux::Fd& off_switch, const std::string& link);
  std::string create_pair(int netns_fd, std::uint32_t index, std::uint32_t address);

  const Names names_;
  std::mutex mutex_;  // guards what follows, and keeps one conversation with the kernel at a time
  linux::RouteSocket route_;
  unsigned generation_ = 0;
};

// The sandbox's share: both links up, address, default route by the gateway.
void set_up_inside(int netns_fd, std::uint32_t address, std::uint32_t gateway);

// Lets the host pass packets on, if it does not yet. False where that is not ours to change.
bool allow_forwarding();

}  // namespace hearth::network
