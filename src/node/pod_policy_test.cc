#include "node/pod_policy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/front_door.h"

namespace hearth::node {
namespace {

using network::Mode;
using network::Policy;

Json pod_with(std::string_view egress) {
  Json pod = model::JsonObject();
  model::make_object_at(pod, {"metadata", "annotations"})[model::kEgressAnnotation] = egress;
  return pod;
}

std::string text(const std::vector<network::Rule>& rules) {
  std::string all;
  for (const network::Rule& rule : rules) all += to_string(rule) + " ";
  return all;
}

TEST(PodPolicy, IsTheWorldUnlessThePodSaysOtherwise) {
  EXPECT_EQ(pod_policy(model::JsonObject()), Policy{.mode = Mode::world});
  const Policy policy =
      pod_policy(pod_with(R"({"allow":["1.1.1.1","10.0.0.0/8"],"deny":["0.0.0.0/0"]})"));
  EXPECT_EQ(policy.mode, Mode::world);
  EXPECT_EQ(text(policy.allow), "1.1.1.1 10.0.0.0/8 ");
  EXPECT_EQ(text(policy.deny), "0.0.0.0/0 ");
}

TEST(PodPolicy, WhatMakesNoSenseLetsNobodyOut) {
  for (const char* annotation : {"no json", "[]", R"({"deny":"0.0.0.0/0"})", R"({"deny":[1]})",
                                 R"({"denied":["0.0.0.0/0"]})", R"({"deny":["example.test"]})",
                                 R"({"deny":["10.0.0.1/8"]})", R"({"allow":["::/0"]})"}) {
    try {
      pod_policy(pod_with(annotation));
      ADD_FAILURE() << annotation;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid) << annotation;
    }
  }
}

TEST(PodPolicy, TooManyRulesAreRefused) {
  pool::Egress egress;
  egress.deny.assign(network::kMostRules + 1, "1.2.3.4");
  EXPECT_THROW(pod_policy(pod_with(egress_text(egress))), Error);
}

TEST(PodPolicy, ItsTextIsUnderstoodAgain) {
  const pool::Egress egress{.allow = {"1.1.1.1"}, .deny = {"0.0.0.0/0", "10.0.0.0/8"}};
  const pool::Egress again = parse_egress(egress_text(egress));
  EXPECT_EQ(again.allow, egress.allow);
  EXPECT_EQ(again.deny, egress.deny);
  EXPECT_EQ(egress_text({}), R"({"allow":[],"deny":[]})");
}

TEST(PodPolicy, WhatOthersDeniedStaysDenied) {
  Policy policy{.mode = Mode::world,
                .open = {network::parse_rule("10.77.0.5")},
                .allow = {network::parse_rule("9.9.9.9")},
                .deny = {network::parse_rule("10.0.0.0/8")}};
  narrow(policy, {.allow = {"10.0.0.1", "1.1.1.1"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(text(policy.open), "");
  EXPECT_EQ(text(policy.allow), "1.1.1.1 ");
  EXPECT_EQ(text(policy.deny), "10.0.0.0/8 0.0.0.0/0 ");
}

TEST(PodPolicy, HostsAreWhereTheyWereAnsweredToBe) {
  const Json pod = pod_with(R"({"allow":["1.1.1.1","*.a.example"],"deny":["0.0.0.0/0"]})");
  const std::vector<std::uint32_t> answered = {0x09090909, 0x0a000001};
  const auto narrowed = [&](Policy policy, std::span<const std::uint32_t> addresses) {
    narrow_as_asked(policy, pod, addresses);
    return policy;
  };
  EXPECT_EQ(text(narrowed({.mode = Mode::world}, {}).allow), "1.1.1.1 ");
  EXPECT_EQ(text(narrowed({.mode = Mode::world}, answered).allow), "1.1.1.1 9.9.9.9 10.0.0.1 ");
  const Policy guarded{.mode = Mode::world, .deny = {network::parse_rule("10.0.0.0/8")}};
  EXPECT_EQ(text(narrowed(guarded, answered).allow), "1.1.1.1 9.9.9.9 ")
      << "a name opens nothing that a NetworkPolicy denies";

  Policy by_address{.mode = Mode::world};
  narrow_as_asked(by_address, pod_with(R"({"allow":["1.1.1.1"],"deny":["0.0.0.0/0"]})"), answered);
  EXPECT_EQ(text(by_address.allow), "1.1.1.1 ") << "without rules by name, answers mean nothing";
}

TEST(PodPolicy, TheNewestOfTooManyAnswersStay) {
  const Json pod = pod_with(R"({"allow":["a.example"],"deny":["0.0.0.0/0"]})");
  std::vector<std::uint32_t> answered;
  for (std::uint32_t i = 0; i < 400; ++i) answered.push_back(0x01000000 + i);
  Policy policy{.mode = Mode::world};
  narrow_as_asked(policy, pod, answered);
  EXPECT_EQ(policy.allow.size(), 200U);
  EXPECT_EQ(policy.allow.front().to.address, 0x01000000U);
}

TEST(PodPolicy, AListGetsShorterAndNeverLonger) {
  Policy listed{
      .mode = Mode::listed,
      .allow = {network::parse_rule("10.0.0.0/8:443/tcp"), network::parse_rule("1.1.1.1")}};
  Policy policy = listed;
  narrow(policy, {.allow = {"8.8.8.8"}, .deny = {"10.128.0.0/9"}});
  EXPECT_EQ(text(policy.allow), "10.0.0.0/9:443/tcp 1.1.1.1 ");
  EXPECT_EQ(text(policy.deny), "");

  policy = listed;
  narrow(policy, {.allow = {"10.0.0.0/10", "8.8.8.8"}, .deny = {"0.0.0.0/0"}});
  EXPECT_EQ(text(policy.allow), "10.0.0.0/10:443/tcp ");

  policy = Policy{.mode = Mode::none};
  narrow(policy, {.allow = {"0.0.0.0/0"}, .deny = {}});
  EXPECT_EQ(policy, Policy{.mode = Mode::none});
}

}  // namespace
}  // namespace hearth::node
