// A Sandbox from creation to its end: what is made, what is told, and what it costs.
#include "controllers/sandbox_reconciler.h"

#include "base/time_text.h"
#include "controllers/sandbox_testing_internal.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

void expect_same(const Json* is, std::string_view expected) {
  ASSERT_NE(is, nullptr);
  EXPECT_TRUE(model::is_same(*is, yaml(expected))) << model::to_pretty_text(*is);
}

TEST_F(SandboxReconcilerTest, ThatIsGoneOrGoingNeedsNothing) {
  EXPECT_EQ(pass(), reconcile::kWhenChanged);

  make_sandbox(kSpec, "{finalizers: [example.test/hold]}");
  server_.client().remove(client::kSandboxes, "default", "dev");

  EXPECT_EQ(pass(), reconcile::kWhenChanged);
  EXPECT_EQ(client_.take_writes(), Writes{});
}

TEST_F(SandboxReconcilerTest, AMinimalSandboxGetsAPodAndNoService) {
  make_sandbox();
  pass();

  const Json made = pod();
  EXPECT_TRUE(model::is_controlled_by(made, model::uid_of(sandbox())));
  expect_same(model::find(made,
                          {
                              "metadata",
                              "ownerReferences",
                          }),
              model::to_text(model::JsonArray{model::controller_reference(sandbox())}));
  EXPECT_EQ(model::label_of(made, model::kNameHashLabel), kHash);
  EXPECT_FALSE(find(client::kServices, "dev"));
  EXPECT_EQ(pod_annotation(), "dev");
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
  EXPECT_EQ(condition("Suspended"), "False NotSuspended: Sandbox is not suspended");
}

TEST_F(SandboxReconcilerTest, AReadySandboxTellsAllOfItsStatus) {
  make_sandbox("{service: true}");
  pass();
  patch(client::kPods, "dev", "{spec: {nodeName: null}}");
  run_pod();
  pass();

  Json status = *model::find(sandbox(), {"status"});
  for (Json& each : status.at("conditions").as_array())
    EXPECT_EQ(each.as_object().erase("lastTransitionTime"), 1u);
  expect_same(&status, R"(
    service: dev
    serviceFQDN: dev.default.svc.cluster.local
    selector: agents.x-k8s.io/sandbox-name-hash=d55997bc
    podIPs: [10.0.0.5]
    conditions:
    - {type: Suspended, status: 'False', observedGeneration: 1, reason: NotSuspended,
       message: Sandbox is not suspended}
    - {type: PodScheduled, status: 'True', observedGeneration: 1, reason: PodScheduled, message: ''}
    - {type: Ready, status: 'True', observedGeneration: 1, reason: DependenciesReady,
       message: Pod is Ready; Service Exists})");
}

TEST_F(SandboxReconcilerTest, WithVolumesPodServiceAndClaimAreMade) {
  make_sandbox(R"(
    service: true
    volumeClaimTemplates:
    - metadata: {name: work, labels: {x: y}}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}})");
  pass();

  const auto claim = find(client::kPersistentVolumeClaims, "work-dev");
  ASSERT_TRUE(claim);
  EXPECT_TRUE(model::is_controlled_by(*claim, model::uid_of(sandbox())));
  EXPECT_EQ(model::label_of(*claim, model::kNameHashLabel), kHash);
  EXPECT_EQ(model::label_of(*claim, "x"), "y");
  const auto service = find(client::kServices, "dev");
  ASSERT_TRUE(service);
  EXPECT_EQ(model::text_at(*service, {"spec", "clusterIP"}), "None");
  EXPECT_EQ(pod().at("spec").at("volumes").at(0).at("persistentVolumeClaim").at("claimName"),
            "work-dev");
}

TEST_F(SandboxReconcilerTest, CostsThreeWritesAndASecondPassNone) {
  make_sandbox();
  pass();
  EXPECT_EQ(client_.take_writes(),
            (Writes{"create pods", "patch sandboxes", "patch sandboxes/status"}));
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
  run_pod();
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{"patch sandboxes/status"});
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
}

TEST_F(SandboxReconcilerTest, WhoNamesThePodBeforehandSavesAWrite) {
  make_sandbox(kSpec, "{annotations: {agents.x-k8s.io/pod-name: dev}}");
  pass();
  EXPECT_EQ(client_.take_writes(), (Writes{"create pods", "patch sandboxes/status"}));
}

TEST_F(SandboxReconcilerTest, PassesThatOutrunTheCachesDoNothingTwice) {
  make_sandbox("{service: true}");
  settle();
  for (client::WatchCache* cache : {&sandboxes_, &pods_, &services_}) cache->stop();

  hasty_pass();
  client_.take_writes();
  for (int each = 0; each < 3; ++each) hasty_pass();

  EXPECT_EQ(client_.take_writes(), Writes{});
}

