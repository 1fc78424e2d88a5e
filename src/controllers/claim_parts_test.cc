// The pure parts of claims: metadata, cold sandboxes, adoption, outfits.
#include <gtest/gtest.h>

#include "client/kinds.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_cold.h"
#include "controllers/claim_metadata.h"
#include "controllers/claim_metrics.h"
#include "controllers/claim_outfit.h"
#include "controllers/claim_problem.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

const std::vector<std::string> kDomains = {"sandbox.users.io"};

// What a claim is told, as "REASON: TEXT"; "Error: TEXT" where it is tried again.
template <typename F>
std::string told(F act) {
  try {
    act();
  } catch (const ClaimProblem& problem) {
    return problem.reason() + ": " + problem.what();
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  }
  return "";
}

std::string label_problem(std::string_view key, std::string_view value,
                          const std::vector<std::string>& domains = kDomains) {
  Json claim = json(R"({"spec":{"additionalPodMetadata":{"labels":{}}}})");
  claim.at_pointer("/spec/additionalPodMetadata/labels").as_object()[key] = value;
  return told([&] { check_additional_metadata(claim, domains); });
}

std::string annotation_problem(std::string_view key) {
  Json claim = json(R"({"spec":{"additionalPodMetadata":{"annotations":{}}}})");
  claim.at_pointer("/spec/additionalPodMetadata/annotations").as_object()[key] = "x";
  return told([&] { check_additional_metadata(claim, kDomains); });
}

TEST(ClaimMetadata, LabelsNeedADomainThatIsAllowed) {
  EXPECT_EQ(label_problem("sandbox.users.io/a", "b"), "");
  EXPECT_EQ(label_problem("deep.sandbox.users.io/a", "b"), "");
  EXPECT_EQ(label_problem("SANDBOX.USERS.IO/a", "b").substr(0, 15), "InvalidMetadata");
  EXPECT_EQ(label_problem("team", "b"),
            "InvalidMetadata: invalid additionalPodMetadata: failed to validate label \"team\": "
            "label \"team\" must have a domain prefix (e.g. 'sandbox.users.io/my-label') to "
            "prevent opting into unintended policy domains");
  EXPECT_EQ(label_problem("evil.io/a", "b"),
            "InvalidMetadata: invalid additionalPodMetadata: failed to validate label "
            "\"evil.io/a\": label domain \"evil.io\" is not in the allowlist");
  EXPECT_NE(label_problem("notsandbox.users.io/a", "b"), "");
  EXPECT_EQ(label_problem("corp.example/a", "b", {"corp.example"}), "");
  EXPECT_NE(label_problem("sandbox.users.io/a", "b", {"corp.example"}), "");
}

TEST(ClaimMetadata, LabelsThatAreNoneAreRefused) {
  EXPECT_NE(label_problem("sandbox.users.io/a", std::string(64, 'x')).find("invalid label value"),
            std::string::npos);
  EXPECT_NE(label_problem("sandbox.users.io/a", "-x-").find("does not match allowed pattern"),
            std::string::npos);
  EXPECT_NE(label_problem("sandbox.users.io/-a", "x").find("invalid label key"), std::string::npos);
  EXPECT_NE(label_problem("agents.x-k8s.io/claim-uid", "x"), "");
}

TEST(ClaimMetadata, NobodyTakesTheRoutersPlace) {
  for (const std::string_view key : {"app", "App"})
    EXPECT_NE(label_problem(key, "Sandbox-Router")
                  .find("\"=\"Sandbox-Router\" is not allowed in AdditionalPodMetadata"),
              std::string::npos);
}

TEST(ClaimMetadata, AnnotationsOfTheSystemAreRefused) {
  EXPECT_EQ(annotation_problem("note"), "");
  EXPECT_EQ(annotation_problem("example.com/note"), "");
  EXPECT_EQ(annotation_problem("cluster-autoscaler.kubernetes.io/safe-to-evict"), "");
  for (const std::string_view key : {"kubernetes.io/a", "x.k8s.io/a", "agents.x-k8s.io/pod-name",
                                     "extensions.agents.x-k8s.io/a", "a.kubernetes.io/b"})
    EXPECT_NE(annotation_problem(key).find("restricted system domain"), std::string::npos) << key;
}

