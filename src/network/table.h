// The one nftables table that decides what sandboxes may say, and to whom. Policies become rules
// here; nothing here talks to the kernel.
//
//   prerouting, before anybody's address translation: packets of our links go to `from_sandbox`:
//       IPv6: dropped. A source that is not the link's own address: dropped. Answers to what the
//       host or an opened neighbour started: pass. Everything else, also of connections that exist,
//       is judged by the policy of its source:
//         set `world`    -> chain `world`, shared by all sandboxes with the plain policy
//         map `policies` -> a chain of the sandbox's own, `of-ADDRESS`
//         neither        -> chain `refuse`
//   prerouting, nat: port 53 of the gateway leads to the host's resolver.
//   forward: from elsewhere, nobody starts a connection to a sandbox.
//   output: no IPv6 to sandboxes.
//   postrouting, nat: what leaves the host leaves under the host's address.
//
// The plain policy is a set and not a map of verdicts because the kernel walks everything that a
// map leads to at each change of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linux/nft_batch.h"
#include "network/policy.h"

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

// A sandbox's share of the table goes from one policy to another. Mode none has no share.
void put_change(linux::NftBatch& batch, const TableSpec& spec, std::uint32_t address,
                const Policy& from, const Policy& to);

// The address as an element of a set, or as the kernel compares it.
std::string address_bytes(std::uint32_t address);

}  // namespace hearth::network
