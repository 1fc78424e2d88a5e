#include "model/conversion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::model {
namespace {

constexpr std::string_view kState = "api.agents.x-k8s.io/v1alpha1-sandbox-state";
constexpr std::string_view kClaimState = "api.agents.x-k8s.io/v1alpha1-sandboxclaim-state";
constexpr std::string_view kPolicy = "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy";

Json json(std::string_view text) {
  return parse_json(text).value;
}

Json beta(std::string_view text) {
  Json object = json(text);
  to_v1beta1(object);
  return object;
}

Json alpha(std::string_view text) {
  Json object = json(text);
  to_v1alpha1(object);
  return object;
}

void expect_round_trip(std::string_view text) {
  Json object = json(text);
  to_v1beta1(object);
  EXPECT_TRUE(text_at(object, {"apiVersion"}).ends_with("/v1beta1"));
  to_v1alpha1(object);
  EXPECT_TRUE(is_same(object, json(text))) << to_text(object);
}

std::string_view pool_of(const Json& claim) {
  return text_at(claim, {"spec", "warmPoolRef", "name"});
}

TEST(Conversion, KnowsItsKinds) {
  EXPECT_TRUE(has_conversion("agents.x-k8s.io", "Sandbox"));
  EXPECT_TRUE(has_conversion("extensions.agents.x-k8s.io", "SandboxClaim"));
  EXPECT_FALSE(has_conversion("agents.x-k8s.io", "SandboxClaim"));
  EXPECT_FALSE(has_conversion("agents.navix.sh", "SandboxTemplate"));
}

TEST(Conversion, LeavesOthersAlone) {
  for (const std::string_view text :
       {"null", "[]", "{}", R"({"apiVersion":"v1","kind":"Pod"})",
        R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":{"replicas":3}})"})
    EXPECT_TRUE(is_same(beta(text), json(text))) << text;
}

TEST(SandboxConversion, TurnsReplicasIntoAMode) {
  const Json running = beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"replicas":1,"podTemplate":{}},
    "status":{"replicas":1,"service":"s"}})");
  EXPECT_EQ(text_at(running, {"spec", "operatingMode"}), "Running");
  EXPECT_FALSE(find(running, {"spec", "replicas"}));
  EXPECT_EQ(to_text(running.at("status")), R"({"service":"s"})");
  EXPECT_TRUE(find(running, {"metadata", "annotations", kState}));
  EXPECT_EQ(text_at(beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "spec":{"replicas":0}})"),
                    {"spec", "operatingMode"}),
            "Suspended");
  EXPECT_EQ(text_at(beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox"})"),
                    {"spec", "operatingMode"}),
            "Running");
}

TEST(SandboxConversion, ShowsAModeAsReplicas) {
  const Json suspended = alpha(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "spec":{"operatingMode":"Suspended"},"status":{"nodeName":"n","service":"s"}})");
  EXPECT_EQ(to_text(suspended), R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",)"
                                R"("spec":{"replicas":0},"status":{"service":"s"}})");
  const Json running = alpha(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "spec":{"operatingMode":"Running"}})");
  EXPECT_EQ(number_at(running, {"spec", "replicas"}), 1);
  EXPECT_EQ(number_at(running, {"status", "replicas"}), 1);
}

TEST(SandboxConversion, GoesThereAndBack) {
  expect_round_trip(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s","annotations":{"a":"b"}},"spec":{"replicas":1,"podTemplate":{"spec":{}}},
    "status":{"replicas":1,"selector":"x"}})");
  expect_round_trip(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"replicas":0}})");
  expect_round_trip(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"podTemplate":{}}})");
}

TEST(SandboxConversion, BelievesTheModeMoreThanWhatWasKept) {
  Json sandbox = beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"replicas":0},"status":{"replicas":1}})");
  sandbox.at("spec").as_object()["operatingMode"] = "Running";
  to_v1alpha1(sandbox);
  EXPECT_EQ(number_at(sandbox, {"spec", "replicas"}), 1);
  EXPECT_EQ(number_at(sandbox, {"status", "replicas"}), 1);
}

