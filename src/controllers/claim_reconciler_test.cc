#include <algorithm>

#include "base/time_text.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_testing.h"

namespace hearth::controllers {
namespace {

using model::text_at;

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

TEST(Claims, AWarmOneIsReadyInOnePass) {
  ClaimWorld world;
  world.add_member("pool-a", "10.0.0.7");
  const Json made = world.add_claim("c", "{}", R"({"labels":
    {"agents.x-k8s.io/created-by":"python-client"}})");
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);

  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.bound(), "pool-a");
  const Json claim = world.claim();
  EXPECT_EQ(model::to_text(*model::find(claim, {"status", "sandbox", "podIPs"})),
            R"(["10.0.0.7"])");
  const Json sandbox = world.sandbox("pool-a");
  EXPECT_TRUE(model::is_controlled_by(sandbox, model::uid_of(made)));
  EXPECT_EQ(model::array_at(sandbox, {"metadata", "ownerReferences"})->size(), 1U);
  EXPECT_EQ(model::label_of(sandbox, model::kPoolLabel), "");
  EXPECT_EQ(model::label_of(sandbox, model::kTemplateHashLabel), "");
  EXPECT_EQ(model::label_of(sandbox, model::kLaunchTypeLabel), "warm");
  EXPECT_EQ(model::label_of(sandbox, model::kCreatedByLabel), "python-client");
  EXPECT_EQ(model::label_of(sandbox, model::kClaimUidLabel), model::uid_of(made));
  EXPECT_EQ(model::annotation_of(sandbox, model::kPodNameAnnotation), "pool-a");
  EXPECT_EQ(
      model::annotation_of(sandbox.at_pointer("/spec/podTemplate"), model::kSafeToEvictAnnotation),
      "");
  EXPECT_TRUE(has(world.told(), R"(SandboxAdopted/Adoption: Adopted warm pool Sandbox "pool-a")"));
}

TEST(Claims, AWarmOneTakesThreeWrites) {
  ClaimWorld world({.claim_observability_annotations = false});
  world.add_member("pool-a");
  world.add_claim();  // the first
  world.pass();
  EXPECT_EQ(world.faulty.writes(),
            (std::vector<std::string>{"patch sandboxes", "patch sandboxclaims/status"}));
  // Nothing more is written when its own writes come back, nor by another process.
  world.pass();
  world.pass();
  world.restart();
  world.pass();
  EXPECT_EQ(world.faulty.writes().size(), 2U);
}

TEST(Claims, AnnotationsComeTogetherAndAfterReady) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.pass();
  EXPECT_EQ(world.faulty.writes(),
            (std::vector<std::string>{"patch sandboxes", "patch sandboxclaims/status",
                                      "patch sandboxclaims"}));
  const Json claim = world.claim();
  EXPECT_TRUE(parse_rfc3339(model::annotation_of(claim, model::kFirstObservedAnnotation)));
  EXPECT_TRUE(parse_rfc3339(model::annotation_of(claim, model::kFirstReadyAnnotation)));
  EXPECT_EQ(model::annotation_of(claim, model::kSandboxNameAnnotation), "pool-a");
  world.pass();
  EXPECT_EQ(world.faulty.writes().size(), 3U);
}

TEST(Claims, AnnotationsMayComeLater) {
  ClaimWorld world({.annotation_delay = std::chrono::seconds(1)});
  world.add_member("pool-a");
  world.add_claim();
  EXPECT_EQ(world.pass(), std::chrono::seconds(1));
  EXPECT_EQ(world.faulty.writes().size(), 2U);
  world.clock.advance(std::chrono::milliseconds(400));
  EXPECT_EQ(world.pass(), std::chrono::milliseconds(600)) << "its own writes do not delay them";
  const Time ready = world.clock.now() - std::chrono::milliseconds(400);
  world.clock.advance(std::chrono::milliseconds(600));
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(model::annotation_of(world.claim(), model::kFirstReadyAnnotation),
            format_rfc3339(ready, 9));
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(world.faulty.writes().size(), 3U);
}

