#include "controllers/sandbox_conditions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/time_text.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

const Time kNow = *parse_rfc3339("2026-01-02T03:04:05Z");

Json yaml(std::string_view text) {
  return model::parse_yaml(text).value;
}

Json sandbox(std::string_view spec = "{}") {
  Json made = yaml(
      "{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox,"
      " metadata: {name: dev, namespace: a, uid: U, generation: 7}}");
  made.as_object()["spec"] = yaml(spec);
  return made;
}

// `owner` is a uid; empty for nobody.
Json pod(std::string_view owner, std::string_view status) {
  Json made = yaml("{metadata: {name: dev, namespace: a}}");
  if (!owner.empty())
    made.at("metadata").as_object()["ownerReferences"] =
        yaml(fmt::format("[{{kind: Sandbox, name: x, uid: {}, controller: true}}]", owner));
  made.as_object()["status"] = yaml(status);
  return made;
}

std::string text(const std::vector<model::Condition>& conditions) {
  std::string all;
  for (const auto& each : conditions)
    all += fmt::format("{}={} {}: {}\n", each.type, each.status, each.reason, each.message);
  return all;
}

constexpr char kScheduled[] = "{type: PodScheduled, status: 'True'}";
constexpr char kRunning[] = "Suspended=False NotSuspended: Sandbox is not suspended\n";
constexpr char kUnscheduled[] =
    "PodScheduled=Unknown PodSchedulingUnknown: Pod has not reported a PodScheduled condition "
    "yet\n";
constexpr char kOnNode[] = "PodScheduled=True PodScheduled: \n";

std::string ready_status(std::string_view ips = "[{ip: 10.0.0.1}]") {
  return fmt::format(
      "{{phase: Running, podIPs: {}, conditions: [{}, {{type: Ready, status: 'True'}}]}}", ips,
      kScheduled);
}

struct Case {
  std::string name;
  std::string spec;
  std::string pod_owner;   // "U" is the Sandbox; "none": no pod
  std::string pod_status;  //
  bool has_service = false;
  std::string expected;
  std::vector<std::string> errors = {};
  bool has_pod_failed = false;
  std::size_t owned_pods = 0;
};

