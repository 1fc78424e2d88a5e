#include "linux/nft_batch.h"

#include <linux/netfilter/nf_tables.h>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/nft_expression.h"

namespace hearth::linux {
namespace {

// What one expression says: its name, and the attributes of its data.
struct Expression {
  std::string name;
  std::vector<NetlinkAttribute> data;
};

// Borrows `bytes`.
std::vector<Expression> parse_expressions(std::string_view bytes) {
  std::vector<Expression> found;
  for (const NetlinkAttribute& element : parse_netlink_attributes(bytes)) {
    EXPECT_EQ(element.type, NFTA_LIST_ELEM);
    Expression expression;
    for (const NetlinkAttribute& part : parse_netlink_attributes(element.bytes)) {
      if (part.type == NFTA_EXPR_NAME) {
        expression.name = std::string(part.bytes.substr(0, part.bytes.size() - 1));
      }
      if (part.type == NFTA_EXPR_DATA) expression.data = parse_netlink_attributes(part.bytes);
    }
    found.push_back(expression);
  }
  return found;
}

std::string_view attribute_of(const Expression& expression, std::uint16_t type) {
  for (const NetlinkAttribute& attribute : expression.data) {
    if (attribute.type == type) return attribute.bytes;
  }
  return "not there";
}

std::string be32(std::uint32_t value) {
  return netlink_be32(0, value).substr(NLA_HDRLEN);
}

TEST(NetlinkAttributes, ArePaddedAndNest) {
  EXPECT_EQ(netlink_attribute(3, "abcde").size(), 12U);
  const std::string nest = netlink_nest(7, netlink_text(1, "ab") + netlink_be32(2, 0x01020304));

  const auto outer = parse_netlink_attributes(nest);
  ASSERT_EQ(outer.size(), 1U);
  EXPECT_EQ(outer[0].type, 7);
  const auto inner = parse_netlink_attributes(outer[0].bytes);
  ASSERT_EQ(inner.size(), 2U);
  EXPECT_EQ(inner[0].bytes, std::string_view("ab\0", 3));
  EXPECT_EQ(inner[1].bytes, "\x01\x02\x03\x04");
}

TEST(NftExpression, LoadsAndTests) {
  const std::string rule = nft::load_network_header(16, 4) +
                           nft::keep_bits(std::string_view("\xff\xff\0\0", 4)) +
                           nft::is(std::string_view("\x0a\x01\0\0", 4)) + nft::go_to("there");

  const auto found = parse_expressions(rule);

  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].name, "payload");
  EXPECT_EQ(attribute_of(found[0], NFTA_PAYLOAD_BASE), be32(NFT_PAYLOAD_NETWORK_HEADER));
  EXPECT_EQ(attribute_of(found[0], NFTA_PAYLOAD_OFFSET), be32(16));
  EXPECT_EQ(attribute_of(found[0], NFTA_PAYLOAD_LEN), be32(4));
  EXPECT_EQ(found[1].name, "bitwise");
  EXPECT_EQ(attribute_of(found[1], NFTA_BITWISE_LEN), be32(4));
  EXPECT_EQ(found[2].name, "cmp");
  EXPECT_EQ(attribute_of(found[2], NFTA_CMP_OP), be32(NFT_CMP_EQ));
  const auto value = parse_netlink_attributes(attribute_of(found[2], NFTA_CMP_DATA));
  EXPECT_EQ(value.at(0).bytes, std::string_view("\x0a\x01\0\0", 4));
  EXPECT_EQ(found[3].name, "immediate");
  const auto data = parse_netlink_attributes(attribute_of(found[3], NFTA_IMMEDIATE_DATA));
  const auto verdict = parse_netlink_attributes(data.at(0).bytes);
  EXPECT_EQ(verdict.at(0).bytes, be32(static_cast<std::uint32_t>(NFT_GOTO)));
  EXPECT_EQ(verdict.at(1).bytes, std::string_view("there\0", 6));
}

TEST(NftBatch, IsEmptyUntilSomethingIsAsked) {
  NftBatch batch("t");
  EXPECT_TRUE(batch.empty());
  batch.add_table();
  EXPECT_FALSE(batch.empty());
  EXPECT_EQ(batch.table(), "t");
}

}  // namespace
}  // namespace hearth::linux