TEST(Claims, AColdOneHasNoAnnotationOfAnAdoption) {
  ClaimWorld world;
  world.add_claim();
  world.pass();
  world.set_sandbox("c", "10.0.0.1", "True", "DependenciesReady", "Pod is Ready");
  world.pass();
  EXPECT_FALSE(model::annotation_of(world.claim(), model::kFirstReadyAnnotation).empty());
  EXPECT_EQ(model::annotation_of(world.claim(), model::kSandboxNameAnnotation), "");
}

TEST(Claims, LatencyIsMeasuredToTheMomentWhenItIsTold) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.faulty.after = [&](const std::string& write) {
    if (write == "patch sandboxes") world.clock.advance(std::chrono::milliseconds(7));
  };
  world.pass();
  EXPECT_NE(world.process->metrics.render().find(
                "agent_sandbox_claim_controller_startup_latency_ms_sum{launch_type=\"warm\","
                "sandbox_template=\"py\"} 7\n"),
            std::string::npos);
}

TEST(Claims, AColdOneHasTheClaimsName) {
  ClaimWorld world;
  world.add_claim();
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(world.bound(), "c");
  EXPECT_EQ(world.ready(), "False SandboxNotReady: Sandbox is not ready");
  EXPECT_EQ(model::label_of(world.sandbox("c"), model::kLaunchTypeLabel), "cold");
  EXPECT_TRUE(has(world.told(), R"(SandboxProvisioned/Provisioning: Created Sandbox "c")"));
  world.set_sandbox("c", "10.0.0.3", "True", "DependenciesReady", "Pod is Ready");
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.faulty.writes(),
            (std::vector<std::string>{"create sandboxes", "patch sandboxclaims/status",
                                      "patch sandboxclaims/status", "patch sandboxclaims"}));
}

TEST(Claims, MissingPoolsAndTemplatesAreNamedAndRecoverFrom) {
  ClaimWorld world;
  world.add_claim("c", R"({"warmPoolRef":{"name":"nope"}})");
  EXPECT_EQ(world.pass(), std::chrono::minutes(1));
  EXPECT_EQ(world.ready(), R"(False WarmPoolNotFound: SandboxWarmPool "nope" not found)");
  world.client().create(client::kSandboxWarmPools, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"namespace":"default","name":"nope"},
    "spec":{"sandboxTemplateRef":{"name":"later"}}})"));
  EXPECT_EQ(world.pass(), std::chrono::minutes(1));
  EXPECT_EQ(world.ready(), R"(False TemplateNotFound: SandboxTemplate "later" not found)");
  world.client().create(client::kSandboxTemplates, template_named("later"));
  world.pass();
  EXPECT_EQ(world.bound(), "c");
}

// Clients take "not found" for final, and caches may be behind.
TEST(Claims, NotFoundIsNotSaidOfWhatTheCacheHasNotSeen) {
  ClaimWorld world;
  world.process->pools.stop();
  world.process->templates.stop();
  world.client().create(client::kSandboxTemplates, template_named("new"));
  world.client().create(client::kSandboxWarmPools, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"namespace":"default","name":"new"},
    "spec":{"sandboxTemplateRef":{"name":"new"}}})"));
  world.add_claim("c", R"({"warmPoolRef":{"name":"new"}})");
  follow(world.client(), client::kSandboxClaims, world.process->claims, "c");
  world.look();
  EXPECT_EQ(world.bound(), "c");
}

TEST(Claims, InvalidMetadataComesBeforeAnything) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("c", R"({"additionalPodMetadata":{"labels":{"team":"x"}}})");
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_TRUE(world.ready().starts_with("False InvalidMetadata: invalid additionalPodMetadata"));
  EXPECT_TRUE(world.owned().empty());
}

