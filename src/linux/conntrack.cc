#include "linux/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "linux/netlink_message.h"

namespace hearth::linux {
namespace {

std::uint16_t type_of(std::uint16_t message) {
  return static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | message);
}

constexpr nfgenmsg kIpv4{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0};

// The kernel marks what holds attributes itself.
std::uint16_t plain(std::uint16_t type) {
  return type & NLA_TYPE_MASK;
}

struct Ends {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
};

std::uint32_t as_address(std::string_view bytes) {
  std::uint32_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return ntohl(value);
}

Ends parse_tuple(std::string_view tuple) {
  Ends ends;
  for (const auto& [type, bytes] : parse_netlink_attributes(tuple)) {
    if (plain(type) != CTA_TUPLE_IP) continue;
    for (const auto& [which, address] : parse_netlink_attributes(bytes)) {
      if (plain(which) == CTA_IP_V4_SRC) ends.source = as_address(address);
      if (plain(which) == CTA_IP_V4_DST) ends.destination = as_address(address);
    }
  }
  return ends;
}

// What names a connection to the kernel: its first tuple, in its zone, and its number, because
// another one may have taken its place meanwhile.
bool is_name(std::uint16_t type) {
  return type == CTA_TUPLE_ORIG || type == CTA_ID || type == CTA_ZONE;
}

}  // namespace

ConntrackSocket::ConntrackSocket() : socket_(NETLINK_NETFILTER) {}

std::size_t ConntrackSocket::forget(
    const std::function<bool(const TrackedConnection&)>& is_chosen) {
  std::vector<std::string> chosen;
  NetlinkRequest all(type_of(IPCTNL_MSG_CT_GET), NLM_F_DUMP);
  all.body(kIpv4);
  const std::string listing = "list connections";
  const NetlinkVerdict listed = socket_.exchange(all, listing, [&](const NetlinkReply& reply) {
    if (reply.header.nlmsg_type != type_of(IPCTNL_MSG_CT_NEW)) return;
    Ends first;
    Ends answer;
    std::string name;
    for (const auto& [type, bytes] : reply.attributes(sizeof(nfgenmsg))) {
      if (plain(type) == CTA_TUPLE_ORIG) first = parse_tuple(bytes);
      if (plain(type) == CTA_TUPLE_REPLY) answer = parse_tuple(bytes);
      if (is_name(plain(type))) name += netlink_attribute(type, bytes);
    }
    if (is_chosen({.source = first.source,
                   .destination = first.destination,
                   .answer_source = answer.source,
                   .answer_destination = answer.destination}))
      chosen.push_back(std::move(name));
  });
  if (listed.error != 0) throw_verdict(listed, listing);

  for (const std::string& name : chosen) {
    NetlinkRequest one(type_of(IPCTNL_MSG_CT_DELETE), NLM_F_ACK);
    one.body(kIpv4).attributes(name);
    const std::string what = "forget a connection";
    const NetlinkVerdict verdict = socket_.exchange(one, what, [](const NetlinkReply&) {});
    if (verdict.error != 0 && verdict.error != ENOENT) throw_verdict(verdict, what);
  }
  return chosen.size();
}

}  // namespace hearth::linux
