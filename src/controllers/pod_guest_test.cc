// The guest in pods of a cluster: what is added, and which pods are left alone.
#include "controllers/pod_guest.h"

#include "controllers/blueprint.h"
#include "controllers/sandbox_pod.h"
#include "controllers/sandbox_testing_internal.h"

namespace hearth::controllers {
namespace {

constexpr std::string_view kImage = "example.test/guest:1";

Json sandbox_of(std::string_view pod_template, std::string_view annotations = "{}") {
  Json made = yaml(
      "{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox,"
      " metadata: {name: s, namespace: a, uid: U}}");
  made.at("metadata").as_object()["annotations"] = yaml(annotations);
  made.as_object()["spec"] = model::JsonObject{{"podTemplate", yaml(pod_template)}};
  return made;
}

Json pod_of(const Json& sandbox, std::string_view image = kImage) {
  Json pod = new_pod(sandbox);
  add_guest(pod, sandbox, image);
  return pod;
}

Json with_container(std::string_view container, std::string_view annotations = "{}") {
  return sandbox_of("{metadata: {annotations: " + std::string(annotations) +
                    "}, spec: {containers: [" + std::string(container) + "]}}");
}

std::string command_of(const Json& pod) {
  std::string joined;
  for (const Json& word : pod.at("spec").at("containers").at(0).at("command").as_array())
    joined += std::string(joined.empty() ? "" : " ") + std::string(word.as_string());
  return joined;
}

void expect_alone(const Json& sandbox) {
  EXPECT_TRUE(model::is_same(pod_of(sandbox), new_pod(sandbox)))
      << model::to_pretty_text(pod_of(sandbox));
}

TEST(PodGuest, IsInstalledFirstAndStartsTheCommand) {
  const Json pod = pod_of(sandbox_of(R"(
    spec:
      initContainers: [{name: first, image: x}]
      volumes: [{name: data, emptyDir: {}}]
      containers:
      - name: main
        image: i
        command: [python3, -m, app]
        args: [--fast, $(WORD)]
        volumeMounts: [{name: data, mountPath: /data}]
        resources:
          requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}
          limits: {memory: 1Gi}
      - {name: beside, image: j, command: [sleep]}
  )"));

  const Json expected = yaml(R"(
    initContainers:
    - name: hearth-guest
      image: example.test/guest:1
      command: [/hearth-guest, install, /hearth/bin]
      resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
        readOnlyRootFilesystem: true
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      volumeMounts: [{name: hearth-guest, mountPath: /hearth/bin}]
    - {name: first, image: x}
    volumes:
    - {name: data, emptyDir: {}}
    - {name: hearth-guest, emptyDir: {sizeLimit: 64Mi}}
    containers:
    - name: main
      image: i
      command: [/hearth/bin/hearth-guest, serve, --, python3, -m, app]
      args: [--fast, $(WORD)]
      volumeMounts:
      - {name: data, mountPath: /data}
      - {name: hearth-guest, mountPath: /hearth/bin, readOnly: true}
      resources:
        requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}
        limits: {memory: 1Gi}
    - {name: beside, image: j, command: [sleep]}
  )");
  EXPECT_TRUE(model::is_same(pod.at("spec"), expected)) << model::to_pretty_text(pod);
}

TEST(PodGuest, IsTheServiceWhereThereIsNoCommand) {
  EXPECT_EQ(command_of(pod_of(with_container("{name: main, image: i}"))),
            "/hearth/bin/hearth-guest serve");
}

TEST(PodGuest, ServesWhatTheAnnotationNames) {
  EXPECT_EQ(command_of(pod_of(with_container("{name: m, image: i, command: [x]}",
                                             "{hearth.dev/surfaces: 'envd, code=9'}"))),
            "/hearth/bin/hearth-guest serve --surfaces=envd, code=9 -- x");
}

TEST(PodGuest, IsToldOfPortsThatArePromisedToOthers) {
  EXPECT_EQ(command_of(pod_of(with_container(
                "{name: m, image: i, command: [x], ports: [{containerPort: 8888}]},"
                "{name: n, image: i, ports: [{containerPort: 80}, {containerPort: 8888}]}"))),
            "/hearth/bin/hearth-guest serve --taken-ports=80,8888 -- x");
}

TEST(PodGuest, LeavesAloneWhoSaysSo) {
  const std::string spec = "spec: {containers: [{name: main, image: i}]}";
  expect_alone(sandbox_of("{metadata: {annotations: {hearth.dev/guest: 'off'}}, " + spec + "}"));
  expect_alone(sandbox_of("{" + spec + "}", "{hearth.dev/guest: 'off'}"));
  expect_alone(sandbox_of("{metadata: {annotations: {hearth.dev/surfaces: none}}, " + spec + "}"));
}

TEST(PodGuest, LeavesAloneWhereItCannotBe) {
  // Arguments for an entrypoint that nobody here knows.
  expect_alone(with_container("{name: main, image: i, args: [x]}"));
  expect_alone(with_container("{name: hearth-guest, image: i}"));
  expect_alone(sandbox_of("{spec: {hostNetwork: true, containers: [{name: m, image: i}]}}"));
  expect_alone(sandbox_of("{spec: {os: {name: windows}, containers: [{name: m, image: i}]}}"));
  expect_alone(
      sandbox_of("{spec: {volumes: [{name: hearth-guest}], containers: [{name: m, image: i}]}}"));
  expect_alone(sandbox_of(
      "{spec: {initContainers: [{name: hearth-guest}], containers: [{name: m, image: i}]}}"));
}

TEST(PodGuest, BearsWhatNoServerWouldTake) {
  for (const std::string_view spec : {"{}", "{spec: {}}", "{spec: {containers: []}}",
                                      "{spec: {containers: x}}", "{spec: {containers: [x]}}"})
    expect_alone(sandbox_of(spec));
}

TEST(PodGuest, NeedsAnImage) {
  const Json sandbox = with_container("{name: main, image: i}");
  EXPECT_TRUE(model::is_same(pod_of(sandbox, ""), new_pod(sandbox)));
}

// With a controller that gives guests, and then with one that gives none, or another.
class GuestImageTest : public SandboxReconcilerTest {
 protected:
  GuestImageTest() : SandboxReconcilerTest({.guest_image = std::string(kImage)}) {}
};

TEST_F(GuestImageTest, AnotherImageIsForPodsToCome) {
  make_ready();
  const auto image = [&] {
    return std::string(model::text_at(pod().at("spec").at("initContainers").at(0), {"image"}));
  };
  EXPECT_EQ(image(), kImage);
  const std::string uid(model::uid_of(pod()));

  options_.guest_image = "example.test/guest:2";
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
  EXPECT_EQ(model::uid_of(pod()), uid);
  EXPECT_EQ(image(), kImage);

  end_pod();
  pass();
  EXPECT_EQ(image(), "example.test/guest:2");
}

}  // namespace
}  // namespace hearth::controllers
