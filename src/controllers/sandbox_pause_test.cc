// Pausing and egress: from the Sandbox to its pod, and back as a condition.
#include "controllers/sandbox_testing_internal.h"
#include "model/front_door.h"

namespace hearth::controllers {
namespace {

constexpr char kPaused[] =
    "{phase: Running, podIP: 10.0.0.5, podIPs: [{ip: 10.0.0.5}], conditions: "
    "[{type: PodScheduled, status: 'True'}, {type: Ready, status: 'False', reason: Paused}, "
    "{type: hearth.dev/Paused, status: 'True'}]}";
constexpr char kResumed[] =
    "{conditions: [{type: PodScheduled, status: 'True'}, {type: Ready, status: 'True'}, "
    "{type: hearth.dev/Paused, status: 'False'}]}";

class SandboxPauseTest : public SandboxReconcilerTest {
 protected:
  // Everything else about a pod may wait for ever.
  SandboxPauseTest() : SandboxReconcilerTest({.write_behind = std::chrono::hours(1)}) {}

  void pause() { patch_sandbox("{metadata: {annotations: {hearth.dev/pause: memory}}}"); }
  void resume() { patch_sandbox("{metadata: {annotations: {hearth.dev/pause: null}}}"); }
  std::string on_pod(std::string_view key) { return std::string(model::annotation_of(pod(), key)); }
};

TEST_F(SandboxPauseTest, GoesToThePodAtOnceAndComesBackAsACondition) {
  make_ready();
  pause();
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "memory");
  EXPECT_EQ(client_.take_writes(), Writes{"patch pods"}) << "nothing has changed about it yet";

  set_pod_status(kPaused);
  pass();
  EXPECT_EQ(condition("Ready"), "False SandboxPaused: Sandbox is paused");
  EXPECT_EQ(condition(model::kPausedCondition), "True PodPaused: Sandbox is paused");
  client_.take_writes();
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});

  resume();
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "");
  set_pod_status(kResumed);
  pass();
  EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(condition(model::kPausedCondition), "");
}

TEST_F(SandboxPauseTest, APodThatIsMadeAnewKnowsAsWell) {
  make_sandbox(kSpec, "{annotations: {hearth.dev/pause: memory, hearth.dev/egress: '{}'}}");
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "memory");
  EXPECT_EQ(on_pod(model::kEgressAnnotation), "{}");
}

TEST_F(SandboxPauseTest, ItsTimeGoesOn) {
  make_ready("{shutdownTime: '2030-01-01T00:00:00Z', shutdownPolicy: Retain}");
  pause();
  pass();
  set_pod_status(kPaused);
  pass();
  clock_.advance(std::chrono::hours(24 * 365 * 70));
  pass();
  EXPECT_EQ(condition("Ready"), "False SandboxExpired: Sandbox has expired");
  EXPECT_EQ(condition(model::kPausedCondition), "");
  pass();
  EXPECT_TRUE(!find(client::kPods, "dev") || model::is_deleting(pod()));
}

TEST_F(SandboxPauseTest, AMemberOfAPoolIsNot) {
  const Json pool = make(client::kSandboxWarmPools,
                         "{apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxWarmPool, "
                         "metadata: {name: p}, spec: {sandboxTemplateRef: {name: t}}}");
  Json metadata = yaml("{annotations: {hearth.dev/pause: memory}}");
  metadata.as_object()["ownerReferences"] = model::JsonArray{model::controller_reference(pool)};
  make_sandbox(kSpec, model::to_text(metadata));
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "");
}

TEST_F(SandboxPauseTest, ATemplateCannotPauseAndOnlyTheSandboxsOwnPodTells) {
  make_sandbox(
      "{podTemplate: {metadata: {annotations: {hearth.dev/pause: memory}}, "
      "spec: {containers: [{name: main, image: i}]}}}");
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "");
  // Whoever writes it there by hand is not the Sandbox.
  patch(client::kPods, "dev", "{metadata: {annotations: {hearth.dev/pause: memory}}}");
  pass();
  EXPECT_EQ(on_pod(model::kPauseAnnotation), "");
}

TEST_F(SandboxPauseTest, EgressOfTheSandboxGoesBeforeThatOfItsTemplate) {
  make_sandbox(
      "{podTemplate: {metadata: {annotations: {hearth.dev/egress: '{\"deny\":[]}'}}, "
      "spec: {containers: [{name: main, image: i}]}}}");
  pass();
  EXPECT_EQ(on_pod(model::kEgressAnnotation), R"({"deny":[]})");
  patch_sandbox(R"({metadata: {annotations: {hearth.dev/egress: '{"allow":[]}'}}})");
  pass();
  EXPECT_EQ(on_pod(model::kEgressAnnotation), R"({"allow":[]})");
  client_.take_writes();
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
  patch_sandbox("{metadata: {annotations: {hearth.dev/egress: null}}}");
  pass();
  EXPECT_EQ(on_pod(model::kEgressAnnotation), R"({"deny":[]})");
}

}  // namespace
}  // namespace hearth::controllers