TEST_F(SandboxReconcilerTest, WhatACacheNeverShowsIsAskedForAfterAWhile) {
  make_sandbox();
  settle();
  for (client::WatchCache* cache : {&sandboxes_, &pods_, &services_}) cache->stop();
  hasty_pass();
  clock_.advance(2s);
  client_.take_writes();

  hasty_pass();

  // The pod is tried again, found to be there, and taken for what it is.
  EXPECT_EQ(client_.take_writes().front(), "create pods");
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
  end_pod();
  clock_.advance(2s);
  hasty_pass();
  EXPECT_TRUE(find(client::kPods, "dev"));
}

TEST_F(SandboxReconcilerTest, ANodeAloneIsToldWithTheNextChange) {
  make_sandbox();
  pass();
  server_.client().post(client::kPods, "default", "dev", "binding",
                        yaml("{apiVersion: v1, kind: Binding, metadata: {name: dev, namespace: "
                             "default}, target: {kind: Node, name: n1}}"));
  set_pod_status("{conditions: []}");  // as if nobody had said that it was scheduled
  client_.take_writes();
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
  EXPECT_EQ(model::text_at(sandbox(), {"status", "nodeName"}), "");

  run_pod();
  pass();

  EXPECT_EQ(model::text_at(sandbox(), {"status", "nodeName"}), "n1");
}

TEST_F(SandboxReconcilerTest, AFailedLookupIsToldAndTriedAgain) {
  make_sandbox(kSpec, "{annotations: {agents.x-k8s.io/pod-name: another}}");
  client_.fail_next("get pods", 500);

  EXPECT_NE(failing_pass().find("pod get failed: as told"), std::string::npos);

  EXPECT_EQ(condition("Ready"), "False ReconcilerError: Error seen: pod get failed: as told");
  EXPECT_EQ(condition("PodScheduled"),
            "Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be "
            "determined");
  pass();
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
  EXPECT_EQ(pod_annotation(), "dev");
}

TEST_F(SandboxReconcilerTest, AVolumeInTheWayDoesNotKeepThePodFromBeingMade) {
  make_child(client::kPersistentVolumeClaims, "work-dev", "{}", "stranger",
             "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}");
  make_sandbox(R"(
    volumeClaimTemplates:
    - metadata: {name: work}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}})");

  failing_pass();

  EXPECT_TRUE(find(client::kPods, "dev"));
  EXPECT_EQ(condition("Ready"),
            "False ReconcilerError: Error seen: PVC \"work-dev\" is owned by ConfigMap/other (UID: "
            "stranger), not by sandbox \"dev\"");
}

class SandboxExpiryTest : public SandboxReconcilerTest {
 protected:
  std::string ends(Duration after, std::string_view more = "") {
    return "{shutdownTime: '" + format_rfc3339(clock_.now() + after) + "'" + std::string(more) +
           "}";
  }
};

TEST_F(SandboxExpiryTest, IsWaitedForAndToldBeforeAnythingIsDeleted) {
  make_ready(ends(1h, ", service: true"));
  EXPECT_EQ(pass(), reconcile::Next(1h));
  clock_.advance(1h);

  EXPECT_EQ(pass(), reconcile::Next(1ms));
  EXPECT_EQ(condition("Ready"), "False SandboxExpired: Sandbox has expired");
  EXPECT_EQ(condition("PodScheduled"), "");
  EXPECT_TRUE(find(client::kPods, "dev"));

  pass();
  EXPECT_FALSE(find(client::kPods, "dev"));
  EXPECT_FALSE(find(client::kServices, "dev"));
  Json status = *model::find(sandbox(), {"status"});
  EXPECT_EQ(status.as_object().size(), 1u) << model::to_text(status);
  client_.take_writes();
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
}

TEST_F(SandboxExpiryTest, KeepsVolumesAndWhatIsFinished) {
  make_ready(ends(1h,
                  ", volumeClaimTemplates: [{metadata: {name: w}, spec: {accessModes: "
                  "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]"));
  set_pod_status("{phase: Succeeded}");
  pass();
  clock_.advance(1h);
  pass();
  pass();

  EXPECT_EQ(condition("Finished"), "True PodSucceeded: Pod completed successfully");
  EXPECT_TRUE(find(client::kPersistentVolumeClaims, "w-dev"));
}

TEST_F(SandboxExpiryTest, TakesTheObjectWhereThePolicySaysSo) {
  make_ready(ends(1h, ", shutdownPolicy: Delete"));
  clock_.advance(1h);
  pass();
  EXPECT_TRUE(find(client::kSandboxes, "dev"));

  pass();

  EXPECT_FALSE(find(client::kSandboxes, "dev"));
}

TEST_F(SandboxExpiryTest, LeavesPodsOfOthersAlone) {
  make_sandbox(ends(0s));
  for (const char* owner : {"", "stranger"}) {
    make_pod("dev", "{agents.x-k8s.io/sandbox-name-hash: d55997bc}", owner);
    pass();
    pass();
    EXPECT_TRUE(find(client::kPods, "dev"));
    end_pod();
  }
}

TEST_F(SandboxExpiryTest, WithNothingToDeleteIsToldAllTheSame) {
  make_sandbox(ends(0s));
  pass();
  EXPECT_EQ(pass(), reconcile::kWhenChanged);
  EXPECT_EQ(condition("Ready"), "False SandboxExpired: Sandbox has expired");
}

