#include "network/pool.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::network {
namespace {

TEST(Names, FitTheKernelAndTellEnginesApart) {
  const Names one = names_of("one");
  const Names two = names_of("two");

  EXPECT_EQ(one.table, "hearth-one");
  EXPECT_NE(one.link_prefix, two.link_prefix);
  EXPECT_EQ(one.link_prefix.size(), 7U);
  EXPECT_LE(one.gateway_label.size(), 15U);
  EXPECT_LE(link_name(one, 999'999, 25).size(), 15U);
  EXPECT_EQ(names_of("one").link_prefix, one.link_prefix);
}

TEST(Names, RefuseTagsThatAreNoLabels) {
  for (const std::string& tag : {std::string(), std::string("A"), std::string("a b"),
                                 std::string("-a"), std::string(33, 'a'), std::string("a/b")}) {
    EXPECT_THROW(names_of(tag), Error) << tag;
  }
}

TEST(LinkName, GoesBothWays) {
  const Names names = names_of("test");
  for (const std::uint32_t index : {0U, 7U, 16383U, 999'999U}) {
    EXPECT_EQ(find_index(names, link_name(names, index, index)), index);
  }
  EXPECT_NE(link_name(names, 1, 0), link_name(names, 1, 1));
  EXPECT_EQ(link_name(names, 1, 0), link_name(names, 1, 26));
}

TEST(LinkName, OthersAreNotOurs) {
  const Names names = names_of("test");
  const std::string& prefix = names.link_prefix;
  EXPECT_FALSE(find_index(names, link_name(names_of("other"), 1, 0)));
  for (const std::string& name :
       {std::string("eth0"), std::string(), prefix, prefix + "a", prefix + "1", prefix + "1A",
        prefix + "-1a", prefix + "1aa", prefix + "99999999999a", prefix + " 1a"}) {
    EXPECT_FALSE(find_index(names, name)) << name;
  }
}

TEST(Pool, CandidatesArePrivateAndDistinct) {
  const std::vector<Cidr> candidates = pool_candidates("test");
  std::set<std::uint32_t> seen;
  for (const Cidr& candidate : candidates) {
    EXPECT_EQ(candidate.prefix, 16);
    EXPECT_TRUE(seen.insert(candidate.address).second) << to_string(candidate);
    const auto holds = [&](const char* range) { return parse_cidr(range).overlaps(candidate); };
    EXPECT_TRUE(holds("10.0.0.0/8") || holds("172.16.0.0/12") || holds("100.64.0.0/10"))
        << to_string(candidate);
  }
  EXPECT_EQ(pool_candidates("test"), candidates);
  EXPECT_NE(pool_candidates("tess").front(), candidates.front());
}

TEST(Pool, AddressesStayInside) {
  const Cidr pool = parse_cidr("10.7.0.0/24");
  EXPECT_EQ(address_text(gateway_of(pool)), "10.7.0.1");
  EXPECT_EQ(address_text(address_of(pool, 0)), "10.7.0.2");
  EXPECT_EQ(room_in(pool), 253U);
  EXPECT_EQ(address_text(address_of(pool, room_in(pool) - 1)), "10.7.0.254");
  EXPECT_EQ(room_in(parse_cidr("10.7.0.0/30")), 1U);
  EXPECT_EQ(room_in(parse_cidr("10.7.0.0/31")), 0U);
  EXPECT_EQ(room_in(parse_cidr("10.7.0.0")), 0U);
}

}  // namespace
}  // namespace hearth::network
