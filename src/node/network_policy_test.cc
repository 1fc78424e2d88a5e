#include "node/network_policy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/json.h"

namespace hearth::node {
namespace {

using network::Mode;
using network::parse_cidr;
using network::Policy;

client::Object object(const std::string& yaml) {
  return std::make_shared<const Json>(model::parse_yaml(yaml).value);
}

client::Object pod(const std::string& name, const std::string& address, const std::string& labels,
                   const std::string& ns = "default") {
  return object("metadata: {name: " + name + ", namespace: " + ns + ", labels: {" + labels +
                "}}\nspec: {containers: [{name: c, ports: [{name: web, containerPort: 8080}]}]}\n"
                "status: {phase: Running, podIP: " +
                address + "}");
}

client::Object ns(const std::string& name) {
  return object("metadata: {name: " + name + ", labels: {kubernetes.io/metadata.name: " + name +
                "}}");
}

client::Object policy(const std::string& spec, const std::string& space = "default") {
  return object("metadata: {name: p, namespace: " + space + "}\nspec: " + spec);
}

std::vector<std::string> texts(const std::vector<network::Rule>& rules) {
  std::vector<std::string> all;
  for (const network::Rule& rule : rules) all.push_back(to_string(rule));
  return all;
}

using Texts = std::vector<std::string>;

class NetworkPolicyTest : public testing::Test {
 protected:
  // Of the first pod.
  Policy judge(const std::vector<client::Object>& policies) {
    const Neighbourhood around(pods_, namespaces_, services_);
    Policy made = NetworkPolicies(policies).policy_for(*pods_.front(), around);
    check(made);
    return made;
  }