TEST_F(SandboxExpiryTest, TakesAnAdoptedPodOfAnotherName) {
  make_pod("warm-1", "{agents.x-k8s.io/adoptable: 'true'}", "");
  make_sandbox(ends(1h), "{annotations: {agents.x-k8s.io/pod-name: warm-1}}");
  pass();
  clock_.advance(1h);
  pass();
  pass();
  EXPECT_FALSE(find(client::kPods, "warm-1"));
}

TEST_F(SandboxExpiryTest, IsTakenBackByALaterTime) {
  make_ready(ends(1h));
  clock_.advance(1h);
  pass();
  pass();
  patch_sandbox("{spec: " + ends(1h) + "}");

  EXPECT_EQ(pass(), reconcile::Next(1h));

  EXPECT_TRUE(find(client::kPods, "dev"));
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
}

TEST_F(SandboxExpiryTest, ThatCouldNotDeleteThePodSaysNothingOfSuccess) {
  make_ready(ends(1h));
  clock_.advance(1h);
  pass();
  client_.fail_next("delete pods", 500);
  failing_pass();
  EXPECT_NE(model::find(sandbox(), {"status", "podIPs"}), nullptr);
  pass();
  EXPECT_EQ(model::find(sandbox(), {"status", "podIPs"}), nullptr);
}

class SandboxStatusWindowTest : public SandboxReconcilerTest {
 protected:
  SandboxStatusWindowTest()
      : SandboxReconcilerTest({.transitional_status_window = kEmbeddedStatusWindow}) {}

  // That its pod is not there yet, and not a moment sooner.
  void expect_told_after(Duration window) {
    EXPECT_EQ(pass(), reconcile::Next(window));
    clock_.advance(window - 1ms);
    EXPECT_EQ(pass(), reconcile::Next(1ms));
    EXPECT_EQ(condition("Ready"), "");
    clock_.advance(1ms);
    EXPECT_EQ(pass(), reconcile::kWhenChanged);
    EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
  }
};

TEST_F(SandboxStatusWindowTest, APodThatIsReadySoonCostsThreeWrites) {
  make_sandbox();
  EXPECT_EQ(pass(), reconcile::Next(20ms));
  clock_.advance(5ms);
  run_pod();
  EXPECT_EQ(pass(), reconcile::kWhenChanged);

  EXPECT_EQ(client_.take_writes(),
            (Writes{"create pods", "patch sandboxes", "patch sandboxes/status"}));
  EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready");
}

TEST_F(SandboxStatusWindowTest, APodThatTakesLongerIsToldAfterTheWindow) {
  make_sandbox();
  expect_told_after(20ms);
}

TEST_F(SandboxStatusWindowTest, NobodyWaitsForAPoolsMember) {
  make_sandbox(kSpec, R"({ownerReferences: [{apiVersion: extensions.agents.x-k8s.io/v1beta1,
      kind: SandboxWarmPool, name: pool, uid: u-1, controller: true}]})");
  expect_told_after(5s);
}

TEST_F(SandboxStatusWindowTest, WhatIsNoLongerReadyIsToldAtOnce) {
  make_sandbox();
  pass();
  run_pod();
  pass();
  end_pod();
  pass();
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
}

TEST_F(SandboxStatusWindowTest, ErrorsAreToldAtOnce) {
  make_sandbox();
  client_.fail_next("create pods", 500);
  failing_pass();
  EXPECT_EQ(condition("Ready"), "False ReconcilerError: Error seen: as told");
}

class SandboxNodeTest : public SandboxReconcilerTest {
 protected:
  SandboxNodeTest() : SandboxReconcilerTest({.cluster_domain = "cluster.test", .node = "n1"}) {}
};

TEST_F(SandboxNodeTest, PodsAreBoundAsTheyAreMade) {
  make_sandbox("{service: true}");
  pass();
  EXPECT_EQ(model::text_at(pod(), {"spec", "nodeName"}), "n1");
  EXPECT_EQ(model::text_at(sandbox(), {"status", "nodeName"}), "n1");
  EXPECT_EQ(model::text_at(sandbox(), {"status", "serviceFQDN"}), "dev.default.svc.cluster.test");
}

TEST_F(SandboxNodeTest, ATemplateThatNamesANodeMeansIt) {
  make_sandbox("{podTemplate: {spec: {nodeName: theirs, containers: [{name: main, image: i}]}}}");
  pass();
  EXPECT_EQ(model::text_at(pod(), {"spec", "nodeName"}), "theirs");
}

class SandboxFullNodeTest : public SandboxReconcilerTest {
 protected:
  SandboxFullNodeTest()
      : SandboxReconcilerTest({.node = "n1", .gives_place = [](const Json& pod) {
                                 return model::name_of(pod) != "dev";
                               }}) {}
};

TEST_F(SandboxFullNodeTest, WhoHasNoPlaceIsLeftToTheScheduler) {
  make_sandbox();
  pass();
  EXPECT_EQ(model::text_at(pod(), {"spec", "nodeName"}), "");
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
}

}  // namespace
}  // namespace hearth::controllers
