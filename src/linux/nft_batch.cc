#include "linux/nft_batch.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include "base/error.h"
#include "linux/nft_expression.h"

namespace hearth::linux {
namespace {

// How the `nft` command names the type of a set's keys when it lists them; nothing to the kernel.
constexpr std::uint32_t kTypeIpv4Address = 7;
constexpr std::uint32_t kIpv4AddressSize = 4;

NetlinkRequest batch_bracket(std::uint16_t type) {
  NetlinkRequest request(type, 0);
  request.body(nfgenmsg{
      .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)});
  return request;
}

std::string element_key(const std::string& key) {
  return netlink_nest(NFTA_SET_ELEM_KEY, netlink_attribute(NFTA_DATA_VALUE, key));
}

}  // namespace

NetlinkRequest& NftBatch::message(std::uint16_t type, std::uint16_t flags) {
  auto& added =
      messages_.emplace_back(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags);
  return added.body(nfgenmsg{.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0});
}

void NftBatch::add_table() {
  message(NFT_MSG_NEWTABLE, NLM_F_CREATE).text(NFTA_TABLE_NAME, table_);
}

void NftBatch::delete_table() {
  message(NFT_MSG_DELTABLE, 0).text(NFTA_TABLE_NAME, table_);
}

void NftBatch::add_chain(const std::string& chain) {
  message(NFT_MSG_NEWCHAIN, NLM_F_CREATE)
      .text(NFTA_CHAIN_TABLE, table_)
      .text(NFTA_CHAIN_NAME, chain);
}

void NftBatch::add_chain(const std::string& chain, const NftHook& hook) {
  const std::string where =
      netlink_be32(NFTA_HOOK_HOOKNUM, hook.hook) +
      netlink_be32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(hook.priority));
  message(NFT_MSG_NEWCHAIN, NLM_F_CREATE)
      .text(NFTA_CHAIN_TABLE, table_)
      .text(NFTA_CHAIN_NAME, chain)
      .attributes(netlink_nest(NFTA_CHAIN_HOOK, where))
      .attributes(netlink_be32(NFTA_CHAIN_POLICY, NF_ACCEPT))
      .text(NFTA_CHAIN_TYPE, hook.type);
}

void NftBatch::flush_chain(const std::string& chain) {
  message(NFT_MSG_DELRULE, 0).text(NFTA_RULE_TABLE, table_).text(NFTA_RULE_CHAIN, chain);
}

void NftBatch::delete_chain(const std::string& chain) {
  message(NFT_MSG_DELCHAIN, 0).text(NFTA_CHAIN_TABLE, table_).text(NFTA_CHAIN_NAME, chain);
}

void NftBatch::add_rule(const std::string& chain, const std::string& expressions) {
  message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND)
      .text(NFTA_RULE_TABLE, table_)
      .text(NFTA_RULE_CHAIN, chain)
      .attributes(netlink_nest(NFTA_RULE_EXPRESSIONS, expressions));
}

void NftBatch::add_set(const std::string& set, const std::string& attributes) {
  message(NFT_MSG_NEWSET, NLM_F_CREATE)
      .text(NFTA_SET_TABLE, table_)
      .text(NFTA_SET_NAME, set)
      .attributes(netlink_be32(NFTA_SET_ID, ++sets_))
      .attributes(netlink_be32(NFTA_SET_KEY_TYPE, kTypeIpv4Address))
      .attributes(netlink_be32(NFTA_SET_KEY_LEN, kIpv4AddressSize))
      .attributes(attributes);
}

void NftBatch::add_address_set(const std::string& set) {
  add_set(set, {});
}

void NftBatch::add_verdict_map(const std::string& map) {
  add_set(map, netlink_be32(NFTA_SET_FLAGS, NFT_SET_MAP) +
                   netlink_be32(NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT));
}

void NftBatch::change_element(std::uint16_t type, std::uint16_t flags, const std::string& set,
                              const std::string& attributes) {
  message(type, flags)
      .text(NFTA_SET_ELEM_LIST_TABLE, table_)
      .text(NFTA_SET_ELEM_LIST_SET, set)
      .attributes(
          netlink_nest(NFTA_SET_ELEM_LIST_ELEMENTS, netlink_nest(NFTA_LIST_ELEM, attributes)));
}

void NftBatch::add_element(const std::string& set, const std::string& key) {
  change_element(NFT_MSG_NEWSETELEM, NLM_F_CREATE, set, element_key(key));
}

void NftBatch::add_go_to(const std::string& map, const std::string& key, const std::string& chain) {
  change_element(NFT_MSG_NEWSETELEM, NLM_F_CREATE, map,
                 element_key(key) + netlink_nest(NFTA_SET_ELEM_DATA, nft::go_to_verdict(chain)));
}

void NftBatch::delete_element(const std::string& set, const std::string& key) {
  change_element(NFT_MSG_DELSETELEM, 0, set, element_key(key));
}

NftSocket::NftSocket() : socket_(NETLINK_NETFILTER) {}

// The kernel answers each message that fails, and each that asks for an answer: the last does. If
// it refuses the batch as a whole it answers the opening bracket (net/netfilter/nfnetlink.c,
// nfnetlink_rcv_batch).
void NftSocket::commit(NftBatch& batch, const std::string& what) {
  if (batch.empty()) return;
  const std::uint32_t opening = socket_.next_sequence();
  std::string bytes(batch_bracket(NFNL_MSG_BATCH_BEGIN).bytes(opening));
  std::uint32_t last = opening;
  for (NetlinkRequest& message : batch.messages_) {
    last = socket_.next_sequence();
    if (&message == &batch.messages_.back()) message.want_answer();
    bytes += message.bytes(last);
  }
  bytes += batch_bracket(NFNL_MSG_BATCH_END).bytes(socket_.next_sequence());
  socket_.send(bytes, what);

  NetlinkVerdict verdict;
  for (bool done = false; !done;) {
    for (const NetlinkReply& reply : parse_netlink_messages(socket_.receive(what))) {
      const std::uint32_t sequence = reply.header.nlmsg_seq;
      if (reply.header.nlmsg_type != NLMSG_ERROR) continue;
      if (sequence < opening || sequence > last) continue;  // of a batch that timed out
      const NetlinkVerdict found = parse_netlink_verdict(reply);
      if (verdict.error == 0) verdict = found;
      done = done || sequence == last || sequence == opening;
    }
  }
  if (verdict.error != 0) throw_verdict(verdict, what);
}

}  // namespace hearth::linux