  std::vector<client::Object> pods_ = {pod("a", "10.77.0.2", "app: a"),
                                       pod("b", "10.77.0.3", "app: b"),
                                       pod("far", "10.77.0.4", "app: b", "other")};
  std::vector<client::Object> namespaces_ = {ns("default"), ns("other")};
  std::vector<client::Object> services_;
};

TEST_F(NetworkPolicyTest, WithoutPoliciesTheWorldIsOpenAndNeighboursAreNot) {
  EXPECT_EQ(judge({}), Policy{.mode = Mode::world});
}

TEST_F(NetworkPolicyTest, KnowsWhetherNeighboursMakeADifference) {
  const auto matters = [&](const std::vector<client::Object>& policies) {
    return NetworkPolicies(policies).is_about_neighbours({pods_, namespaces_, services_});
  };
  EXPECT_FALSE(matters({}));
  EXPECT_FALSE(
      matters({policy("{podSelector: {}, egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}], "
                      "ingress: [{from: [{podSelector: {}}]}]}")}));
  EXPECT_TRUE(matters({policy("{podSelector: {}, egress: [{to: [{podSelector: {}}]}]}")}));
  services_ = {object("metadata: {name: s, namespace: default}\nspec: {selector: {app: b}}")};
  EXPECT_TRUE(matters({}));
}

TEST_F(NetworkPolicyTest, AServiceOpensItsPodsOnItsPorts) {
  services_ = {object("metadata: {name: s, namespace: default}\n"
                      "spec: {selector: {app: b}, ports: [{port: 80, targetPort: web}]}"),
               object("metadata: {name: s, namespace: other}\nspec: {selector: {app: b}}")};
  EXPECT_EQ(texts(judge({}).open), Texts{"10.77.0.3:8080/tcp"});
  // What admits nobody admits nobody through a Service either.
  EXPECT_EQ(texts(judge({policy("{podSelector: {}, policyTypes: [Ingress]}")}).open), Texts{});
  EXPECT_EQ(
      texts(judge({policy("{podSelector: {}, policyTypes: [Ingress], ingress: [{from: "
                          "[{podSelector: {matchLabels: {app: a}}}], ports: [{port: web}]}]}")})
                .open),
      Texts{"10.77.0.3:8080/tcp"});
}

TEST_F(NetworkPolicyTest, AHeadlessServiceWithoutPortsOpensAllOfThem) {
  services_ = {
      object("metadata: {name: s, namespace: default}\n"
             "spec: {clusterIP: None, selector: {app: b}}")};
  EXPECT_EQ(texts(judge({}).open), Texts{"10.77.0.3"});
  pods_[1] = object(
      "metadata: {name: b, namespace: default, labels: {app: b}}\n"
      "status: {phase: Failed, podIP: 10.77.0.3}");
  EXPECT_EQ(texts(judge({}).open), Texts{}) << "its address may be somebody else's by now";
}

TEST_F(NetworkPolicyTest, EgressWithoutRulesIsNothing) {
  EXPECT_EQ(judge({policy("{podSelector: {}, policyTypes: [Ingress, Egress]}")}),
            Policy{.mode = Mode::listed});
  // One about somebody else, of another namespace, or about ingress.
  EXPECT_EQ(judge({policy("{podSelector: {matchLabels: {app: x}}, policyTypes: [Egress]}"),
                   policy("{podSelector: {}, policyTypes: [Egress]}", "other"),
                   policy("{podSelector: {}}")}),
            Policy{.mode = Mode::world});
}

TEST_F(NetworkPolicyTest, TheDefaultOfTemplatesIsTheWorldWithoutPrivateNetworks) {
  services_ = {object("metadata: {name: s, namespace: default}\nspec: {selector: {app: b}}")};
  const Policy made = judge(
      {policy("{podSelector: {}, policyTypes: [Ingress, Egress], egress: [{to: ["
              "{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16]}},"
              "{ipBlock: {cidr: '::/0', except: ['fc00::/7']}}]}]}")});
  EXPECT_EQ(made.mode, Mode::world);
  EXPECT_EQ(texts(made.deny), (Texts{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}));
  EXPECT_EQ(texts(made.allow), Texts{});
  EXPECT_EQ(texts(made.open), Texts{});
}

TEST_F(NetworkPolicyTest, TwoWordsAboutTheWorldAddUp) {
  const char* word =
      "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, "
      "except: [%]}}]}]}";
  const auto with = [&](const std::string& excepted) {
    std::string text = word;
    return policy(text.replace(text.find('%'), 1, excepted));
  };
  EXPECT_EQ(texts(judge({with("10.0.0.0/8"), with("10.1.0.0/16, 192.168.0.0/16")}).deny),
            Texts{"10.1.0.0/16"});
}

TEST_F(NetworkPolicyTest, BlocksPortsAndRanges) {
  const Policy made = judge(
      {policy("{podSelector: {}, policyTypes: [Egress], egress: ["
              "{to: [{ipBlock: {cidr: 203.0.113.9/30, except: [203.0.113.8/32]}}],"
              " ports: [{port: 443}, {port: 1000, endPort: 2000, protocol: UDP}, {port: named},"
              " {port: 9, protocol: SCTP}]},"
              "{ports: [{protocol: UDP}]}]}")});
  EXPECT_EQ(made.mode, Mode::listed);
  EXPECT_EQ(texts(made.allow),
            (Texts{"203.0.113.10/31:443/tcp", "203.0.113.10/31:1000-2000/udp",
                   "203.0.113.9:443/tcp", "203.0.113.9:1000-2000/udp", "0.0.0.0/0/udp"}));
  EXPECT_TRUE(made.open.empty());
}

TEST_F(NetworkPolicyTest, PortsThatAreNoneAllowNothing) {
  EXPECT_EQ(judge({policy("{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 9, "
                          "protocol: SCTP}]}]}")}),
            Policy{.mode = Mode::listed});
}

TEST_F(NetworkPolicyTest, PeersAreOpenedIfTheyAdmit) {
  const auto out = policy(
      "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: "
      "b}}}], ports: [{port: 80}, {port: web}]}]}");
  EXPECT_EQ(texts(judge({out}).open), (Texts{"10.77.0.3:80/tcp", "10.77.0.3:8080/tcp"}));
  const auto in = policy(
      "{podSelector: {matchLabels: {app: b}}, policyTypes: [Ingress], ingress: [{from: "
      "[{podSelector: {matchLabels: {app: a}}}], ports: [{port: 8000, endPort: 9000}]}]}");
  EXPECT_EQ(texts(judge({out, in}).open), Texts{"10.77.0.3:8080/tcp"});
  EXPECT_EQ(texts(judge({out, policy("{podSelector: {}, policyTypes: [Ingress]}")}).open), Texts{});
}

TEST_F(NetworkPolicyTest, AnotherNamespaceHasToSayYes) {
  const auto out =
      policy("{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}}]}]}");
  EXPECT_EQ(texts(judge({out}).open), (Texts{"10.77.0.3"})) << "itself is no neighbour";
  const auto anybody = policy("{podSelector: {}, ingress: [{}]}", "other");
  EXPECT_EQ(texts(judge({out, anybody}).open), (Texts{"10.77.0.3"}));
  const auto in = policy(
      "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: "
      "{kubernetes.io/metadata.name: default}}}]}]}",
      "other");
  EXPECT_EQ(texts(judge({out, in}).open), (Texts{"10.77.0.3", "10.77.0.4"}));
}

TEST_F(NetworkPolicyTest, WhatMakesNoSenseAdmitsNothing) {
  EXPECT_EQ(judge({policy("{podSelector: {matchLabels: {app: x}}, egress: [{to: [{ipBlock: {cidr: "
                          "nonsense}}]}]}")}),
            Policy{.mode = Mode::world})
      << "about somebody else";
  EXPECT_EQ(judge({policy("{podSelector: {}, egress: [{to: [{ipBlock: {cidr: nonsense}}]}]}")}),
            Policy{.mode = Mode::listed});
}

TEST_F(NetworkPolicyTest, TooManyPeersAreNotOpened) {
  services_ = {object("metadata: {name: s, namespace: default}\nspec: {selector: {app: b}}")};
  for (int i = 0; i < 300; ++i)
    pods_.push_back(pod("n" + std::to_string(i),
                        "10.77." + std::to_string(1 + i / 200) + "." + std::to_string(i % 200),
                        "app: b"));
  EXPECT_EQ(judge({}).open.size(), kMostOpened);
}

TEST(Without, LeavesTheRest) {
  const auto left = [](const char* whole, std::initializer_list<const char*> holes) {
    std::vector<network::Cidr> excepted;
    for (const char* hole : holes) excepted.push_back(parse_cidr(hole));
    Texts all;
    for (const network::Cidr& cidr : without(parse_cidr(whole), excepted))
      all.push_back(to_string(cidr));
    return all;
  };
  EXPECT_EQ(left("10.0.0.0/8", {}), Texts{"10.0.0.0/8"});
  EXPECT_EQ(left("10.0.0.0/8", {"10.0.0.0/8"}), Texts{});
  EXPECT_EQ(left("10.0.0.0/8", {"0.0.0.0/0"}), Texts{});
  EXPECT_EQ(left("10.0.0.0/30", {"10.0.0.1"}), (Texts{"10.0.0.2/31", "10.0.0.0"}));
  EXPECT_EQ(left("0.0.0.0/0", {"128.0.0.0/1"}), Texts{"0.0.0.0/1"});
  EXPECT_EQ(left("10.0.0.0/30", {"10.0.0.1", "10.0.0.2/31"}), Texts{"10.0.0.0"});
}

}  // namespace
}  // namespace hearth::node