TEST(SandboxConversion, KeepsTheSameStateForTheSameObject) {
  const Json first = beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s","resourceVersion":"1","managedFields":[]},"spec":{"replicas":1}})");
  const Json second = beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s","resourceVersion":"2"},"spec":{"replicas":1}})");
  EXPECT_EQ(text_at(first, {"metadata", "annotations", kState}),
            text_at(second, {"metadata", "annotations", kState}));
  EXPECT_EQ(text_at(first, {"metadata", "resourceVersion"}), "1");
}

TEST(SandboxConversion, DoesNotNestStates) {
  Json sandbox = beta(R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
    "metadata":{"name":"s"},"spec":{"replicas":1}})");
  const std::string state(text_at(sandbox, {"metadata", "annotations", kState}));
  sandbox.as_object()["apiVersion"] = "agents.x-k8s.io/v1alpha1";
  sandbox.at("spec") = json(R"({"replicas":1})");
  to_v1beta1(sandbox);
  EXPECT_EQ(text_at(sandbox, {"metadata", "annotations", kState}), state);
}

TEST(SandboxConversion, AStateThatIsNoneCountsAsNotThere) {
  for (const std::string_view state :
       {"{", "3", "[]", "null", R"({\"spec\":7})", R"({\"spec\":{\"replicas\":-1}})",
        R"({\"spec\":{\"replicas\":99999999999}})"}) {
    Json sandbox = json(fmt::format(R"({{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{{"annotations":{{"{}":"{}"}}}},"spec":{{"operatingMode":"Suspended"}}}})",
                                    kState, state));
    to_v1alpha1(sandbox);
    EXPECT_EQ(number_at(sandbox, {"spec", "replicas"}), 0) << state;
    EXPECT_FALSE(find(sandbox, {"metadata", "annotations"})) << state;
  }
}

TEST(ClaimConversion, AStateOfOtherTypesIsNotShown) {
  const Json claim = alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxClaim","metadata":{"annotations":
      {"api.agents.x-k8s.io/v1alpha1-sandboxclaim-state":
       "{\"spec\":{\"sandboxTemplateRef\":\"t\",\"warmpool\":{}}}"}},
    "spec":{"warmPoolRef":{"name":"shadow-pool-"}}})");
  EXPECT_TRUE(object_at(claim, {"spec", "sandboxTemplateRef"})) << to_text(claim);
  EXPECT_FALSE(object_at(claim, {"spec", "warmpool"})) << to_text(claim);
}

TEST(ClaimConversion, FindsThePool) {
  EXPECT_EQ(pool_of(beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxClaim","spec":{"sandboxTemplateRef":{"name":"t"},"warmpool":"mine"}})")),
            "mine");
  EXPECT_EQ(pool_of(beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxClaim","spec":{"sandboxTemplateRef":{"name":"t"},"warmpool":"none"}})")),
            "shadow-pool-t");
  EXPECT_EQ(pool_of(beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxClaim","metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"}},
    "status":{"sandbox":{"name":"pool-a-x7k2p"}}})")),
            "pool-a");
  EXPECT_EQ(pool_of(beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxClaim","metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"}},
    "status":{"sandbox":{"name":"c"}}})")),
            "shadow-pool-t");
}

TEST(ClaimConversion, GoesThereAndBack) {
  expect_round_trip(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxClaim",
    "metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"},"warmpool":"mine",
      "lifecycle":{"shutdownPolicy":"Delete"},"env":[{"name":"a","value":"b"}]}})");
  expect_round_trip(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxClaim",
    "metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"},"warmpool":"none"}})");
  expect_round_trip(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxClaim",
    "metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"}},
    "status":{"sandbox":{"name":"pool-a-x7k2p"}}})");
}

