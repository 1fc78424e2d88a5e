// Whom a sandbox may talk to: a value, its text and its wire form. What the kernel makes of it is
// in table.h.
//
// For a packet that the sandbox sends (of a connection that it started), the first line that
// matches decides:
//
//   1. mode none          nothing
//   2. open               passes, wherever it goes
//   3. dns                port 53 of the gateway, which stands for the host's resolver, passes
//   4. the walls          refused: every address of the host, every sandbox, link-local addresses,
//                         the metadata services of clouds, multicast, what the operator added
//   5. allow              passes
//   6. deny               refused
//   7. mode world         passes; mode listed: refused
//
// So `allow` wins over `deny`, and neither gets through the walls: they can be a tenant's words.
// `open` can, and is the operator's.
//
// The other direction is no part of a policy: the host itself may always connect to a sandbox, in
// mode none too; another sandbox may if its own policy opens that address; nobody else can. Answers
// pass. Refusals are answered (a reset, or "prohibited" by ICMP), so that programs fail at once.
//
// Names: rules speak of addresses only. Hosts that are allowed by name are those of whoever answers
// the sandbox's questions for names (node/named_hosts.h), who adds to `allow` what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace hearth::network {

// IPv4 only: sandboxes have no IPv6 but their loopback.
struct Cidr {
  std::uint32_t address = 0;  // host byte order, no bits beyond the prefix
  std::uint8_t prefix = 32;

  bool contains(std::uint32_t other) const;
  bool overlaps(const Cidr& other) const;
  bool operator==(const Cidr&) const = default;
};

// "10.0.0.0/8", or "1.2.3.4" for one address. Throws Error(invalid), also for bits beyond the
// prefix.
Cidr parse_cidr(std::string_view text);
std::string to_string(const Cidr& cidr);
std::string address_text(std::uint32_t address);

// Crosses process boundaries as a number (the kernel's): do not renumber.
enum class Protocol : std::uint8_t { any = 0, tcp = 6, udp = 17 };

struct Rule {
  Cidr to;
  Protocol protocol = Protocol::any;
  std::uint16_t first_port = 0;  // 0 to 0: every port, and what has no ports
  std::uint16_t last_port = 0;   // with ports, `any` means tcp and udp

  bool operator==(const Rule&) const = default;
};

// CIDR[:PORT[-PORT]][/tcp|/udp]: "1.1.1.1:443/tcp", "10.0.0.0/8:8000-8999", "0.0.0.0/0/udp". Throws
// Error(invalid).
Rule parse_rule(std::string_view text);
std::string to_string(const Rule& rule);

// Crosses process boundaries as a number: do not renumber.
enum class Mode : std::uint8_t {
  none = 0,    // starts no connection
  world = 1,   // everything outside the walls, but what is denied
  listed = 2,  // what is allowed, and nothing else
};
std::string_view to_string(Mode mode);
// "none", "world" or "listed". Throws Error(invalid).
Mode parse_mode(std::string_view text);

struct Policy {
  Mode mode = Mode::none;
  bool dns = true;
  std::vector<Rule> open;
  std::vector<Rule> allow;
  std::vector<Rule> deny;

  bool operator==(const Policy&) const = default;
};

// Of all lists together. Every packet may have to pass all of them, one after the other.
inline constexpr std::size_t kMostRules = 256;

// Throws Error(invalid) for what no parse function here would have made.
void check(const Policy& policy);

// As part of other messages. read_policy checks.
void put(wire::Writer& out, const Policy& policy);
Policy read_policy(wire::Reader& in);

}  // namespace hearth::network
