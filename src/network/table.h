// The one nftables table that decides what sandboxes may say, and to whom. Policies become rules
// here; nothing here talks to the kernel.
//
//   prerouting, before anybody's address translation: packets of our links go to `from_sandbox`:
//       IPv6: dropped. A source that is not the link's own address: dropped. Answers to what the
//       host or an opened neighbour started: pass. Everything else, also of connections that exist,
//       is judged by the policy of its source:
//         set `world`    -> chain `world`, shared by all sandboxes with the plain policy
//         map `policies` -> a chain of the sandbox's own, `of-ADDRESS`
//         set `like-N`   -> chain `like-N`, a shelf: shared by sandboxes with another policy
//         none of them   -> chain `refuse`
//   prerouting, nat: port 53 of the gateway leads to the host's resolver.
//       Addresses of services (services.h) lead to one of their targets; a second look of
//       `from_sandbox`, after that, judges the target.
//   forward: from elsewhere, nobody starts a connection to a sandbox.
//   output: no IPv6 to sandboxes. Services as above.
//   postrouting, nat: what leaves the host leaves under the host's address.
//
// Policies that are shared are sets and not maps of verdicts because the kernel walks everything
// that a map leads to at each change of it. Shelves are few: a packet may have to try all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linux/nft_batch.h"
#include "network/policy.h"
#include "network/services.h"

namespace hearth::network {

struct TableSpec {
  std::string name;
  std::string link_prefix;  // what the names of all our links begin with, and no other's
  Cidr pool;
  std::uint32_t gateway = 0;
  std::optional<std::uint32_t> resolver;  // none: no DNS
  bool egress = true;
  std::vector<Cidr> more_walls;
};

// The table, in the place of one of the same name, without any sandbox.
void put_table(linux::NftBatch& batch, const TableSpec& spec);

// The first one is `world`.
inline constexpr unsigned kShelves = 9;

// A sandbox's share of the table. Mode none has no share.
struct Place {
  enum class Kind : std::uint8_t { nowhere, shelf, own_chain };

  Kind kind = Kind::nowhere;
  unsigned shelf = 0;

  bool operator==(const Place&) const = default;
};

// Another policy on a shelf that nobody uses; not the first.
void put_shelf(linux::NftBatch& batch, const TableSpec& spec, unsigned shelf, const Policy& policy);

// A sandbox's share goes from one place to another, where it has this policy (on a shelf, it is
// there).
void put_change(linux::NftBatch& batch, const TableSpec& spec, std::uint32_t address,
                const Place& from, const Place& to, const Policy& policy);

// Services that go, come or lead elsewhere.
void put_services(linux::NftBatch& batch, const std::vector<Service>& from,
                  const std::vector<Service>& to);

// Port 53 of the gateway leads to this port of it, for sandboxes and for the host; 0: to the
// resolver. Nothing where there is no resolver.
void put_name_server(linux::NftBatch& batch, const TableSpec& spec, std::uint16_t port);

// The address as an element of a set, or as the kernel compares it.
std::string address_bytes(std::uint32_t address);

}  // namespace hearth::network
