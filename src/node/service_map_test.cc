#include "node/service_map.h"

#include <gtest/gtest.h>

#include "model/meta.h"

namespace hearth::node {
namespace {

client::Object object(const std::string& yaml) {
  return std::make_shared<const Json>(model::parse_yaml(yaml).value);
}

client::Object pod(const std::string& name, const std::string& address, bool is_ready = true,
                   const std::string& more = "") {
  return object("metadata: {name: " + name + ", namespace: ns, uid: u, labels: {app: web}" + more +
                "}\nspec: {hostname: " + name +
                ", subdomain: deep, containers: [{name: c, ports: [{name: http, containerPort: "
                "8080}]}]}\nstatus: {phase: Running, podIP: " +
                address + ", conditions: [{type: Ready, status: '" + (is_ready ? "True" : "False") +
                "'}]}");
}

client::Object service(const std::string& name, const std::string& address,
                       const std::string& more = "") {
  return object("apiVersion: v1\nkind: Service\nmetadata: {name: " + name +
                ", namespace: ns, uid: s}\nspec: {clusterIP: " + address +
                ", selector: {app: web}, ports: [{port: 80, targetPort: http}]" + more + "}");
}

std::uint32_t address(const char* text) {
  return network::parse_cidr(text).address;
}

class ServiceMapTest : public testing::Test {
 protected:
  const PodIndex pods_{std::vector<client::Object>{
      pod("a", "10.77.0.2"), pod("late", "10.77.0.3", false),
      pod("going", "10.77.0.4", true, ", deletionTimestamp: '2026-01-01T00:00:00Z'")}};
};

TEST_F(ServiceMapTest, AddressesLeadToReadyPods) {
  const std::vector<client::Object> services = {service("web", "10.96.0.9"),
                                                service("deep", "None")};
  const std::vector<network::Service> rules = service_rules(services, pods_);
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0], (network::Service{.address = address("10.96.0.9"),
                                        .port = 80,
                                        .targets = {{address("10.77.0.2"), 8080}}}));
  EXPECT_NO_THROW(network::check(rules));
}

TEST_F(ServiceMapTest, WhoeverIsNotReadyCountsIfAskedFor) {
  const std::vector<client::Object> services = {
      service("web", "10.96.0.9", ", publishNotReadyAddresses: true")};
  EXPECT_EQ(service_rules(services, pods_).at(0).targets.size(), 2U);
}

TEST_F(ServiceMapTest, AddressesOfOthersAreNoneOfOurs) {
  const std::vector<client::Object> services = {service("web", "8.8.8.8"),
                                                service("six", "'fd00::1'")};
  EXPECT_TRUE(service_rules(services, pods_).empty());
}

TEST_F(ServiceMapTest, NamesOfServicesAndPods) {
  const std::vector<client::Object> services = {service("web", "10.96.0.9"),
                                                service("deep", "None")};
  const Names names = service_names(services, pods_, "cluster.local");
  EXPECT_EQ(names, (Names{{"web.ns.svc.cluster.local", {address("10.96.0.9")}},
                          {"deep.ns.svc.cluster.local", {address("10.77.0.2")}},
                          {"a.deep.ns.svc.cluster.local", {address("10.77.0.2")}}}));
}

TEST_F(ServiceMapTest, SlicesTellOfAllPods) {
  const Json slice = endpoint_slice(*service("web", "10.96.0.9"), pods_);
  const model::JsonArray* endpoints = model::array_at(slice, {"endpoints"});
  ASSERT_EQ(endpoints->size(), 3U);
  EXPECT_TRUE(model::is_true_at(endpoints->at(0), {"conditions", "ready"}));
  EXPECT_FALSE(model::is_true_at(endpoints->at(1), {"conditions", "ready"}));
  EXPECT_TRUE(model::is_true_at(endpoints->at(2), {"conditions", "terminating"}));
  EXPECT_EQ(model::number_at(model::array_at(slice, {"ports"})->at(0), {"port"}), 8080);
  EXPECT_EQ(model::label_of(slice, "kubernetes.io/service-name"), "web");
}

}  // namespace
}  // namespace hearth::node
