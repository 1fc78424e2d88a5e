// A network slot for each sandbox: a link of its own to the host, an address, a default route, and
// a policy that can change while it runs.
//
//   sandbox                                     host
//   eth0 10.77.0.2/32 --------- veth ---------- h3f9a1-0a   route 10.77.0.2/32, from 10.77.0.1
//   default by 10.77.0.1                        lo          10.77.0.1/32, the gateway of them all
//
// Everything that decides is one nftables table, `hearth-TAG` (table.h). A sandbox without a policy
// has no trace in it, and its packets are refused.
//
// A Network belongs to the network namespace of the thread that made it. The order is: construct,
// adopt what an earlier life left, start, and only then the rest, from any thread. Everything
// throws Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/policy.h"
#include "network/services.h"

namespace hearth::network {

struct Options {
  std::string tag;   // which engine of this machine; a label (base/id.h) of at most 32
  std::string pool;  // "10.77.0.0/16"; empty: an unused one, the same after a restart
  std::uint32_t slots = 16384;
  bool egress = true;            // the way out of the host at all
  std::string resolver;          // where DNS questions go; empty: as the host does
  std::vector<Cidr> more_walls;  // refused like the host itself (policy.h)
};

// Plain facts, for the sandbox's record and for people.
struct Slot {
  std::uint32_t index = 0;
  std::string address;  // "10.77.0.2"
  std::string gateway;  // "10.77.0.1"
  std::string link;     // the host's end
};

// As the sandbox counts.
struct Traffic {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

class Network {
 public:
  // Looks around, and claims a pool by giving its gateway's address to `lo`. Throws Error(invalid),
  // Error(conflict) when the pool that was asked for is in use on this host, Error(exhausted) when
  // no pool is free.
  explicit Network(const Options& options);
  ~Network();  // leaves everything as it is, for the next life
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A slot of an earlier life, whose sandbox lives. Its connections do not notice. Throws
  // Error(not_found) when its link is gone.
  Slot adopt(std::uint32_t index, const Policy& policy);

  // Puts the table in place (of the one that an earlier life left, in one transaction), takes away
  // links that nobody adopted, and returns how many. Where the kernel's settings forbid the way out
  // it says so in the log, and there is none.
  std::size_t start();

  // The namespace gets its loopback up, eth0, address and route. All or nothing: if it throws,
  // nothing is left. Throws Error(exhausted) when no slot is free, Error(already_exists) when
  // there is an eth0 already.
  Slot attach(int netns_fd, const Policy& policy = {});

  // At once, for packets of established connections too: what is no longer allowed is cut. All or
  // nothing. Throws Error(not_found), Error(invalid).
  void set_policy(std::uint32_t index, const Policy& policy);

  // In the place of those before. Targets are sandboxes' addresses. All or nothing. Throws
  // Error(invalid).
  void set_services(const std::vector<Service>& services);

  // Port 53 of the gateway leads to this port of the gateway; 0: to the host's resolver.
  void set_name_server(std::uint16_t port);

  // To be called when nothing holds the sandbox's network namespace any longer: the kernel then
  // removes the links by itself, in its own time. Unknown indexes are success.
  void release(std::uint32_t index);

  // Throws Error(not_found).
  Traffic traffic(std::uint32_t index);

  // For a sandbox's /etc/resolv.conf.
  std::string resolv_conf_text() const;
  std::string pool() const;     // "10.77.0.0/16"
  std::string gateway() const;  // "10.77.0.1"
  bool has_egress() const;      // after start()

  // The end for good: table, links, gateway. Nothing may be attached any more.
  void remove();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::network