TEST(Claims, MetadataFollowsTheClaimAndTheTemplate) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("c", R"({"additionalPodMetadata":{"labels":{"sandbox.users.io/a":"1"}}})");
  world.pass();
  world.patch_claim(R"({"spec":{"additionalPodMetadata":{"labels":{"sandbox.users.io/a":null,
    "sandbox.users.io/b":"2"}}}})");
  world.patch_template(R"({"spec":{"podTemplate":{"metadata":{"labels":{"t":"3"}},
    "spec":{"restartPolicy":"Never"}}}})");
  world.pass();
  const Json sandbox = world.sandbox("pool-a");
  const Json& pod = sandbox.at_pointer("/spec/podTemplate");
  EXPECT_EQ(model::label_of(pod, "sandbox.users.io/a"), "");
  EXPECT_EQ(model::label_of(pod, "sandbox.users.io/b"), "2");
  EXPECT_EQ(model::label_of(pod, "t"), "3");
  EXPECT_FALSE(model::find(pod, {"spec", "restartPolicy"}));
  world.patch_claim(R"({"spec":{"additionalPodMetadata":{"labels":{"sandbox.users.io/b":null}}}})");
  world.patch_template(
      R"({"spec":{"podTemplate":{"metadata":{"labels":{"sandbox.users.io/b":"9"}}}}})");
  world.pass();
  world.patch_claim(R"({"spec":{"additionalPodMetadata":{"labels":{"sandbox.users.io/b":"8"}}}})");
  EXPECT_THROW(world.pass(), Error);
  EXPECT_TRUE(
      world.ready().starts_with("False ReconcilerError: Error seen: metadata override "
                                "conflict: label \"sandbox.users.io/b\""));
  EXPECT_EQ(world.bound(), "pool-a");
}

TEST(Claims, ReadyOnesAreTakenFirstAndNotReadyOnesRatherThanNone) {
  ClaimWorld world;
  world.add_member("pool-a", "10.0.0.1", false);
  world.add_member("pool-b", "10.0.0.2", true);
  world.add_claim("one");
  world.add_claim("two");
  world.pass("one");
  world.pass("two");
  EXPECT_EQ(world.bound("one"), "pool-b");
  EXPECT_EQ(world.bound("two"), "pool-a");
  EXPECT_EQ(world.ready("two"), "False DependenciesNotReady: Pod is Running but not Ready");
}

TEST(Claims, AnAddressIsWaitedForALittle) {
  ClaimWorld world;
  world.add_member("pool-a", "", false);
  world.add_claim();
  world.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(world.ready(), "none");
  // In line: it is told as soon as there is one.
  const auto waiting = [&] { return world.process->allocator->stock({"default", "pool"}).waiting; };
  EXPECT_EQ(waiting(), 1U);
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(waiting(), 1U);
  world.set_sandbox("pool-a", "10.0.0.5", "True", "DependenciesReady", "Pod is Ready");
  ASSERT_TRUE(eventually([&] { return waiting() == 0; }));
  world.pass();
  EXPECT_EQ(world.bound(), "pool-a");

  world.add_member("pool-b", "", false);
  world.add_claim("late");
  world.clock.advance(std::chrono::seconds(5));
  world.pass("late");
  EXPECT_EQ(world.bound("late"), "late");
}

TEST(Claims, WhoHopedInVainStartsColdOrFails) {
  ClaimWorld world;
  world.add_member("pool-a", "", false);
  world.add_claim("cold");
  world.add_claim("fails", R"({"whenEmpty":"Fail"})");
  for (const char* name : {"cold", "fails"}) world.pass(name);
  world.clock.advance(std::chrono::seconds(5));
  ASSERT_TRUE(eventually(
      [&] { return world.process->allocator->stock({"default", "pool"}).waiting == 0; }));
  for (const char* name : {"cold", "fails"}) world.pass(name);
  EXPECT_EQ(world.bound("cold"), "cold");
  EXPECT_EQ(world.ready("fails"),
            R"(False WarmPoolEmpty: SandboxWarmPool "pool" has no sandbox to give)");
}

TEST(Claims, OnlyMembersOfTheirPoolAreTaken) {
  ClaimWorld world;
  world.client().create(client::kSandboxWarmPools, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"namespace":"default","name":"other"},
    "spec":{"sandboxTemplateRef":{"name":"py"}}})"));
  world.add_member("other-a", "10.0.0.1", true, "other");
  world.add_member("forged");
  world.patch_sandbox("forged", json(R"({"metadata":{"ownerReferences":null}})"));
  world.add_claim();
  world.pass();
  EXPECT_EQ(world.bound(), "c");
}

