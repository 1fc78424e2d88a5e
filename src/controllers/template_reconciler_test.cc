#include "controllers/template_reconciler.h"

#include <gtest/gtest.h>

#include "controllers/pool_testing.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using client::kNetworkPolicies;
using client::kSandboxTemplates;

constexpr const char* kPolicy = "py-network-policy";

class TemplateReconcilerTest : public testing::Test {
 protected:
  TemplateReconcilerTest() {
    templates_.start();
    policies_.start();
    EXPECT_TRUE(templates_.wait_synced(std::chrono::seconds(10)));
    EXPECT_TRUE(policies_.wait_synced(std::chrono::seconds(10)));
  }

  client::Client& client() { return server_.client(); }
  void reconcile() {
    follow(client(), kSandboxTemplates, templates_, "py");
    follow(client(), kNetworkPolicies, policies_, kPolicy);
    reconciler_.reconcile({"default", "py"});
  }
  void make_template() {
    client().create(kSandboxTemplates, template_named("py"));
    reconcile();
  }
  void patch_template(std::string_view spec) {
    client().patch(kSandboxTemplates, "default", "py", client::PatchKind::merge,
                   json(R"({"spec":)" + std::string(spec) + "}"));
    reconcile();
  }
  std::optional<Json> policy() { return client().find(kNetworkPolicies, "default", kPolicy); }
  std::string spec() { return model::to_text(policy().value().at("spec")); }

  apiserver::TestServer server_;
  client::WatchCache templates_{server_.client(), kSandboxTemplates};
  client::WatchCache policies_{server_.client(), kNetworkPolicies};
  TemplateReconciler reconciler_{server_.client(), templates_, policies_};
};

constexpr const char* kSelector =
    R"("podSelector":{"matchLabels":{"agents.x-k8s.io/sandbox-template-ref-hash":"584e6522"}},)"
    R"("policyTypes":["Ingress","Egress"])";

// T1
TEST_F(TemplateReconcilerTest, TheDefaultPolicyToTheLetter) {
  make_template();
  const Json expected = json(std::string("{") + kSelector + R"(,
    "ingress":[{"from":[{
      "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"agent-sandbox-system"}},
      "podSelector":{"matchLabels":{"app":"sandbox-router"}}}]}],
    "egress":[{"to":[
      {"ipBlock":{"cidr":"0.0.0.0/0",
        "except":["10.0.0.0/8","172.16.0.0/12","192.168.0.0/16","169.254.0.0/16"]}},
      {"ipBlock":{"cidr":"::/0","except":["fc00::/7","fe80::/10"]}}]}]})");
  EXPECT_TRUE(model::is_same(policy()->at("spec"), expected)) << spec();
  const auto owner = model::controller_of(*policy());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->kind, "SandboxTemplate");
  EXPECT_EQ(owner->uid, model::uid_of(client().get(kSandboxTemplates, "default", "py")));
}

TEST_F(TemplateReconcilerTest, LabelsTheTemplate) {
  make_template();
  const Json labelled = client().get(kSandboxTemplates, "default", "py");
  EXPECT_EQ(model::label_of(labelled, model::kTemplateRefHashLabel), model::name_hash("py"));
}

TEST_F(TemplateReconcilerTest, CustomRulesAreTakenAsTheyAre) {
  make_template();
  patch_template(R"({"networkPolicy":{"egress":[{"ports":[{"port":443},
    {"port":53,"protocol":"UDP"}],"to":[{"ipBlock":{"cidr":"1.2.3.0/24"}}]}]}})");
  const Json expected = json(std::string("{") + kSelector + R"(,
    "egress":[{"ports":[{"port":443,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],
               "to":[{"ipBlock":{"cidr":"1.2.3.0/24"}}]}]})");
  EXPECT_TRUE(model::is_same(policy()->at("spec"), expected)) << spec();
  patch_template(R"({"networkPolicy":{"egress":[]}})");
  EXPECT_TRUE(model::is_same(policy()->at("spec"), json(std::string("{") + kSelector + "}")))
      << spec();
}

TEST_F(TemplateReconcilerTest, NothingIsWrittenWhenNothingIsWrong) {
  make_template();
  patch_template(R"({"networkPolicy":{"ingress":[{"ports":[{"port":8888}]}]}})");
  const Json before = *policy();
  reconcile();
  EXPECT_EQ(model::resource_version_of(*policy()), model::resource_version_of(before));
}

TEST_F(TemplateReconcilerTest, DriftIsRepaired) {
  make_template();
  const std::string before = spec();
  client().patch(kNetworkPolicies, "default", kPolicy, client::PatchKind::merge,
                 json(R"({"spec":{"egress":[{}]}})"));
  EXPECT_NE(spec(), before);
  reconcile();
  EXPECT_EQ(spec(), before);
  client().remove(kNetworkPolicies, "default", kPolicy);
  reconcile();
  EXPECT_EQ(spec(), before);
}

TEST_F(TemplateReconcilerTest, UnmanagedHasNone) {
  Json unmanaged = template_named("py");
  unmanaged.at("spec").as_object()["networkPolicyManagement"] = "Unmanaged";
  client().create(kSandboxTemplates, unmanaged);
  reconcile();
  EXPECT_FALSE(policy());
}

TEST_F(TemplateReconcilerTest, TurningUnmanagedRemovesItsOwn) {
  make_template();
  patch_template(R"({"networkPolicyManagement":"Unmanaged"})");
  EXPECT_FALSE(policy());
  patch_template(R"({"networkPolicyManagement":"Managed"})");
  EXPECT_TRUE(policy());
}

// T2
TEST_F(TemplateReconcilerTest, PoliciesOfOthersAreLeftAlone) {
  client().create(kNetworkPolicies,
                  json(R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",
    "metadata":{"namespace":"default","name":"py-network-policy"},"spec":{"podSelector":{}}})"));
  const std::string before = spec();
  client().create(kSandboxTemplates, template_named("py"));
  try {
    reconcile();
    ADD_FAILURE() << "a stranger's policy was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "refusing to update NetworkPolicy \"py-network-policy\" as it is not controlled "
                 "by SandboxTemplate \"py\"");
  }
  EXPECT_EQ(spec(), before);
  patch_template(R"({"networkPolicyManagement":"Unmanaged"})");
  EXPECT_EQ(spec(), before);
}

TEST_F(TemplateReconcilerTest, ATemplateThatIsGoneIsNoFailure) {
  EXPECT_EQ(reconciler_.reconcile({"default", "py"}), reconcile::kWhenChanged);
}

}  // namespace
}  // namespace hearth::controllers