Json template_json(std::string_view more = "{}") {
  Json made = json(R"({"metadata":{"name":"py","namespace":"n"},"spec":{
    "podTemplate":{"metadata":{"labels":{"team":"a"}},"spec":{
      "initContainers":[{"name":"setup","image":"i"}],
      "containers":[{"name":"main","image":"i","env":[{"name":"HOME","value":"/root"},
        {"name":"KEY","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]},
        {"name":"side","image":"i"}]}}}})");
  const Json parts = json(more);
  for (const auto& [key, value] : parts.as_object()) made.at("spec").as_object()[key] = value;
  return made;
}

Json claim_json(std::string_view spec = "{}") {
  Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim",
    "metadata":{"name":"c","namespace":"n","uid":"u-1","generation":3,"resourceVersion":"7",
      "labels":{"agents.x-k8s.io/created-by":"python-client"},
      "annotations":{"opentelemetry.io/trace-context":"{}"}},
    "spec":{"warmPoolRef":{"name":"pool"}}})");
  const Json parts = json(spec);
  for (const auto& [key, value] : parts.as_object()) made.at("spec").as_object()[key] = value;
  return made;
}

TEST(ColdSandbox, IsTheTemplateUnderTheClaimsName) {
  const Json made = cold_sandbox(claim_json(), template_json());
  EXPECT_EQ(model::name_of(made), "c");
  EXPECT_TRUE(model::is_controlled_by(made, "u-1"));
  EXPECT_EQ(model::label_of(made, model::kLaunchTypeLabel), "cold");
  EXPECT_EQ(model::label_of(made, model::kClaimUidLabel), "u-1");
  EXPECT_EQ(model::label_of(made, model::kCreatedByLabel), "python-client");
  EXPECT_EQ(model::label_of(made, model::kTemplateRefHashLabel), model::name_hash("py"));
  EXPECT_EQ(model::annotation_of(made, model::kTemplateRefAnnotation), "py");
  EXPECT_EQ(model::annotation_of(made, model::kTraceContextAnnotation), "{}");
  const Json& pod = made.at_pointer("/spec/podTemplate");
  EXPECT_EQ(pod.at_pointer("/metadata/labels/team").as_string(), "a");
  EXPECT_EQ(model::label_of(pod, model::kClaimUidLabel), "u-1");
  EXPECT_EQ(pod.at_pointer("/spec/automountServiceAccountToken").as_bool(), false);
  EXPECT_EQ(pod.at_pointer("/spec/dnsPolicy").as_string(), "None");
}

TEST(ColdSandbox, KeepsAnExplicitTokenAndNetwork) {
  Json own = template_json(R"({"networkPolicyManagement":"Unmanaged"})");
  own.at_pointer("/spec/podTemplate/spec").as_object()["automountServiceAccountToken"] = true;
  const Json made = cold_sandbox(claim_json(), own);
  EXPECT_EQ(made.at_pointer("/spec/podTemplate/spec/automountServiceAccountToken").as_bool(), true);
  EXPECT_FALSE(model::find(made, {"spec", "podTemplate", "spec", "dnsPolicy"}));
}

std::string environment_problem(std::string_view env, std::string_view policy) {
  const Json own = template_json(
      policy.empty() ? "{}" : R"({"envVarsInjectionPolicy":")" + std::string(policy) + "\"}");
  return told([&] { cold_sandbox(claim_json(R"({"env":)" + std::string(env) + "}"), own); });
}

TEST(ColdSandbox, EnvironmentFollowsThePolicy) {
  const std::string_view plain = R"([{"name":"A","value":"1"}])";
  const std::string refused =
      "EnvVarsInjectionRejected: environment variable injection rejected: environment variable "
      "injection is not allowed by the template policy";
  EXPECT_EQ(environment_problem(plain, ""), refused);
  EXPECT_EQ(environment_problem(plain, "Disallowed"), refused);
  EXPECT_EQ(environment_problem("[]", ""), "");
  EXPECT_EQ(environment_problem(plain, "Allowed"), "");
  EXPECT_EQ(environment_problem(R"([{"name":"HOME","value":"/x"}])", "Allowed"),
            "Error: environment variable override is not allowed by the template policy for "
            "variable \"HOME\"");
  EXPECT_EQ(environment_problem(R"([{"name":"HOME","value":"/x"}])", "Overrides"), "");
  EXPECT_EQ(environment_problem(R"([{"name":"A","value":"1","containerName":"no"}])", "Allowed"),
            "Error: target container \"no\" not found in template for environment variable \"A\"");
  EXPECT_EQ(environment_problem(R"([{"name":"A","value":"1","containerName":"setup"}])", "Allowed"),
            "");
}

