#include "network/table.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <map>

#include "base/error.h"
#include "linux/nft_expression.h"

namespace hearth::network {
namespace {

using linux::NftBatch;
namespace nft = linux::nft;

constexpr const char* kFromSandbox = "from_sandbox";
constexpr const char* kRefuse = "refuse";
constexpr const char* kWalls = "walls";
constexpr const char* kWorld = "world";        // a set and a chain
constexpr const char* kPolicies = "policies";  // a map
constexpr const char* kVirtual = "virtual";    // a set: addresses of services
constexpr const char* kServices = "services";  // a map
constexpr const char* kRedirectDns = "redirect_dns";
constexpr const char* kRedirectHostDns = "redirect_host_dns";

constexpr std::uint16_t kDnsPort = 53;
// After connection tracking (-200), before anybody's destination NAT (-100): the address that the
// sandbox asked for is the one that is judged, not what the host makes of it.
constexpr int kBeforeNat = NF_IP_PRI_MANGLE;
// For what we led elsewhere ourselves.
constexpr int kAfterNat = NF_IP_PRI_NAT_DST + 1;

// Offsets in the headers of IPv4 and of TCP and UDP.
constexpr std::uint32_t kSource = 12;
constexpr std::uint32_t kDestination = 16;
constexpr std::uint32_t kDestinationPort = 2;

// Beside the host's own addresses and the pool: "this network", loopback, link-local (and with it
// the metadata service of most clouds), the metadata services that are elsewhere (Alibaba, Oracle,
// Azure), multicast and reserved.
constexpr const char* kAlwaysWalls[] = {"0.0.0.0/8",   "127.0.0.0/8",   "169.254.0.0/16",
                                        "192.0.0.192", "168.63.129.16", "100.100.100.200",
                                        "224.0.0.0/3"};

std::string port_bytes(std::uint16_t port) {
  const std::uint16_t swapped = htons(port);
  return std::string(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

// Whose name begins like this.
std::string on_link(std::uint32_t which_name, const std::string& prefix) {
  return nft::load_meta(which_name) + nft::is(prefix);
}

std::string is_ipv6() {
  return nft::load_meta(NFT_META_NFPROTO) + nft::is(nft::byte(NFPROTO_IPV6));
}

// Said in every rule that looks into an IPv4 header, though IPv6 never gets that far: so each rule
// stands for itself, and `nft list` shows addresses instead of offsets.
std::string load_ipv4(std::uint32_t offset) {
  return nft::load_meta(NFT_META_NFPROTO) + nft::is(nft::byte(NFPROTO_IPV4)) +
         nft::load_network_header(offset, 4);
}

std::string is_protocol(std::uint8_t protocol) {
  return nft::load_meta(NFT_META_L4PROTO) + nft::is(nft::byte(protocol));
}

std::string is_state(std::uint32_t bit) {
  return nft::load_conntrack(NFT_CT_STATE) + nft::keep_bits(nft::number(bit)) +
         nft::is_not(nft::number(0));
}

std::string is_direction(std::uint8_t direction) {
  return nft::load_conntrack(NFT_CT_DIRECTION) + nft::is(nft::byte(direction));
}

std::string is_loaded_within(const Cidr& cidr) {
  if (cidr.prefix == 0) return {};
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - cidr.prefix);
  const std::string masked = cidr.prefix == 32 ? "" : nft::keep_bits(address_bytes(mask));
  return masked + nft::is(address_bytes(cidr.address));
}

std::string is_within(std::uint32_t where, const Cidr& cidr) {
  return cidr.prefix == 0 ? "" : load_ipv4(where) + is_loaded_within(cidr);
}

std::string is_port(std::uint16_t first, std::uint16_t last) {
  const std::string load = nft::load_transport_header(kDestinationPort, sizeof first);
  if (first == last) return load + nft::is(port_bytes(first));
  return load + nft::at_least(port_bytes(first)) + nft::at_most(port_bytes(last));
}

// Every way to say `rule` to the kernel, each followed by `verdict`.
void add_rule(NftBatch& batch, const std::string& chain, const Rule& rule,
              const std::string& verdict) {
  const std::string to = is_within(kDestination, rule.to);
  const bool every_port = rule.first_port == 0;
  if (every_port && rule.protocol == Protocol::any) return batch.add_rule(chain, to + verdict);
  for (const Protocol protocol : {Protocol::tcp, Protocol::udp}) {
    if (rule.protocol != Protocol::any && rule.protocol != protocol) continue;
    std::string match = to + is_protocol(static_cast<std::uint8_t>(protocol));
    if (!every_port) match += is_port(rule.first_port, rule.last_port);
    batch.add_rule(chain, match + verdict);
  }
}

void add_rules(NftBatch& batch, const std::string& chain, const std::vector<Rule>& rules,
               const std::string& verdict) {
  for (const Rule& rule : rules) add_rule(batch, chain, rule, verdict);
}

Rule dns_rule(const TableSpec& spec) {
  return {.to = {.address = spec.gateway}, .first_port = kDnsPort, .last_port = kDnsPort};
}

// What policy.h promises, line by line.
void put_rules_of(NftBatch& batch, const TableSpec& spec, const std::string& chain,
                  const Policy& policy) {
  add_rules(batch, chain, policy.open, nft::accept());
  if (policy.dns && spec.resolver) add_rule(batch, chain, dns_rule(spec), nft::accept());
  batch.add_rule(chain, nft::jump_to(kWalls));
  add_rules(batch, chain, policy.allow, nft::accept());
  add_rules(batch, chain, policy.deny, nft::go_to(kRefuse));
  batch.add_rule(chain, policy.mode == Mode::world ? nft::accept() : nft::go_to(kRefuse));
}

void put_refuse(NftBatch& batch) {
  batch.add_chain(kRefuse);
  batch.add_rule(kRefuse, is_protocol(IPPROTO_TCP) + nft::refuse_with_reset());
  batch.add_rule(kRefuse, nft::refuse_as_prohibited());
}

void put_walls(NftBatch& batch, const TableSpec& spec) {
  batch.add_chain(kWalls);
  // Every address of the host is "local" to its routing table.
  batch.add_rule(kWalls, nft::load_route(NFTA_FIB_F_DADDR, NFT_FIB_RESULT_ADDRTYPE) +
                             nft::is_not(nft::number(RTN_UNICAST)) + nft::go_to(kRefuse));
  std::vector<Cidr> walls = spec.more_walls;
  walls.push_back(spec.pool);
  for (const char* text : kAlwaysWalls) walls.push_back(parse_cidr(text));
  for (const Cidr& wall : walls) {
    batch.add_rule(kWalls, is_within(kDestination, wall) + nft::go_to(kRefuse));
  }
}

// A set and a chain.
std::string shelf_name(unsigned shelf) {
  return shelf == 0 ? kWorld : fmt::format("like-{}", shelf);
}

void put_from_sandbox(NftBatch& batch, const TableSpec& spec) {
  batch.add_chain(kFromSandbox);
  const auto add = [&](const std::string& rule) { batch.add_rule(kFromSandbox, rule); };
  add(is_ipv6() + nft::drop());
  // The only route by a link of ours leads to its sandbox's address: no other source has a way
  // back on it.
  add(nft::load_route(NFTA_FIB_F_SADDR | NFTA_FIB_F_IIF, NFT_FIB_RESULT_OIF) +
      nft::is(nft::number(0)) + nft::drop());
  add(is_state(NF_CT_STATE_INVALID_BIT) + nft::drop());
  // Of connections to a sandbox, that is. A sandbox could also send errors that pretend to be about
  // other people's connections, and the kernel would call those answers.
  add(is_direction(IP_CT_DIR_REPLY) + nft::load_original_destination() +
      is_loaded_within(spec.pool) + nft::accept());
  // Nothing but our services leads from there to a sandbox.
  add(is_direction(IP_CT_DIR_REPLY) + nft::load_original_destination() +
      is_loaded_within(kServiceRange) + nft::accept());
  // Judged when it is known where they lead.
  add(load_ipv4(kDestination) + nft::is_in(kVirtual) + nft::accept());
  const std::string source = load_ipv4(kSource);
  add(source + nft::is_in(kWorld) + nft::go_to(kWorld));
  add(source + nft::verdict_of(kPolicies));
  for (unsigned shelf = 1; shelf < kShelves; ++shelf)
    add(source + nft::is_in(shelf_name(shelf)) + nft::go_to(shelf_name(shelf)));
  add(nft::go_to(kRefuse));
}

void put_filter_hooks(NftBatch& batch, const TableSpec& spec) {
  const std::string from_us = on_link(NFT_META_IIFNAME, spec.link_prefix);
  const std::string to_us = on_link(NFT_META_OIFNAME, spec.link_prefix);

  batch.add_chain("judge", {.hook = NF_INET_PRE_ROUTING, .priority = kBeforeNat});
  batch.add_rule("judge", from_us + nft::go_to(kFromSandbox));

  // Whatever was sent to the range is looked at again, also where the service is gone by now: its
  // connections are still led to where they were.
  batch.add_chain("judge_led", {.hook = NF_INET_PRE_ROUTING, .priority = kAfterNat});
  const std::string led = from_us + is_direction(IP_CT_DIR_ORIGINAL) +
                          nft::load_original_destination() + is_loaded_within(kServiceRange);
  batch.add_rule("judge_led",
                 led + load_ipv4(kDestination) + nft::is_in(kVirtual) + nft::go_to(kRefuse));
  batch.add_rule("judge_led", led + nft::go_to(kFromSandbox));

  batch.add_chain("pass_on", {.hook = NF_INET_FORWARD, .priority = NF_IP_PRI_FILTER});
  if (!spec.egress) {
    batch.add_rule("pass_on", from_us + nft::load_meta(NFT_META_OIFNAME) +
                                  nft::is_not(spec.link_prefix) + nft::go_to(kRefuse));
  }
  batch.add_rule("pass_on", from_us + nft::accept());
  batch.add_rule("pass_on", to_us + is_direction(IP_CT_DIR_ORIGINAL) + nft::drop());

  batch.add_chain("say", {.hook = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_FILTER});
  batch.add_rule("say", to_us + is_ipv6() + nft::drop());
  batch.add_rule("say", load_ipv4(kDestination) + nft::is_in(kVirtual) + nft::go_to(kRefuse));
}

void put_nat_hooks(NftBatch& batch, const TableSpec& spec) {
  const linux::NftHook coming{
      .type = "nat", .hook = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_NAT_DST};
  const linux::NftHook going{
      .type = "nat", .hook = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_NAT_DST};
  const std::string lead = load_ipv4(kDestination) + nft::verdict_of(kServices);
  batch.add_chain("lead", coming);
  batch.add_rule("lead", on_link(NFT_META_IIFNAME, spec.link_prefix) + lead);
  batch.add_chain("lead_host", going);
  batch.add_rule("lead_host", lead);
  if (spec.resolver) {
    batch.add_chain(kRedirectDns, coming);
    batch.add_chain(kRedirectHostDns, going);
    put_name_server(batch, spec, 0);
  }
  if (!spec.egress) return;
  const std::string chain = "hide_behind_host";
  batch.add_chain(chain,
                  {.type = "nat", .hook = NF_INET_POST_ROUTING, .priority = NF_IP_PRI_NAT_SRC});
  // What the host says to its own gateway does not leave it.
  batch.add_rule(chain, on_link(NFT_META_OIFNAME, std::string("lo\0", 3)) + nft::accept());
  batch.add_rule(chain, is_within(kSource, spec.pool) + nft::load_meta(NFT_META_OIFNAME) +
                            nft::is_not(spec.link_prefix) + nft::masquerade());
}

// By address.
using ServiceMap = std::map<std::uint32_t, std::vector<Service>>;

ServiceMap by_address(const std::vector<Service>& services) {
  ServiceMap map;
  for (const Service& service : services) map[service.address].push_back(service);
  return map;
}

// The first target gets one connection in n, the next one in n-1 of the rest, and so on.
void put_rules_of(NftBatch& batch, const std::string& chain, const std::vector<Service>& ports) {
  for (const Service& service : ports) {
    auto left = static_cast<std::uint32_t>(service.targets.size());
    const std::string match = is_protocol(static_cast<std::uint8_t>(service.protocol)) +
                              is_port(service.port, service.port);
    for (const ServiceTarget& target : service.targets) {
      batch.add_rule(chain,
                     match + (left > 1 ? nft::one_in(left) : "") +
                         nft::send_on_to(address_bytes(target.address), port_bytes(target.port)));
      --left;
    }
  }
}

}  // namespace

std::string address_bytes(std::uint32_t address) {
  return nft::number(htonl(address));
}

void put_table(NftBatch& batch, const TableSpec& spec) {
  batch.add_table();
  batch.delete_table();
  batch.add_table();
  batch.add_address_set(kWorld);
  batch.add_verdict_map(kPolicies);
  batch.add_address_set(kVirtual);
  batch.add_verdict_map(kServices);
  put_refuse(batch);
  put_walls(batch, spec);
  batch.add_chain(kWorld);
  put_rules_of(batch, spec, kWorld, {.mode = Mode::world});
  for (unsigned shelf = 1; shelf < kShelves; ++shelf) {
    batch.add_address_set(shelf_name(shelf));
    batch.add_chain(shelf_name(shelf));
    batch.add_rule(shelf_name(shelf), nft::go_to(kRefuse));
  }
  put_from_sandbox(batch, spec);
  put_filter_hooks(batch, spec);
  put_nat_hooks(batch, spec);
}

void put_services(NftBatch& batch, const std::vector<Service>& from,
                  const std::vector<Service>& to) {
  const ServiceMap before = by_address(from);
  const ServiceMap after = by_address(to);
  for (const auto& [address, ports] : before) {
    if (after.contains(address)) continue;
    const std::string chain = "to-" + address_text(address);
    batch.delete_element(kServices, address_bytes(address));
    batch.delete_element(kVirtual, address_bytes(address));
    batch.flush_chain(chain);
    batch.delete_chain(chain);
  }
  for (const auto& [address, ports] : after) {
    const auto found = before.find(address);
    if (found != before.end() && found->second == ports) continue;
    const std::string chain = "to-" + address_text(address);
    if (found != before.end()) {
      batch.flush_chain(chain);
    } else {
      batch.add_chain(chain);
    }
    put_rules_of(batch, chain, ports);
    if (found != before.end()) continue;
    batch.add_element(kVirtual, address_bytes(address));
    batch.add_go_to(kServices, address_bytes(address), chain);
  }
}

void put_name_server(NftBatch& batch, const TableSpec& spec, std::uint16_t port) {
  if (!spec.resolver) return;
  batch.flush_chain(kRedirectDns);
  batch.flush_chain(kRedirectHostDns);
  const std::string from_us = on_link(NFT_META_IIFNAME, spec.link_prefix);
  const std::string to = port == 0 ? nft::send_on_to(address_bytes(*spec.resolver), port_bytes(53))
                                   : nft::send_on_to(address_bytes(spec.gateway), port_bytes(port));
  for (const Protocol protocol : {Protocol::tcp, Protocol::udp}) {
    const std::string question = is_within(kDestination, {.address = spec.gateway}) +
                                 is_protocol(static_cast<std::uint8_t>(protocol)) +
                                 is_port(kDnsPort, kDnsPort);
    batch.add_rule(kRedirectDns, from_us + question + to);
    if (port != 0) batch.add_rule(kRedirectHostDns, question + to);
  }
}

void put_shelf(NftBatch& batch, const TableSpec& spec, unsigned shelf, const Policy& policy) {
  batch.flush_chain(shelf_name(shelf));
  put_rules_of(batch, spec, shelf_name(shelf), policy);
}

void put_change(NftBatch& batch, const TableSpec& spec, std::uint32_t address, const Place& from,
                const Place& to, const Policy& policy) {
  using Kind = Place::Kind;
  const std::string key = address_bytes(address);
  const std::string chain = "of-" + address_text(address);
  const bool had_chain = from.kind == Kind::own_chain;
  const bool has_chain = to.kind == Kind::own_chain;

  if (from.kind == Kind::shelf && from != to) batch.delete_element(shelf_name(from.shelf), key);
  if (had_chain) {
    if (!has_chain) batch.delete_element(kPolicies, key);
    batch.flush_chain(chain);
    if (!has_chain) batch.delete_chain(chain);
  }
  if (to.kind == Kind::shelf && from != to) batch.add_element(shelf_name(to.shelf), key);
  if (has_chain) {
    if (!had_chain) batch.add_chain(chain);
    put_rules_of(batch, spec, chain, policy);
    if (!had_chain) batch.add_go_to(kPolicies, key, chain);
  }
}

}  // namespace hearth::network
