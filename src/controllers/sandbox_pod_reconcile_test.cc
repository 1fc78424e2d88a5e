// Whose pod it is, and what becomes of it: adoption, suspension, recovery, live metadata.
#include "controllers/sandbox_testing_internal.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

constexpr char kTracked[] = "{agents.x-k8s.io/sandbox-name-hash: d55997bc}";
constexpr char kAdoptable[] = "{agents.x-k8s.io/adoptable: 'true'}";
constexpr char kNamed[] = "{annotations: {agents.x-k8s.io/pod-name: warm-1}}";

class SandboxPodTest : public SandboxReconcilerTest {
 protected:
  bool owns(std::string_view name) {
    return model::is_controlled_by(pod(name), model::uid_of(sandbox()));
  }
  void suspend() { patch_sandbox("{spec: {operatingMode: Suspended}}"); }
  void resume() { patch_sandbox("{spec: {operatingMode: Running}}"); }
  // A pod that does not go before this is taken away again.
  void hold_pod() { patch(client::kPods, "dev", "{metadata: {finalizers: [example.test/hold]}}"); }
  void let_pod_go() { patch(client::kPods, "dev", "{metadata: {finalizers: null}}"); }
};

class AdoptablePodTest : public SandboxPodTest, public testing::WithParamInterface<const char*> {};

TEST_P(AdoptablePodTest, OfNobodyIsAdopted) {
  make_pod("dev", GetParam(), "");
  make_sandbox();
  run_pod();

  pass();

  EXPECT_TRUE(owns("dev"));
  EXPECT_EQ(model::label_of(pod(), model::kNameHashLabel), kHash);
  EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(sandbox().at("status").at("podIPs").at(0), "10.0.0.5");
}

INSTANTIATE_TEST_SUITE_P(Labels, AdoptablePodTest, testing::Values(kTracked, kAdoptable));

TEST_F(SandboxPodTest, ItsNameAloneMakesAPodNobodysToTake) {
  make_pod("dev", "{}", "");
  make_sandbox();

  failing_pass();

  EXPECT_FALSE(model::controller_of(pod()));
  EXPECT_EQ(condition("Ready"),
            "False ReconcilerError: Error seen: cannot adopt unowned pod \"dev\": missing required "
            "pool authorization label (\"agents.x-k8s.io/adoptable\") or sandbox tracking label "
            "(\"agents.x-k8s.io/sandbox-name-hash\")");
}

TEST_F(SandboxPodTest, TheAnnotationLeadsToAPodToAdopt) {
  make_pod("warm-1", kAdoptable, "");
  make_sandbox(kSpec, kNamed);
  pass();
  EXPECT_TRUE(owns("warm-1"));
  EXPECT_FALSE(find(client::kPods, "dev"));
  EXPECT_EQ(pod_annotation(), "warm-1");
}

TEST_F(SandboxPodTest, APodOfAnotherIsRefusedAndTellsNothing) {
  make_pod("warm-1", kTracked, "stranger");
  run_pod("warm-1");
  make_sandbox(kSpec, kNamed);

  failing_pass();

  EXPECT_EQ(pod_annotation(), "");
  EXPECT_EQ(condition("Ready"),
            "False ReconcilerError: Error seen: pod \"warm-1\" is owned by ConfigMap/other (UID: "
            "stranger), not by sandbox \"dev\"");
  EXPECT_EQ(model::find(sandbox(), {"status", "podIPs"}), nullptr);
  EXPECT_EQ(model::find(sandbox(), {"status", "nodeName"}), nullptr);
  pass();  // without the annotation it makes one of its own
  EXPECT_TRUE(owns("dev"));
}

TEST_F(SandboxPodTest, AnAdoptionThatWasOvertakenIsTriedAgain) {
  make_pod("dev", kTracked, "");
  make_sandbox();
  client_.fail_next("patch pods", 409);
  failing_pass();
  EXPECT_FALSE(model::controller_of(pod()));
  pass();
  EXPECT_TRUE(owns("dev"));
}

TEST_F(SandboxPodTest, TheOwnPodCountsWhateverTheAnnotationSays) {
  make_sandbox();
  pass();
  patch_sandbox("{metadata: {annotations: {agents.x-k8s.io/pod-name: gone}}}");
  pass();
  EXPECT_EQ(pod_annotation(), "dev");

  make_pod("warm-1", kAdoptable, "");
  patch_sandbox("{metadata: {annotations: {agents.x-k8s.io/pod-name: warm-1}}}");
  pass();
  EXPECT_EQ(pod_annotation(), "dev");
  EXPECT_FALSE(model::controller_of(pod("warm-1")));
}