TEST(ColdSandbox, AnOverrideReplacesAllOfAVariable) {
  const Json made = cold_sandbox(claim_json(R"({"env":[{"name":"KEY","value":"v"},
        {"name":"B","value":"2","containerName":"side"}]})"),
                                 template_json(R"({"envVarsInjectionPolicy":"Overrides"})"));
  EXPECT_EQ(model::to_text(made.at_pointer("/spec/podTemplate/spec/containers/0/env/1")),
            R"({"name":"KEY","value":"v"})");
  EXPECT_EQ(model::to_text(made.at_pointer("/spec/podTemplate/spec/containers/1/env")),
            R"([{"name":"B","value":"2"}])");
}

TEST(ColdSandbox, AllowedDoesNotGoWithSourcesThatNobodyHasRead) {
  Json own = template_json(R"({"envVarsInjectionPolicy":"Allowed"})");
  own.at_pointer("/spec/podTemplate/spec/containers/0").as_object()["envFrom"] =
      json(R"([{"secretRef":{"name":"s"}}])");
  const Json claim = claim_json(R"({"env":[{"name":"A","value":"1"}]})");
  EXPECT_EQ(told([&] { cold_sandbox(claim, own); }),
            "EnvVarsInjectionRejected: environment variable injection rejected: container \"main\" "
            "uses EnvFrom sources; Allowed policy cannot safely prevent overriding "
            "EnvFrom-provided variables");
  own.at("spec").as_object()["envVarsInjectionPolicy"] = "Overrides";
  EXPECT_EQ(told([&] { cold_sandbox(claim, own); }), "");
}

TEST(ColdSandbox, VolumesFollowThePolicy) {
  const auto volume = [](std::string_view name, std::string_view size) {
    return R"({"metadata":{"name":")" + std::string(name) +
           R"("},"spec":{"resources":{"requests":{"storage":")" + std::string(size) + R"("}}}})";
  };
  const auto merged = [&](std::string_view policy, std::string_view name) {
    const Json own = template_json(R"({"volumeClaimTemplatesPolicy":")" + std::string(policy) +
                                   R"(","volumeClaimTemplates":[)" + volume("a", "1Gi") + "," +
                                   volume("b", "1Gi") + "]}");
    const Json claim = claim_json(R"({"volumeClaimTemplates":[)" + volume(name, "9Gi") + "]}");
    std::string names;
    for (const Json& each : merged_volume_claims(claim, own))
      names += std::string(model::text_at(each, {"metadata", "name"})) + "=" +
               std::string(model::text_at(each, {"spec", "resources", "requests", "storage"})) +
               " ";
    return names;
  };
  EXPECT_EQ(merged("Allowed", "c"), "a=1Gi b=1Gi c=9Gi ");
  EXPECT_EQ(merged("Overrides", "a"), "a=9Gi b=1Gi ");
  EXPECT_EQ(told([&] { merged("Disallowed", "c"); }),
            "VolumeClaimTemplatesError: failed to merge volume claim templates: volume claim "
            "templates are disallowed by the template");
  EXPECT_EQ(told([&] { merged("Allowed", "a"); }),
            "VolumeClaimTemplatesError: failed to merge volume claim templates: overriding volume "
            "claim templates is forbidden by the template: cannot override template volume \"a\"");
  EXPECT_EQ(told([&] { merged("Allowed", ""); }),
            "VolumeClaimTemplatesError: failed to merge volume claim templates: claim: invalid "
            "volume claim templates: name at index 0 is empty");
  const Json twice = template_json(R"({"volumeClaimTemplates":[)" + volume("a", "1Gi") + "," +
                                   volume("a", "1Gi") + "]}");
  EXPECT_EQ(told([&] { merged_volume_claims(claim_json(), twice); }),
            "VolumeClaimTemplatesError: invalid volume claim templates in template: invalid volume "
            "claim templates: duplicate name \"a\"");
}