TEST(Claims, RecreatePoolsDoNotGiveOutdatedOnes) {
  ClaimWorld world;
  world.client().patch(client::kSandboxWarmPools, "default", "pool", client::PatchKind::merge,
                       json(R"({"spec":{"updateStrategy":{"type":"Recreate"}}})"));
  world.add_member("pool-a");  // of the template as it is, whatever its hash says
  world.add_claim("one");
  world.pass("one");
  EXPECT_EQ(world.bound("one"), "pool-a");
  world.add_member("pool-b");
  world.patch_template(R"({"spec":{"podTemplate":{"spec":{"containers":[
    {"name":"main","image":"python:3.13"}]}}}})");
  world.add_claim("two");
  world.pass("two");
  EXPECT_EQ(world.bound("two"), "two");
  world.client().patch(client::kSandboxWarmPools, "default", "pool", client::PatchKind::merge,
                       json(R"({"spec":{"updateStrategy":{"type":"OnReplenish"}}})"));
  world.add_claim("three");
  world.pass("three");
  EXPECT_EQ(world.bound("three"), "pool-b");
}

TEST(Claims, ANameThatIsTakenIsAnError) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.client().create(client::kSandboxes, json(R"({
    "apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "metadata":{"namespace":"default","name":"c"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})"));
  world.add_claim();
  EXPECT_THROW(world.pass(), Error);
  EXPECT_EQ(world.ready(),
            "False ReconcilerError: Error seen: sandbox \"c\" is not controlled by claim \"c\". "
            "Please use a different claim name or delete the sandbox manually");
  EXPECT_TRUE(world.owned().empty());
}

TEST(Claims, ASandboxThatIsDeletedIsReplaced) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.pass();
  ASSERT_EQ(world.bound(), "pool-a");
  world.client().remove(client::kSandboxes, "default", "pool-a");
  world.pass();
  EXPECT_EQ(world.bound(), "pool-b");
}

TEST(Claims, AssignedOnesOfAnotherControllerAreHonoured) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_member("pool-b");
  // Written down, and no more: the adoption is finished.
  world.add_claim("one", "{}", R"({"annotations":{"agents.x-k8s.io/sandbox-name":"pool-b"}})");
  world.pass("one");
  EXPECT_EQ(world.bound("one"), "pool-b");
  // Somebody else's by now, in an annotation or a label: not honoured.
  world.add_claim("two", "{}", R"({"labels":{"agents.x-k8s.io/sandbox-name":"pool-b"}})");
  world.pass("two");
  EXPECT_EQ(world.bound("two"), "pool-a");
  world.add_claim("three", "{}", R"({"annotations":{"agents.x-k8s.io/sandbox-name":"gone"}})");
  world.pass("three");
  EXPECT_EQ(world.bound("three"), "three");
  EXPECT_EQ(world.owned("one"), std::vector<std::string>{"pool-b"});
}

TEST(Claims, AnAssignedSandboxWithoutAddressIsKept) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.pass();
  world.set_sandbox("pool-a", "", "False", "DependenciesNotReady", "Pod does not exist");
  world.pass();
  EXPECT_EQ(world.bound(), "pool-a");
  EXPECT_EQ(world.ready(), "False DependenciesNotReady: Pod does not exist");
  EXPECT_FALSE(model::find(world.claim(), {"status", "sandbox", "podIPs"}));
  EXPECT_EQ(world.owned().size(), 1U);
}

TEST(Claims, ATemplateIsEnough) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("one", R"({"warmPoolRef":null,"sandboxTemplateRef":{"name":"py"}})");
  world.pass("one");
  EXPECT_EQ(world.bound("one"), "pool-a");  // any pool of it may serve
  world.add_claim("two", R"({"warmPoolRef":null,"sandboxTemplateRef":{"name":"py"}})");
  world.pass("two");
  EXPECT_EQ(world.bound("two"), "two");
  world.add_claim("three", R"({"warmPoolRef":null,"sandboxTemplateRef":{"name":"no"}})");
  world.pass("three");
  EXPECT_EQ(world.ready("three"), R"(False TemplateNotFound: SandboxTemplate "no" not found)");
  // What v1alpha1 claims become; nobody has to make such pools.
  world.add_claim("four", R"({"warmPoolRef":{"name":"shadow-pool-py"}})");
  world.pass("four");
  EXPECT_EQ(world.bound("four"), "four");
  const auto refused =
      apiserver::refusal([&] { world.add_claim("five", R"({"warmPoolRef":null})"); });
  EXPECT_NE(refused.message.find("spec.warmPoolRef: Required value"), std::string::npos);
}