std::vector<Case> cases() {
  const std::string running = kRunning;
  const std::string suspended = "{operatingMode: Suspended}";
  const std::string no_pod = "none";
  return {
      {"NoPod", "{}", no_pod, "", false,
       running + "Ready=False DependenciesNotReady: Pod does not exist\n"},
      {"NoPodAndServiceMissing", "{service: true}", no_pod, "", false,
       running + "Ready=False DependenciesNotReady: Pod does not exist; Service does not exist\n"},
      {"Pending", "{}", "U", "{phase: Pending}", false,
       running + kUnscheduled +
           "Ready=False DependenciesNotReady: Pod exists with phase: Pending\n"},
      {"PendingAndServiceThere", "{service: true}", "U", "{phase: Pending}", true,
       running + kUnscheduled +
           "Ready=False DependenciesNotReady: Pod exists with phase: Pending; Service Exists\n"},
      {"PhaseUnknown", "{}", "U", "{phase: Unknown}", false,
       running + kUnscheduled +
           "Ready=False DependenciesNotReady: Pod exists with phase: Unknown\n"},
      {"RunningNotReady", "{}", "U",
       "{phase: Running, conditions: [{type: Ready, status: 'False'}]}", false,
       running + kUnscheduled + "Ready=False DependenciesNotReady: Pod is Running but not Ready\n"},
      {"ReadyWithoutAddress", "{}", "U", ready_status("[]"), false,
       running + kOnNode +
           "Ready=False DependenciesNotReady: Pod is Ready but has no podIPs yet\n"},
      {"Ready", "{}", "U", ready_status(), false,
       running + kOnNode + "Ready=True DependenciesReady: Pod is Ready\n"},
      {"ReadyAndServiceThere", "{service: true}", "U", ready_status(), true,
       running + kOnNode + "Ready=True DependenciesReady: Pod is Ready; Service Exists\n"},
      {"ReadyAndServiceMissing", "{service: true}", "U", ready_status(), false,
       running + kOnNode +
           "Ready=False DependenciesNotReady: Pod is Ready; Service does not exist\n"},
      {"AnOldServiceCountsWhereNothingIsSaid", "{}", "U", ready_status(), true,
       running + kOnNode + "Ready=True DependenciesReady: Pod is Ready; Service Exists\n"},
      {"AServiceThatIsNotWantedDoesNotCount", "{service: false}", "U", ready_status(), true,
       running + kOnNode + "Ready=True DependenciesReady: Pod is Ready\n"},
      {"Succeeded", "{}", "U", "{phase: Succeeded}", false,
       running + "Finished=True PodSucceeded: Pod completed successfully\n" + kUnscheduled +
           "Ready=False PodSucceeded: Pod completed successfully\n"},
      {"Failed", "{}", "U", "{phase: Failed}", false,
       running + "Finished=True PodFailed: Pod failed\n" + kUnscheduled +
           "Ready=False PodFailed: Pod failed\n"},
      {"FailedAndMadeAgain", "{podFailurePolicy: Recreate}", "U", "{phase: Failed}", false,
       running + kUnscheduled + "Ready=False PodFailed: Pod failed\n"},
      {"AForeignPodFinishesNothing", "{}", "other", "{phase: Failed}", false,
       running + "Ready=False PodFailed: Pod failed\n"},
      {"Suspending", suspended, "U", "{phase: Running}", false,
       "Suspended=False PodTerminating: Pod is terminating. Sandbox is suspending\n" +
           std::string(kUnscheduled) + "Ready=False SandboxSuspended: Sandbox is suspending\n"},
      {"DeletingFailed",
       suspended,
       "U",
       "{phase: Running}",
       false,
       "Suspended=False PodTerminating: Pod is terminating. Sandbox is suspending\n" +
           std::string(kUnscheduled) +
           "Ready=False ReconcilerError: Error seen: failed to delete pod: no\n",
       {"failed to delete pod: no"},
       true},
      {"Suspended", suspended, no_pod, "", false,
       "Suspended=True PodTerminated: Pod has been terminated. Sandbox is suspended\n"
       "Ready=False SandboxSuspended: Sandbox is suspended\n"},
      {"SuspendedWithAForeignPod", suspended, "other", "{phase: Running}", false,
       "Suspended=False PodNotOwned: Refused to delete pod because it is not owned by this "
       "sandbox\nReady=False SandboxSuspended: Sandbox is suspending\n"},
      {"SuspendedWithAnUnownedPod", suspended, "", "{phase: Running}", false,
       "Suspended=False PodNotOwned: Refused to delete pod because it is not owned by this "
       "sandbox\nReady=False SandboxSuspended: Sandbox is suspending\n"},
      {"LookupFailedWhileSuspended",
       suspended,
       no_pod,
       "",
       false,
       "Suspended=Unknown PodStateUnknown: Pod state is unknown. Sandbox suspension cannot be "
       "confirmed\nPodScheduled=Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling "
       "cannot be determined\nReady=False ReconcilerError: Error seen: pod get failed: x\n",
       {"pod get failed: x"},
       true},
      {"LookupFailedWhileRunning",
       "{}",
       no_pod,
       "",
       false,
       running +
           "PodScheduled=Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot "
           "be determined\nReady=False ReconcilerError: Error seen: one\ntwo\n",
       {"one", "two"},
       true},
      {"AnErrorOutweighsAReadyPod",
       "{}",
       "U",
       ready_status(),
       false,
       running + kOnNode + "Ready=False ReconcilerError: Error seen: PVC trouble\n",
       {"PVC trouble"}},
      {"Unschedulable", "{}", "U",
       "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, "
       "message: '0/3 nodes'}]}",
       false,
       running + "PodScheduled=False Unschedulable: 0/3 nodes\n"
                 "Ready=False DependenciesNotReady: Pod exists with phase: Pending\n"},
      {"SchedulingGated", "{}", "U",
       "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: "
       "SchedulingGated, message: gated}]}",
       false,
       running + "PodScheduled=False SchedulingGated: gated\n"
                 "Ready=False DependenciesNotReady: Pod exists with phase: Pending\n"},
      {"NotScheduledWithoutAReason", "{}", "U",
       "{phase: Pending, conditions: [{type: PodScheduled, status: 'False'}]}", false,
       running + "PodScheduled=False PodSchedulingUnknown: \n"
                 "Ready=False DependenciesNotReady: Pod exists with phase: Pending\n"},
      {"SeveralPodsOutweighOtherErrors",
       "{}",
       no_pod,
       "",
       false,
       running +
           "PodScheduled=Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot "
           "be determined\nReady=False MultiplePods: multiple Pods (2) are controlled by this "
           "Sandbox; refusing to choose or create a Pod\n",
       {"PVC trouble"},
       true,
       2},
  };
}