TEST(ColdSandbox, BringsFilesDirectoryAndMounts) {
  const Json made = cold_sandbox(
      claim_json(R"({"files":[{"path":"/etc/a","content":"hello"},
        {"path":"/etc/b","secretKeyRef":{"name":"s","key":"k"},"mode":256}],
        "workingDir":"/work","volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{},
        "mountPath":"/data"}]})"),
      template_json(
          R"({"envVarsInjectionPolicy":"Allowed","volumeClaimTemplatesPolicy":"Allowed"})"));
  const Json& pod = made.at_pointer("/spec/podTemplate");
  EXPECT_EQ(model::annotation_of(pod, "hearth.dev/claim-file-0"), "hello");
  EXPECT_EQ(pod.at_pointer("/spec/containers/0/workingDir").as_string(), "/work");
  EXPECT_EQ(pod.at_pointer("/spec/containers/0/volumeMounts/0/mountPath").as_string(), "/data");
  EXPECT_EQ(pod.at_pointer("/spec/containers/0/volumeMounts/1/mountPath").as_string(), "/etc/a");
  EXPECT_EQ(pod.at_pointer("/spec/volumes/1/secret/secretName").as_string(), "s");
  EXPECT_FALSE(model::find(made.at_pointer("/spec/volumeClaimTemplates/0"), {"mountPath"}));
  // What holds the text of files stays when the claim is looked after.
  EXPECT_TRUE(upkeep_patch(claim_json(), made, nullptr).is_null());
  EXPECT_NE(told([&] {
              cold_sandbox(claim_json(R"({"files":[{"path":"/a/../b","content":""}]})"),
                           template_json(R"({"envVarsInjectionPolicy":"Allowed"})"));
            }),
            "");
}

