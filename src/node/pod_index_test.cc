#include "node/pod_index.h"

#include <gtest/gtest.h>

#include "model/meta.h"

namespace hearth::node {
namespace {

client::Object object(const std::string& yaml) {
  return std::make_shared<const Json>(model::parse_yaml(yaml).value);
}

client::Object pod(const std::string& name, const std::string& labels,
                   const std::string& ns = "default", const std::string& phase = "Running") {
  return object("metadata: {name: " + name + ", namespace: " + ns + ", labels: " + labels +
                "}\nstatus: {podIP: 10.77.0.2, phase: " + phase + "}");
}

std::vector<std::string> names(const std::vector<client::Object>& pods) {
  std::vector<std::string> all;
  for (const client::Object& one : pods) all.emplace_back(model::name_of(*one));
  return all;
}

using Names = std::vector<std::string>;

TEST(PodIndex, FindsWhatASelectorMeans) {
  const PodIndex pods(std::vector<client::Object>{
      pod("a", "{app: web, tier: front}"), pod("b", "{app: web, tier: back}"),
      pod("far", "{app: web, tier: front}", "other"),
      pod("over", "{app: web, tier: front}", "default", "Failed"), pod("plain", "{}")});
  const auto selected = [&](const std::string& selector) {
    return names(pods.selected_by(
        *object("metadata: {name: s, namespace: default}\nspec: {selector: " + selector + "}")));
  };
  EXPECT_EQ(selected("{app: web}"), (Names{"a", "b"}));
  EXPECT_EQ(selected("{app: web, tier: back}"), Names{"b"});
  EXPECT_EQ(selected("{app: web, tier: none}"), Names{});
  EXPECT_EQ(selected("{}"), Names{}) << "a Service without a selector is somebody else's";
  EXPECT_EQ(selected("null"), Names{});
  EXPECT_EQ(selected("{app: 7}"), Names{});
}

}  // namespace
}  // namespace hearth::node
