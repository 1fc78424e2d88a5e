#include "linux/nft_expression.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>

#include "linux/netlink_message.h"

namespace hearth::linux::nft {
namespace {

std::string expression(const std::string& name, const std::string& attributes) {
  return netlink_nest(NFTA_LIST_ELEM, netlink_text(NFTA_EXPR_NAME, name) +
                                          netlink_nest(NFTA_EXPR_DATA, attributes));
}

std::string value(std::uint16_t type, std::string_view bytes) {
  return netlink_nest(type, netlink_attribute(NFTA_DATA_VALUE, bytes));
}

std::string compare(std::uint32_t how, std::string_view bytes) {
  return expression("cmp", netlink_be32(NFTA_CMP_SREG, NFT_REG_1) + netlink_be32(NFTA_CMP_OP, how) +
                               value(NFTA_CMP_DATA, bytes));
}

std::string load_payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size) {
  return expression("payload", netlink_be32(NFTA_PAYLOAD_DREG, NFT_REG_1) +
                                   netlink_be32(NFTA_PAYLOAD_BASE, base) +
                                   netlink_be32(NFTA_PAYLOAD_OFFSET, offset) +
                                   netlink_be32(NFTA_PAYLOAD_LEN, size));
}

// NF_ACCEPT and its like are positive, NFT_GOTO and its like negative.
std::string verdict_data(int code, const std::string& chain) {
  std::string inner = netlink_be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
  if (!chain.empty()) inner += netlink_text(NFTA_VERDICT_CHAIN, chain);
  return netlink_nest(NFTA_DATA_VERDICT, inner);
}

std::string verdict(int code, const std::string& chain = {}) {
  return expression("immediate", netlink_be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT) +
                                     netlink_nest(NFTA_IMMEDIATE_DATA, verdict_data(code, chain)));
}

std::string put_in_register(std::uint32_t where, std::string_view bytes) {
  return expression("immediate",
                    netlink_be32(NFTA_IMMEDIATE_DREG, where) + value(NFTA_IMMEDIATE_DATA, bytes));
}

std::string refuse(std::uint32_t type, std::uint8_t code) {
  return expression("reject", netlink_be32(NFTA_REJECT_TYPE, type) +
                                  netlink_attribute(NFTA_REJECT_ICMP_CODE, byte(code)));
}

}  // namespace

std::string number(std::uint32_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string byte(std::uint8_t value) {
  return std::string(1, static_cast<char>(value));
}

std::string load_meta(std::uint32_t key) {
  return expression("meta",
                    netlink_be32(NFTA_META_DREG, NFT_REG_1) + netlink_be32(NFTA_META_KEY, key));
}

std::string load_conntrack(std::uint32_t key) {
  return expression("ct", netlink_be32(NFTA_CT_DREG, NFT_REG_1) + netlink_be32(NFTA_CT_KEY, key));
}

std::string load_original_destination() {
  return expression("ct", netlink_be32(NFTA_CT_DREG, NFT_REG_1) +
                              netlink_be32(NFTA_CT_KEY, NFT_CT_DST_IP) +
                              netlink_attribute(NFTA_CT_DIRECTION, byte(IP_CT_DIR_ORIGINAL)));
}

std::string load_route(std::uint32_t flags, std::uint32_t result) {
  return expression("fib", netlink_be32(NFTA_FIB_DREG, NFT_REG_1) +
                               netlink_be32(NFTA_FIB_RESULT, result) +
                               netlink_be32(NFTA_FIB_FLAGS, flags));
}

std::string load_network_header(std::uint32_t offset, std::uint32_t size) {
  return load_payload(NFT_PAYLOAD_NETWORK_HEADER, offset, size);
}

std::string load_transport_header(std::uint32_t offset, std::uint32_t size) {
  return load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, offset, size);
}

std::string keep_bits(std::string_view mask) {
  return expression(
      "bitwise",
      netlink_be32(NFTA_BITWISE_SREG, NFT_REG_1) + netlink_be32(NFTA_BITWISE_DREG, NFT_REG_1) +
          netlink_be32(NFTA_BITWISE_LEN, static_cast<std::uint32_t>(mask.size())) +
          value(NFTA_BITWISE_MASK, mask) + value(NFTA_BITWISE_XOR, std::string(mask.size(), '\0')));
}

std::string is(std::string_view bytes) {
  return compare(NFT_CMP_EQ, bytes);
}
std::string is_not(std::string_view bytes) {
  return compare(NFT_CMP_NEQ, bytes);
}
std::string at_least(std::string_view bytes) {
  return compare(NFT_CMP_GTE, bytes);
}
std::string at_most(std::string_view bytes) {
  return compare(NFT_CMP_LTE, bytes);
}

std::string is_in(const std::string& set) {
  return expression("lookup",
                    netlink_text(NFTA_LOOKUP_SET, set) + netlink_be32(NFTA_LOOKUP_SREG, NFT_REG_1));
}

std::string one_in(std::uint32_t many) {
  return expression("numgen", netlink_be32(NFTA_NG_DREG, NFT_REG_1) +
                                  netlink_be32(NFTA_NG_MODULUS, many) +
                                  netlink_be32(NFTA_NG_TYPE, NFT_NG_RANDOM) +
                                  netlink_be32(NFTA_NG_OFFSET, 0)) +
         is(number(0));
}

std::string verdict_of(const std::string& map) {
  return expression("lookup", netlink_text(NFTA_LOOKUP_SET, map) +
                                  netlink_be32(NFTA_LOOKUP_SREG, NFT_REG_1) +
                                  netlink_be32(NFTA_LOOKUP_DREG, NFT_REG_VERDICT));
}

std::string accept() {
  return verdict(NF_ACCEPT);
}
std::string drop() {
  return verdict(NF_DROP);
}
std::string jump_to(const std::string& chain) {
  return verdict(NFT_JUMP, chain);
}
std::string go_to(const std::string& chain) {
  return verdict(NFT_GOTO, chain);
}
std::string refuse_with_reset() {
  return refuse(NFT_REJECT_TCP_RST, 0);
}
std::string refuse_as_prohibited() {
  return refuse(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

std::string masquerade() {
  return expression("masq", {});
}

std::string send_on_to(std::string_view address, std::string_view port) {
  return put_in_register(NFT_REG_1, address) + put_in_register(NFT_REG_2, port) +
         expression("nat", netlink_be32(NFTA_NAT_TYPE, NFT_NAT_DNAT) +
                               netlink_be32(NFTA_NAT_FAMILY, NFPROTO_IPV4) +
                               netlink_be32(NFTA_NAT_REG_ADDR_MIN, NFT_REG_1) +
                               netlink_be32(NFTA_NAT_REG_PROTO_MIN, NFT_REG_2));
}

std::string go_to_verdict(const std::string& chain) {
  return verdict_data(NFT_GOTO, chain);
}

}  // namespace hearth::linux::nft