Json member_json() {
  return json(R"({"metadata":{"name":"pool-x","namespace":"n","resourceVersion":"5",
    "labels":{"agents.x-k8s.io/warm-pool-sandbox":"h","agents.x-k8s.io/sandbox-template-ref-hash":"t",
      "agents.x-k8s.io/created-by":"controller"},
    "annotations":{"agents.x-k8s.io/pod-name":"stale"},
    "ownerReferences":[{"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxWarmPool",
      "name":"pool","uid":"p","controller":true}]},
    "spec":{"podTemplate":{"metadata":{"labels":{"agents.x-k8s.io/warm-pool-sandbox":"h"},
      "annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}},"spec":{}}}})");
}

TEST(ClaimAdoption, IsOnePatchWithAllOfIt) {
  EXPECT_EQ(
      model::to_text(adoption_patch(claim_json(), member_json(), nullptr)),
      R"({"metadata":{"labels":{"agents.x-k8s.io/warm-pool-sandbox":null,)"
      R"("agents.x-k8s.io/sandbox-pod-template-hash":null,)"
      R"("agents.x-k8s.io/sandbox-template-hash":null,"agents.x-k8s.io/launch-type":"warm",)"
      R"("agents.x-k8s.io/claim-uid":"u-1","agents.x-k8s.io/created-by":"python-client",)"
      R"("agents.x-k8s.io/sandbox-template-ref-hash":"t"},)"
      R"("annotations":{"agents.x-k8s.io/pod-name":"pool-x","opentelemetry.io/trace-context":"{}"},)"
      R"("ownerReferences":[{"apiVersion":"extensions.agents.x-k8s.io/v1beta1",)"
      R"("kind":"SandboxClaim","name":"c","uid":"u-1","controller":true,"blockOwnerDeletion":true}]},)"
      R"("spec":{"podTemplate":{"metadata":{"labels":{"agents.x-k8s.io/claim-uid":"u-1",)"
      R"("agents.x-k8s.io/created-by":"python-client","agents.x-k8s.io/warm-pool-sandbox":null},)"
      R"("annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":null}}}}})");
}

TEST(ClaimAdoption, OfOneThatWasDressedForE2bUndressesIt) {
  Json member = member_json();
  member.at_pointer("/spec/podTemplate/metadata/annotations").as_object()["hearth.dev/dress"] = "t";
  const Json own = template_json();
  for (const Json* sandbox_template : {static_cast<const Json*>(nullptr), &own}) {
    const Json patch = adoption_patch(claim_json(), member, sandbox_template);
    EXPECT_EQ(model::annotation_of(patch, kOutfitAnnotation), kUndress);
    const Json* dress =
        model::find(patch, {"spec", "podTemplate", "metadata", "annotations", "hearth.dev/dress"});
    ASSERT_TRUE(dress);
    EXPECT_TRUE(dress->is_null());
    const auto outfits = outfits_of(claim_json(), patch, [](auto&&...) { return std::nullopt; });
    ASSERT_EQ(outfits.size(), 1U);
    EXPECT_TRUE(outfits[0].drops_token);
  }
  EXPECT_EQ(
      model::annotation_of(adoption_patch(claim_json(), member_json(), &own), kOutfitAnnotation),
      "");
}

TEST(ClaimAdoption, SafeToEvictStaysWhereSomebodyMeantIt) {
  Json own = template_json();
  own.at_pointer("/spec/podTemplate/metadata").as_object()["annotations"] =
      json(R"({"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"})");
  const Json patch = adoption_patch(claim_json(), member_json(), &own);
  EXPECT_FALSE(model::find(patch, {"spec", "podTemplate", "metadata", "annotations"}));
  const Json claim = claim_json(
      R"({"additionalPodMetadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"}}})");
  const Json wish = adoption_patch(claim, member_json(), nullptr);
  EXPECT_EQ(model::text_at(wish, {"spec", "podTemplate", "metadata", "annotations",
                                  "cluster-autoscaler.kubernetes.io/safe-to-evict"}),
            "false");
  EXPECT_EQ(told([&] { adoption_patch(claim, member_json(), &own); }),
            "Error: metadata override conflict: annotation "
            "\"cluster-autoscaler.kubernetes.io/safe-to-evict\" is defined in template with value "
            "\"true\", but claim requests \"false\"");
}

TEST(ClaimAdoption, BringsTheRulesOfAccessUpToDate) {
  Json own = template_json();
  own.at("metadata").as_object()["annotations"] =
      json(R"({"hearth.dev/access":"team-key","hearth.dev/https-ports":"8443","other":"x"})");
  Json member = member_json();
  member.at_pointer("/metadata/annotations").as_object()["hearth.dev/access"] = "open";
  member.at_pointer("/metadata/annotations").as_object()["hearth.dev/https-ports"] = "8443";
  const Json patch = adoption_patch(claim_json(), member, &own);
  EXPECT_EQ(model::to_text(patch.at_pointer("/metadata/annotations")),
            R"({"agents.x-k8s.io/pod-name":"pool-x","hearth.dev/access":"team-key",)"
            R"("opentelemetry.io/trace-context":"{}"})");
  const Json cold = cold_sandbox(claim_json(), own);
  EXPECT_EQ(model::annotation_of(cold, "hearth.dev/access"), "team-key");
  EXPECT_EQ(model::annotation_of(cold, "hearth.dev/https-ports"), "8443");
  EXPECT_EQ(model::annotation_of(cold, "other"), "");
}

TEST(ClaimAdoption, TakesTheCreatorFromTheClaimOrNobody) {
  Json claim = claim_json();
  claim.at("metadata").as_object().erase("labels");
  const Json patch = adoption_patch(claim, member_json(), nullptr);
  EXPECT_TRUE(patch.at("metadata").at("labels").at(model::kCreatedByLabel).is_null());
}

TEST(ClaimAdoption, OffersOnlyMembersOfTheRightPool) {
  const Json claim = claim_json();
  EXPECT_TRUE(is_offered_to(claim, member_json()));
  Json other = member_json();
  other.at_pointer("/metadata").as_object()["namespace"] = "m";
  EXPECT_FALSE(is_offered_to(claim, other));
  other = member_json();
  other.at_pointer("/metadata/ownerReferences/0").as_object()["name"] = "another";
  EXPECT_FALSE(is_offered_to(claim, other));
  other.at_pointer("/metadata").as_object().erase("ownerReferences");
  EXPECT_FALSE(is_offered_to(claim, other));
}

TEST(ClaimAdoption, NeverOverwritesALaunchType) {
  Json own = cold_sandbox(claim_json(), template_json());
  const Json sandbox_template = template_json();
  EXPECT_TRUE(upkeep_patch(claim_json(), own, &sandbox_template).is_null());
  own.at("metadata").at("labels").as_object().erase(model::kLaunchTypeLabel);
  EXPECT_EQ(model::to_text(upkeep_patch(claim_json(), own, &sandbox_template)),
            R"({"metadata":{"labels":{"agents.x-k8s.io/launch-type":"cold"}}})");
  own.at("metadata").as_object()["name"] = "pool-x";
  EXPECT_EQ(model::to_text(upkeep_patch(claim_json(), own, &sandbox_template)),
            R"({"metadata":{"labels":{"agents.x-k8s.io/launch-type":"warm"}}})");
}

std::optional<Json> read_secret(const client::ResourceId& kind, std::string_view name) {
  if (kind.plural == "configmaps")
    return json(R"({"kind":"ConfigMap","metadata":{"name":"m"},"data":{"A":"1","HOME":"/m"}})");
  if (name == "gone") return std::nullopt;
  Json secret = json(R"({"kind":"Secret","metadata":{"name":"s"},"data":{"token":"aHVzaA=="}})");
  if (name == "open")
    secret.at("metadata").as_object()["labels"] = json(R"({"hearth.dev/claimable":"true"})");
  return secret;
}

TEST(ClaimOutfit, GathersWhatTheClaimNames) {
  const Json claim = claim_json(R"({"env":[{"name":"B","value":"2"},
      {"name":"S","value":"3","containerName":"side"}],
    "envFrom":[{"configMapRef":{"name":"m"},"prefix":"P_"},{"configMapRef":{"name":"m"}}],
    "files":[{"path":"/t","secretKeyRef":{"name":"open","key":"token"},"mode":256}],
    "workingDir":"/w"})");
  Json sandbox = template_json();
  const auto outfits = outfits_of(claim, sandbox, read_secret);
  ASSERT_EQ(outfits.size(), 2U);
  // HOME is the template's own.
  EXPECT_EQ(outfits[0].environment, (std::vector<std::string>{"A=1", "B=2", "P_A=1", "P_HOME=/m"}));
  EXPECT_EQ(outfits[0].directory, "/w");
  ASSERT_EQ(outfits[0].files.size(), 1U);
  EXPECT_EQ(outfits[0].files[0].content, "hush");
  EXPECT_EQ(outfits[0].files[0].mode, 0400U);
  EXPECT_EQ(outfits[1].container, "side");
  EXPECT_EQ(shown_text("wrote hush", outfits),
            "the reason is withheld: it holds a value of the claim");
  EXPECT_EQ(shown_text("disk full", outfits), "disk full");
}