TEST(Claims, OldNetworkPoliciesOfTheirOwnGo) {
  ClaimWorld world;
  const Json made = world.add_claim();
  const auto policy = [&](std::string_view name, bool is_own) {
    Json object = json(R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",
      "metadata":{"namespace":"default"},"spec":{"podSelector":{}}})");
    object.at("metadata").as_object()["name"] = name;
    if (is_own)
      object.at("metadata").as_object()["ownerReferences"] =
          model::JsonArray{model::controller_reference(made)};
    world.client().create(client::kNetworkPolicies, object);
  };
  policy("c-network-policy", true);
  policy("d-network-policy", false);
  world.add_claim("d");
  world.restart();
  world.pass("c");
  world.pass("d");
  EXPECT_FALSE(world.client().find(client::kNetworkPolicies, "default", "c-network-policy"));
  EXPECT_TRUE(world.client().find(client::kNetworkPolicies, "default", "d-network-policy"));
}

TEST(Claims, LatenciesAreObservedOnce) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.pass();
  const std::string count =
      "agent_sandbox_claim_controller_startup_latency_ms_count{launch_type=\"warm\","
      "sandbox_template=\"py\"} 1\n";
  EXPECT_NE(world.process->metrics.render().find(count), std::string::npos);
  world.set_sandbox("pool-a", "10.0.0.1", "False", "DependenciesNotReady", "m");
  world.pass();
  world.set_sandbox("pool-a", "10.0.0.1", "True", "DependenciesReady", "m");
  world.pass();
  EXPECT_NE(world.process->metrics.render().find(count), std::string::npos);
  world.restart();
  world.pass();
  EXPECT_EQ(world.process->metrics.render().find("controller_startup_latency"), std::string::npos);
}

TEST(Claims, WhenAReadyOneBecameReadyIsUnknown) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.faulty.before = [](const std::string& write) {
    if (write == "patch sandboxclaims") fail(Code::unavailable, "no");
  };
  world.pass();
  world.faulty.before = [](const std::string&) {};
  EXPECT_EQ(model::annotation_of(world.claim(), model::kFirstReadyAnnotation), "");
  world.restart();
  world.pass();
  EXPECT_EQ(model::annotation_of(world.claim(), model::kFirstReadyAnnotation), "unknown");
}

// A pool may be of another namespace's template, if that lets others use it.
TEST(Claims, ATemplateOfAnotherNamespaceIsUsedIfItIsPublic) {
  ClaimWorld world;
  world.client().create(client::kNamespaces, json(R"({"apiVersion":"v1","kind":"Namespace",
      "metadata":{"name":"shared"}})"));
  Json lent = template_named("py", "lent:1");
  lent.at("metadata").as_object()["namespace"] = "shared";
  world.client().create(client::kSandboxTemplates, lent);
  world.client().create(client::kSandboxWarmPools, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"namespace":"default","name":"lent"},
    "spec":{"replicas":0,"sandboxTemplateRef":{"name":"shared/py"}}})"));
  world.add_claim("c", R"({"warmPoolRef":{"name":"lent"}})");
  world.pass();
  EXPECT_EQ(world.ready(), R"(False TemplateNotFound: SandboxTemplate "shared/py" not found)");
  world.take_woken();
  EXPECT_FALSE(world.take_woken().contains("c"));
  world.client().patch(client::kSandboxTemplates, "shared", "py", client::PatchKind::merge,
                       json(R"({"metadata":{"labels":{"hearth.dev/public":"true"}}})"));
  EXPECT_TRUE(world.take_woken().contains("c"));
  world.pass();
  ASSERT_EQ(world.bound(), "c");
  const Json made = world.client().get(client::kSandboxes, "default", "c");
  const auto& containers = *model::array_at(made, {"spec", "podTemplate", "spec", "containers"});
  EXPECT_EQ(model::text_at(containers.at(0), {"image"}), "lent:1");
}

}  // namespace
}  // namespace hearth::controllers