TEST(ClaimConversion, ShowsAPoolWithoutHistory) {
  EXPECT_EQ(to_text(alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxClaim","spec":{"warmPoolRef":{"name":"shadow-pool-t"},
    "volumeClaimTemplates":[]}})")
                        .at("spec")),
            R"({"sandboxTemplateRef":{"name":"t"},"warmpool":"default"})");
  EXPECT_EQ(to_text(alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxClaim","spec":{"warmPoolRef":{"name":"p"}}})")
                        .at("spec")),
            R"({"sandboxTemplateRef":{"name":"p"},"warmpool":"p"})");
}

TEST(ClaimConversion, ShowsATemplateAsTheDefault) {
  EXPECT_EQ(to_text(alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxClaim","spec":{"sandboxTemplateRef":{"name":"t"},"whenEmpty":"Wait",
    "waitSeconds":3,"priority":1,"workingDir":"/w","files":[{"path":"/f","content":"x"}],
    "envFrom":[{"secretRef":{"name":"s"}}]}})")
                        .at("spec")),
            R"({"sandboxTemplateRef":{"name":"t"},"warmpool":"default"})");
}

TEST(ClaimConversion, ShowsAPoolThatWasChanged) {
  Json claim = beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxClaim",
    "metadata":{"name":"c"},"spec":{"sandboxTemplateRef":{"name":"t"},"warmpool":"default"}})");
  claim.at("spec").as_object()["warmPoolRef"] = json(R"({"name":"other"})");
  to_v1alpha1(claim);
  EXPECT_EQ(to_text(claim.at("spec")), R"({"sandboxTemplateRef":{"name":"t"},"warmpool":"other"})");
  EXPECT_FALSE(find(claim, {"metadata", "annotations", kClaimState}));
}

TEST(TemplateConversion, CarriesThePolicyInAnAnnotation) {
  Json object = alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxTemplate","metadata":{"name":"t"},
    "spec":{"podTemplate":{},"volumeClaimTemplatesPolicy":"Allowed"}})");
  EXPECT_EQ(text_at(object, {"metadata", "annotations", kPolicy}), "Allowed");
  EXPECT_FALSE(find(object, {"spec", "volumeClaimTemplatesPolicy"}));
  to_v1beta1(object);
  EXPECT_EQ(text_at(object, {"spec", "volumeClaimTemplatesPolicy"}), "Allowed");
  EXPECT_FALSE(find(object, {"metadata", "annotations", kPolicy}));
}

TEST(TemplateConversion, RemovesAStalePolicyAndRefusesAWrongOne) {
  const Json object = alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxTemplate","metadata":{"annotations":{"a":"b",
    "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy":"Allowed"}},"spec":{}})");
  EXPECT_EQ(to_text(object.at("metadata")), R"({"annotations":{"a":"b"}})");
  try {
    beta(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxTemplate",
      "metadata":{"annotations":{
      "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy":"Often"}}})");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), R"(invalid VolumeClaimTemplatesPolicy annotation value: "Often")");
  }
}

TEST(TemplateConversion, GoesThereAndBack) {
  expect_round_trip(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxTemplate","metadata":{"name":"t"},"spec":{"podTemplate":{"spec":{}},
    "networkPolicyManagement":"Managed"}})");
}

TEST(WarmPoolConversion, GoesThereAndBack) {
  expect_round_trip(R"({"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
    "kind":"SandboxWarmPool","metadata":{"name":"p"},"spec":{"replicas":3,
    "sandboxTemplateRef":{"name":"t"}},"status":{"replicas":2}})");
}

TEST(WarmPoolConversion, ShowsOneWhereNothingIsSaid) {
  const Json pool = alpha(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxWarmPool","spec":{"sandboxTemplateRef":{"name":"t"}},
    "status":{"observedGeneration":4,"replicas":1}})");
  EXPECT_EQ(number_at(pool, {"spec", "replicas"}), 1);
  EXPECT_EQ(to_text(pool.at("status")), R"({"replicas":1})");
}

}  // namespace
}  // namespace hearth::model
