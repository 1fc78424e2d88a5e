// Addresses that lead to sandboxes: what Kubernetes calls ClusterIPs. A value and its wire form;
// what the kernel makes of it is in table.h.
//
// A connection to such an address goes to one of its targets, at random. For a sandbox that starts
// it, its policy judges the target, not the address. The host may always. Nobody else has a way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wire.h"
#include "network/policy.h"

namespace hearth::network {

// Nothing else can be led elsewhere, whoever asks for it: 10.96.0.0/12, from which Kubernetes
// gives Services their addresses.
inline constexpr Cidr kServiceRange{.address = 0x0a600000, .prefix = 12};

struct ServiceTarget {
  std::uint32_t address = 0;
  std::uint16_t port = 0;

  bool operator==(const ServiceTarget&) const = default;
};

// One port of one address.
struct Service {
  std::uint32_t address = 0;
  Protocol protocol = Protocol::tcp;
  std::uint16_t port = 0;
  std::vector<ServiceTarget> targets;  // none: refused

  bool operator==(const Service&) const = default;
};

inline constexpr std::size_t kMostServices = 4096;
inline constexpr std::size_t kMostTargets = 64;  // of one

// Throws Error(invalid): for addresses outside the range, no ports, too many of anything.
void check(const std::vector<Service>& services);

// As part of other messages. read_services checks.
void put(wire::Writer& out, const std::vector<Service>& services);
std::vector<Service> read_services(wire::Reader& in);

}  // namespace hearth::network