class SandboxConditions : public testing::TestWithParam<Case> {};

TEST_P(SandboxConditions, SayWhatWasSeen) {
  const Case& each = GetParam();
  const Json service = yaml("{metadata: {name: dev}}");
  Json the_pod;
  Seen seen{
      .has_pod_failed = each.has_pod_failed, .owned_pods = each.owned_pods, .errors = each.errors};
  if (each.pod_owner != "none") {
    the_pod = pod(each.pod_owner, each.pod_status);
    seen.pod = &the_pod;
  }
  if (each.has_service) seen.service = &service;

  const auto conditions = conditions_of(sandbox(each.spec), seen);

  EXPECT_EQ(text(conditions), each.expected);
  for (const auto& condition : conditions) EXPECT_EQ(condition.observed_generation, 7);
}

INSTANTIATE_TEST_SUITE_P(All, SandboxConditions, testing::ValuesIn(cases()),
                         [](const auto& param) { return param.param.name; });

std::string types(const JsonArray& conditions) {
  std::string all;
  for (const Json& each : conditions) all += fmt::format("{} ", model::text_at(each, {"type"}));
  return all;
}

TEST(SandboxConditionList, DoesNotGrowAndDropsWhatNoLongerApplies) {
  JsonArray conditions;
  const Json done = pod("U", "{phase: Succeeded}");
  apply_conditions(conditions, sandbox(), {.pod = &done}, kNow);
  apply_conditions(conditions, sandbox(), {.pod = &done}, kNow);
  EXPECT_EQ(types(conditions), "Suspended Finished PodScheduled Ready ");

  apply_conditions(conditions, sandbox("{operatingMode: Suspended}"), {}, kNow);

  EXPECT_EQ(types(conditions), "Suspended Ready ");
}

TEST(SandboxConditionList, TheTimeChangesOnlyWithTheStatus) {
  JsonArray conditions;
  const auto since = [&](std::string_view type) {
    for (const Json& each : conditions)
      if (model::text_at(each, {"type"}) == type)
        return std::string(model::text_at(each, {"lastTransitionTime"}));
    return std::string();
  };
  apply_conditions(conditions, sandbox(), {}, kNow);
  apply_conditions(conditions, sandbox("{operatingMode: Suspended}"), {}, kNow + 1min);

  EXPECT_EQ(since("Ready"), "2026-01-02T03:04:05Z");  // another reason, the same status
  EXPECT_EQ(since("Suspended"), "2026-01-02T03:05:05Z");
}

TEST(SandboxConditionList, ExpiryKeepsFinishedAndDropsScheduling) {
  JsonArray conditions;
  const Json done = pod("U", "{phase: Failed}");
  apply_conditions(conditions, sandbox(), {.pod = &done}, kNow);

  apply_expiry(conditions, sandbox(), kNow + 1s);

  EXPECT_EQ(types(conditions), "Suspended Finished Ready ");
  EXPECT_EQ(condition_reason(conditions, kReady), kReasonExpired);
}

TEST(SandboxConditionList, AnEndlessErrorIsCutBetweenCharacters) {
  std::string endless;
  while (endless.size() < 100'000) endless += "€";
  const auto conditions = conditions_of(sandbox(), {.errors = {endless}});

  const std::string& message = conditions.back().message;
  EXPECT_LT(message.size(), 32768u);
  EXPECT_TRUE(message.ends_with("€"));
}

}  // namespace
}  // namespace hearth::controllers