TEST_F(SandboxPodTest, ADeadAdoptedPodIsFollowedByOneOfTheSandboxsName) {
  make_pod("warm-1", kAdoptable, "");
  make_sandbox(kSpec, kNamed);
  pass();
  end_pod("warm-1");
  client_.take_writes();

  pass();

  EXPECT_TRUE(owns("dev"));
  EXPECT_EQ(pod_annotation(), "dev");
  EXPECT_EQ(client_.take_writes(), (Writes{"create pods", "patch sandboxes"}));
}

TEST_F(SandboxPodTest, SeveralOwnPodsStopEverythingAndAreReportedOnce) {
  make_sandbox();
  pass();
  make_pod("second", kTracked, "dev");
  patch_sandbox("{spec: {service: true}}");
  client_.take_writes();

  EXPECT_EQ(pass(), reconcile::kWhenChanged);

  EXPECT_EQ(client_.take_writes(), Writes{"patch sandboxes/status"});
  EXPECT_EQ(condition("Ready"),
            "False MultiplePods: multiple Pods (2) are controlled by this Sandbox; refusing to "
            "choose or create a Pod");
  pass();
  EXPECT_EQ(events("MultiplePods"), 1u);
  suspend();
  pass();
  EXPECT_TRUE(find(client::kPods, "dev"));
  EXPECT_TRUE(find(client::kPods, "second"));
  EXPECT_FALSE(find(client::kServices, "dev"));

  end_pod("second");
  resume();
  pass();
  EXPECT_EQ(condition("Ready").substr(0, 27), "False DependenciesNotReady:");
}

TEST_F(SandboxPodTest, ALabelIsNotOwnership) {
  make_pod("impostor", kTracked, "stranger");
  make_sandbox();
  pass();
  EXPECT_TRUE(owns("dev"));
  EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
}

TEST_F(SandboxPodTest, APodThatIsGoingIsWaitedFor) {
  make_ready();
  hold_pod();
  end_pod();
  pass();
  EXPECT_TRUE(model::is_deleting(pod()));
  EXPECT_EQ(client_.take_writes(), Writes{});

  let_pod_go();
  pass();

  EXPECT_FALSE(model::is_deleting(pod()));
  EXPECT_EQ(condition("Suspended"), "False NotSuspended: Sandbox is not suspended");
  EXPECT_EQ(client_.take_writes(), (Writes{"create pods", "patch sandboxes/status"}));
}

TEST_F(SandboxPodTest, SuspensionTakesThePodAndKeepsTheService) {
  make_ready("{service: true}");
  for (int cycle = 0; cycle < 2; ++cycle) {
    suspend();
    hold_pod();
    pass();
    EXPECT_EQ(condition("Suspended"),
              "False PodTerminating: Pod is terminating. Sandbox is suspending");
    EXPECT_EQ(condition("Ready"), "False SandboxSuspended: Sandbox is suspending");
    EXPECT_EQ(pod_annotation(), "dev");
    let_pod_go();
    clock_.advance(1min);
    pass();
    EXPECT_EQ(condition("Suspended"),
              "True PodTerminated: Pod has been terminated. Sandbox is suspended");
    EXPECT_EQ(condition("Ready"), "False SandboxSuspended: Sandbox is suspended");
    EXPECT_EQ(condition("PodScheduled"), "");
    EXPECT_EQ(pod_annotation(), "");
    EXPECT_TRUE(find(client::kServices, "dev"));
    EXPECT_EQ(model::find(sandbox(), {"status", "podIPs"}), nullptr);
    EXPECT_EQ(model::text_at(sandbox(), {"status", "selector"}),
              "agents.x-k8s.io/sandbox-name-hash=d55997bc");
    client_.take_writes();
    pass();
    EXPECT_EQ(client_.take_writes(), Writes{});

    resume();
    pass();
    run_pod();
    clock_.advance(1min);
    pass();
    EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready; Service Exists");
  }
}

TEST_F(SandboxPodTest, SuspensionOfWhatNeverRanIsDoneAtOnce) {
  make_sandbox("{operatingMode: Suspended}");
  pass();
  EXPECT_FALSE(find(client::kPods, "dev"));
  EXPECT_EQ(condition("Suspended").substr(0, 4), "True");
}

TEST_F(SandboxPodTest, SuspensionLeavesPodsOfOthers) {
  for (const char* owner : {"", "stranger"}) {
    make_pod("dev", "{}", owner);
    make_sandbox("{operatingMode: Suspended}", "{annotations: {agents.x-k8s.io/pod-name: dev}}");
    pass();
    EXPECT_TRUE(find(client::kPods, "dev"));
    EXPECT_EQ(condition("Suspended"),
              "False PodNotOwned: Refused to delete pod because it is not owned by this sandbox");
    EXPECT_EQ(pod_annotation(), "");
    server_.client().remove(client::kSandboxes, "default", "dev");
    end_pod();
    settle();
    hasty_pass();
  }
}

