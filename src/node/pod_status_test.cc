#include "node/pod_status.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/meta.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;

const Time kNow = Time(1'700'000'000s);
constexpr std::string_view kUid = "01234567-89ab-cdef-0123-456789abcdef";

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

Json new_pod() {
  return json(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"restartPolicy":"Always","containers":[{"name":"c","image":"host"}]},
      "status":{"phase":"Pending","qosClass":"BestEffort"}})");
}

Pod running(const Json& pod) {
  Pod known;
  known.containers = containers_of(pod);
  Container& container = known.containers.front();
  container.stage = Stage::running;
  container.sandbox = "pod-1";
  container.has_lived = true;
  container.started = kNow;
  container.is_started = container.is_ready = true;
  known.address = "10.0.0.5";
  known.host_address = "192.0.2.1";
  known.started = kNow;
  return known;
}

std::string_view condition(const Json& status, std::string_view type, std::string_view field) {
  for (const Json& one : *model::array_at(status, {"conditions"}))
    if (model::text_at(one, {"type"}) == type) return model::text_at(one, {field});
  return "none";
}

TEST(PodStatus, OfARunningPod) {
  const Json pod = new_pod();
  const Json status = make_status(pod, running(pod), kNow);
  EXPECT_EQ(model::text_at(status, {"phase"}), "Running");
  EXPECT_EQ(model::text_at(status, {"qosClass"}), "BestEffort");
  EXPECT_EQ(model::text_at(status, {"podIP"}), "10.0.0.5");
  EXPECT_EQ(model::text_at(status, {"hostIP"}), "192.0.2.1");
  EXPECT_EQ(model::text_at(status, {"startTime"}), "2023-11-14T22:13:20Z");
  for (const char* type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"})
    EXPECT_EQ(condition(status, type, "status"), "True") << type;
  EXPECT_TRUE(model::is_same(model::array_at(status, {"containerStatuses"})->at(0), json(R"({
      "name":"c","state":{"running":{"startedAt":"2023-11-14T22:13:20Z"}},"lastState":{},
      "ready":true,"restartCount":0,"image":"host","imageID":"","containerID":"hearth://pod-1",
      "started":true})")));
}

TEST(PodStatus, OfOneThatHasNotBegun) {
  const Json pod = new_pod();
  Pod known;
  known.containers = containers_of(pod);
  known.started = kNow;
  const Json status = make_status(pod, known, kNow);
  EXPECT_EQ(model::text_at(status, {"phase"}), "Pending");
  EXPECT_EQ(condition(status, "Ready", "reason"), "ContainersNotReady");
  EXPECT_EQ(condition(status, "Ready", "message"), "containers with unready status: [c]");
  EXPECT_EQ(condition(status, "PodReadyToStartContainers", "status"), "False");
  const Json& container = model::array_at(status, {"containerStatuses"})->at(0);
  EXPECT_EQ(model::text_at(container, {"state", "waiting", "reason"}), "ContainerCreating");
  EXPECT_EQ(model::find(container, {"containerID"}), nullptr);
  EXPECT_EQ(model::find(status, {"podIP"}), nullptr);
}

TEST(PodStatus, TransitionsAndOtherPeoplesConditionsAreKept) {
  Json pod = new_pod();
  pod.as_object()["status"] = make_status(pod, running(pod), kNow);
  model::array_at(pod, {"status", "conditions"});
  model::find(pod, {"status", "conditions"})
      ->as_array()
      .push_back(json(R"({"type":"mine","status":"True"})"));
  const Json same = make_status(pod, running(pod), kNow + 1h);
  EXPECT_TRUE(status_patch(pod, same).is_null()) << model::to_text(status_patch(pod, same));
  Pod sick = running(pod);
  sick.containers.front().is_ready = false;
  const Json changed = make_status(pod, sick, kNow + 1h);
  EXPECT_EQ(condition(changed, "mine", "status"), "True");
  EXPECT_EQ(condition(changed, "Ready", "lastTransitionTime"), "2023-11-14T23:13:20Z");
  EXPECT_EQ(condition(changed, "Initialized", "lastTransitionTime"), "2023-11-14T22:13:20Z");
  const Json patch = status_patch(pod, changed);
  EXPECT_EQ(model::text_at(patch, {"metadata", "uid"}), "u");
  EXPECT_EQ(model::find(patch, {"status", "podIP"}), nullptr) << "only what changed";
}

// A patch merges conditions and addresses with what is there.
TEST(PodStatus, WhatIsNoLongerSoIsTakenBack) {
  Json pod = new_pod();
  Pod sick = running(pod);
  sick.containers.front().is_ready = false;
  sick.address = "10.0.0.1";
  pod.as_object()["status"] = make_status(pod, sick, kNow);
  ASSERT_EQ(condition(pod.at("status"), "Ready", "reason"), "ContainersNotReady");
  Pod well = running(pod);
  well.address = "10.0.0.2";
  const Json patch = status_patch(pod, make_status(pod, well, kNow));
  const Json* ready = model::find_condition(patch, "Ready");
  ASSERT_NE(ready, nullptr);
  EXPECT_TRUE(ready->at("reason").is_null());
  EXPECT_TRUE(ready->at("message").is_null());
  EXPECT_EQ(model::to_text(patch.at("status").at("podIPs")),
            R"([{"ip":"10.0.0.2"},{"$patch":"replace"}])");
}

TEST(PodStatus, ReadinessGatesCount) {
  Json pod = new_pod();
  model::make_object_at(pod, {"spec"})["readinessGates"] = json(R"([{"conditionType":"x/y"}])");
  const Json waiting = make_status(pod, running(pod), kNow);
  EXPECT_EQ(condition(waiting, "Ready", "reason"), "ReadinessGatesNotReady");
  EXPECT_EQ(condition(waiting, "ContainersReady", "status"), "True");
  model::make_object_at(pod, {"status"})["conditions"] =
      json(R"([{"type":"x/y","status":"True"}])");
  EXPECT_EQ(condition(make_status(pod, running(pod), kNow), "Ready", "status"), "True");
}

TEST(PodStatus, EndsAreTold) {
  Json pod = new_pod();
  model::make_object_at(pod, {"spec"})["restartPolicy"] = "Never";
  Pod known = running(pod);
  Container& container = known.containers.front();
  container.stage = Stage::terminated;
  container.end = Ending{.exit_code = 137,
                         .signal = 9,
                         .reason = "OOMKilled",
                         .started = kNow,
                         .finished = kNow + 5s,
                         .sandbox = "pod-1"};
  const Json status = make_status(pod, known, kNow);
  EXPECT_EQ(model::text_at(status, {"phase"}), "Failed");
  EXPECT_EQ(condition(status, "Ready", "reason"), "PodFailed");
  const Json& told = model::array_at(status, {"containerStatuses"})->at(0);
  EXPECT_TRUE(model::is_same(*model::find(told, {"state"}), json(R"({"terminated":{
      "exitCode":137,"signal":9,"reason":"OOMKilled","startedAt":"2023-11-14T22:13:20Z",
      "finishedAt":"2023-11-14T22:13:25Z","containerID":"hearth://pod-1"}})")));
}

TEST(PodStatus, WhatWasWrittenIsKnownAgain) {
  Json pod = new_pod();
  Pod known = running(pod);
  Container& container = known.containers.front();
  container.attempt = 2;
  container.before = Ending{.exit_code = 1,
                            .reason = "Error",
                            .message = "why",
                            .started = kNow,
                            .finished = kNow,
                            .sandbox = "pod-0"};
  pod.as_object()["status"] = make_status(pod, known, kNow);
  const Pod again = known_from_status(pod);
  EXPECT_TRUE(model::is_same(make_status(pod, again, kNow), make_status(pod, known, kNow)));
  EXPECT_EQ(again.containers.front().attempt, 2u);
  EXPECT_TRUE(again.containers.front().has_lived);
  EXPECT_EQ(again.address, "10.0.0.5");
}

TEST(PodStatus, HostileStatusesAreNoReasonToFail) {
  for (const char* status :
       {"null", "[]", R"({"containerStatuses":7})", R"({"containerStatuses":[null,{"name":"c"}]})",
        R"({"containerStatuses":[{"name":"c","restartCount":-5,"state":{"running":3}}]})",
        R"({"containerStatuses":[{"name":"c","restartCount":1e30,"state":{"terminated":{}}}]})"}) {
    Json pod = new_pod();
    pod.as_object()["status"] = json(status);
    const Pod known = known_from_status(pod);
    ASSERT_EQ(known.containers.size(), 1u);
    make_status(pod, known, kNow);
  }
}

TEST(SandboxIds, ComeBack) {
  const SandboxName name = name_sandbox(kUid, "some-container", 12);
  const std::string id = name.id();
  EXPECT_EQ(id.substr(0, 37), "pod-0123456789abcdef0123456789abcdef-");
  const auto parsed = parse_sandbox_name(id);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->pod_uid, kUid);
  EXPECT_EQ(parsed->container_hash, model::name_hash("some-container"));
  EXPECT_EQ(parsed->attempt, 12u);
  EXPECT_LE(name_sandbox(kUid, "c", 4294967295).id().size(), 63u);
}

TEST(SandboxIds, OfOthersAreNotOurs) {
  const std::string good = name_sandbox(kUid, "c", 0).id();
  for (const std::string& id :
       {std::string(), std::string("sb-abc"), std::string("pod-"), good.substr(0, good.size() - 1),
        good + "x", good + "99999999999", "x" + good, std::string(good).replace(5, 1, "g"),
        std::string(good).replace(good.size() - 1, 1, "01")})
    EXPECT_FALSE(parse_sandbox_name(id)) << id;
  EXPECT_THROW(name_sandbox("not-a-uid", "c", 0), Error);
  EXPECT_THROW(name_sandbox("0123456789abcdef0123456789abcdef0123", "c", 0), Error);
}

}  // namespace
}  // namespace hearth::node
