#include "node/named_hosts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/front_door.h"

namespace hearth::node {
namespace {

using Addresses = std::vector<std::uint32_t>;

constexpr std::uint32_t kHere = 0x0a4d0002;

model::Json pod(const std::string& uid, const std::string& egress,
                const std::string& address = "10.77.0.2") {
  return model::JsonObject{
      {"metadata",
       model::JsonObject{{"name", "p"},
                         {"namespace", "default"},
                         {"uid", uid},
                         {"annotations", model::JsonObject{{model::kEgressAnnotation, egress}}}}},
      {"status", model::JsonObject{{"podIP", address}}}};
}

std::string only(const std::string& names) {
  return R"({"allow":[)" + names + R"(,"1.1.1.1"],"deny":["0.0.0.0/0"]})";
}

class NamedHostsTest : public testing::Test {
 protected:
  NamedHostsTest() { hosts_.set_rules(pod("one", only(R"("a.example","*.b.example")"))); }
  bool learn(const std::string& name, const Addresses& answered) {
    return hosts_.learn(kHere, name, answered);
  }
  NamedHosts hosts_;
};

TEST_F(NamedHostsTest, EachAddressHasItsOwnRules) {
  EXPECT_EQ(hosts_.judge(kHere, "a.example"), NameRuling::named);
  EXPECT_EQ(hosts_.judge(kHere, "x.b.example"), NameRuling::named);
  EXPECT_EQ(hosts_.judge(kHere, "b.example"), NameRuling::refused);
  EXPECT_EQ(hosts_.judge(kHere, "1.1.1.1"), NameRuling::refused);
  EXPECT_EQ(hosts_.judge(kHere + 1, "b.example"), NameRuling::free);
  EXPECT_EQ(hosts_.find(kHere)->uid, "one");
}

TEST_F(NamedHostsTest, WhatIsNewHasToBeTold) {
  EXPECT_TRUE(learn("a.example", {1, 2}));
  EXPECT_TRUE(learn("a.example", {1, 2})) << "nobody said that it was";
  hosts_.note_told("one");
  EXPECT_FALSE(learn("a.example", {2}));
  EXPECT_FALSE(learn("c.example", {3})) << "no rule names it any more";
  EXPECT_TRUE(learn("x.b.example", {2, 4}));
  EXPECT_EQ(hosts_.answered_to("one"), (Addresses{4, 2, 1}));
}

TEST_F(NamedHostsTest, AnswersGoWithTheirRules) {
  learn("a.example", {1});
  learn("x.b.example", {2});
  hosts_.set_rules(pod("one", only(R"("*.b.example")")));
  EXPECT_EQ(hosts_.answered_to("one"), Addresses{2});
  hosts_.set_rules(pod("one", ""));
  EXPECT_EQ(hosts_.answered_to("one"), Addresses());
  EXPECT_EQ(hosts_.judge(kHere, "c.example"), NameRuling::free);
}

TEST_F(NamedHostsTest, ASuccessorAtTheAddressInheritsNothing) {
  learn("a.example", {1});
  hosts_.set_rules(pod("two", only(R"("a.example")")));
  EXPECT_EQ(hosts_.answered_to("two"), Addresses());
  EXPECT_EQ(hosts_.answered_to("one"), Addresses());
  hosts_.forget("one");
  EXPECT_EQ(hosts_.judge(kHere, "a.example"), NameRuling::named) << "it is another's by now";
  hosts_.set_rules(pod("three", ""));
  EXPECT_EQ(hosts_.judge(kHere, "c.example"), NameRuling::free);
}

TEST_F(NamedHostsTest, TheLongestUnheardOfGoFirst) {
  for (std::uint32_t i = 1; i <= NamedHosts::kMostAnswers; ++i) learn("a.example", {i});
  learn("a.example", {1});
  learn("a.example", {1000});
  const Addresses all = hosts_.answered_to("one");
  EXPECT_EQ(all.size(), NamedHosts::kMostAnswers);
  EXPECT_EQ((Addresses{all[0], all[1]}), (Addresses{1000, 1}));
  EXPECT_EQ(all.back(), 3U) << "2 is gone";
}

TEST_F(NamedHostsTest, NonsenseLeavesWhatWasThere) {
  EXPECT_THROW(hosts_.set_rules(pod("one", "{")), Error);
  EXPECT_EQ(hosts_.judge(kHere, "c.example"), NameRuling::refused);
}

}  // namespace
}  // namespace hearth::node