TEST_F(SandboxPodTest, ADeletionThatFailsIsStillSuspending) {
  make_ready();
  suspend();
  client_.fail_next("delete pods", 500);
  failing_pass();
  EXPECT_EQ(condition("Suspended"),
            "False PodTerminating: Pod is terminating. Sandbox is suspending");
  EXPECT_EQ(condition("Ready"), "False ReconcilerError: Error seen: failed to delete pod: as told");
}

TEST_F(SandboxPodTest, SuspensionThatOutrunsThePodsCacheIsNotClaimed) {
  make_sandbox();
  settle();
  pods_.stop();
  hasty_pass();
  suspend();
  clock_.advance(2s);  // nothing is remembered any more
  while (sandboxes_.find("default", "dev")->at("spec").at("operatingMode") != "Suspended")
    std::this_thread::yield();

  hasty_pass();

  EXPECT_EQ(condition("Suspended"),
            "False PodTerminating: Pod is terminating. Sandbox is suspending");
}

TEST_F(SandboxPodTest, LabelsOfTheTemplateReachTheLivingPodInOneWrite) {
  make_ready(
      "{podTemplate: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: m, image: "
      "i}]}}}");
  patch_sandbox(
      "{spec: {podTemplate: {metadata: {labels: {a: x, c: null, agents.x-k8s.io/claim-uid: "
      "no}}}}}");

  pass();

  EXPECT_EQ(client_.take_writes(), (Writes{"patch pods", "patch sandboxes/status"}));  // generation
  EXPECT_EQ(model::label_of(pod(), "a"), "x");
  EXPECT_EQ(pod().at("metadata").at("labels").as_object().size(), 2u);
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
}

class SandboxWriteBehindTest : public SandboxPodTest {
 protected:
  SandboxWriteBehindTest() { options_.write_behind = 10s; }  // 1 s at most
};

TEST_F(SandboxWriteBehindTest, SeveralChangesOfMetadataAreOneWrite) {
  make_ready();
  for (const char* label : {"1", "2", "3"}) {
    patch_sandbox(
        "{metadata: {labels: {agents.x-k8s.io/created-by: go-client}}, spec: {podTemplate: "
        "{metadata: {labels: {x: '" +
        std::string(label) + "'}}}}}");
    EXPECT_GT(*pass(), 0ns);
    clock_.advance(300ms);
  }
  EXPECT_EQ(pass(), reconcile::Next(100ms));
  clock_.advance(100ms);
  EXPECT_EQ(pass(), reconcile::kWhenChanged);

  const Writes writes = client_.take_writes();
  EXPECT_EQ(std::ranges::count(writes, "patch pods"), 1);
  EXPECT_EQ(model::label_of(pod(), "x"), "3");
  EXPECT_EQ(model::label_of(pod(), model::kCreatedByLabel), "go-client");
}

TEST_F(SandboxWriteBehindTest, AdoptionDoesNotWait) {
  make_pod("dev", kTracked, "");
  make_sandbox();
  pass();
  EXPECT_TRUE(owns("dev"));
}

TEST_F(SandboxPodTest, AFailedPodStaysUnlessThePolicySaysOtherwise) {
  make_ready();
  set_pod_status("{phase: Failed}");
  EXPECT_EQ(pass(), reconcile::kWhenChanged);
  EXPECT_EQ(condition("Finished"), "True PodFailed: Pod failed");
  clock_.advance(1h);
  pass();
  EXPECT_EQ(model::text_at(pod(), {"status", "phase"}), "Failed");
}

TEST_F(SandboxPodTest, AFailedPodIsMadeAgainAfterAPauseThatGrows) {
  make_ready("{podFailurePolicy: Recreate}");
  std::string uid;
  for (const Duration pause : {1s, 2s, 4s}) {
    set_pod_status("{phase: Failed}");
    EXPECT_EQ(pass(), reconcile::Next(pause));
    EXPECT_EQ(condition("Ready"), "False PodFailed: Pod failed");
    EXPECT_EQ(condition("Finished"), "");
    uid = model::uid_of(pod());
    clock_.advance(pause);
    pass();
    pass();
    EXPECT_NE(model::uid_of(pod()), uid);
    EXPECT_EQ(condition("Ready"), "False DependenciesNotReady: Pod exists with phase: Pending");
  }
}

}  // namespace
}  // namespace hearth::controllers