TEST(ClaimOutfit, SecretsMustBeForClaims) {
  const auto problem = [](std::string_view name, std::string_view key) {
    const Json claim =
        claim_json(R"({"files":[{"path":"/t","secretKeyRef":{"name":")" + std::string(name) +
                   R"(","key":")" + std::string(key) + R"("}}]})");
    return told([&] { check_references(claim, read_secret); });
  };
  EXPECT_EQ(problem("open", "token"), "");
  EXPECT_EQ(problem("shut", "token"),
            "Error: Secret 'shut' is not for claims: it has no label hearth.dev/claimable=true");
  EXPECT_EQ(problem("gone", "token"), "Error: Secret 'gone' not found");
  EXPECT_EQ(problem("open", "other"), "Error: 's' has no key 'other'");
}

TEST(ClaimOutfit, KnowsWhatARunningPodCanGet) {
  const Json own = template_json(R"({"volumeClaimTemplates":[{"metadata":{"name":"v"}}]})");
  const auto is_for_warm = [&](std::string_view spec) {
    return is_outfit_for_warm(claim_json(spec), own);
  };
  EXPECT_FALSE(has_outfit(claim_json()));
  EXPECT_TRUE(has_outfit(claim_json(R"({"workingDir":"/w"})")));
  EXPECT_TRUE(is_for_warm(R"({"env":[{"name":"A","value":"1"}]})"));
  EXPECT_FALSE(is_for_warm(R"({"env":[{"name":"A","value":"1","containerName":"setup"}]})"));
  EXPECT_FALSE(is_for_warm(R"({"volumeClaimTemplates":[{"metadata":{"name":"w"}}]})"));
  EXPECT_TRUE(
      is_for_warm(R"({"volumeClaimTemplates":[{"metadata":{"name":"w"},"mountPath":"/w"}]})"));
  EXPECT_FALSE(
      is_for_warm(R"({"volumeClaimTemplates":[{"metadata":{"name":"v"},"mountPath":"/w"}]})"));
}

TEST(ClaimMetrics, KnowCreatorsByName) {
  EXPECT_EQ(known_creator("go-client"), "go-client");
  EXPECT_EQ(known_creator("me"), "unknown");
  EXPECT_EQ(known_creator(""), "unknown");
}

}  // namespace
}  // namespace hearth::controllers
