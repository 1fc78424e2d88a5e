#include <gtest/gtest.h>

#include "apiserver/kinds_testing_internal.h"
#include "apiserver/pods.h"
#include "model/status.h"

namespace hearth::apiserver {
namespace {

const Strategy& pods() {
  return *find_strategy("", "v1", "Pod");
}

std::string pod_with(std::string_view spec) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{}}})",
                     spec);
}

std::string pod_with_container(std::string_view more) {
  return pod_with(fmt::format(R"({{"containers":[{{"name":"a","image":"x"{}}}]}})", more));
}

TEST(PodStrategy, FillsInWhatARealServerShows) {
  const Json pod = created(pods(), pod_with(R"({"containers":[{"name":"main","image":"x","ports":
      [{"name":"http","containerPort":8080}]}],"nodeName":"node1"})"));

  EXPECT_TRUE(model::is_same(pod, json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
    "spec":{"containers":[{"name":"main","image":"x",
        "ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"resources":{},
        "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
        "imagePullPolicy":"Always"}],
      "restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
      "serviceAccountName":"default","serviceAccount":"default","nodeName":"node1",
      "securityContext":{},"schedulerName":"default-scheduler",
      "tolerations":[
        {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
         "tolerationSeconds":300},
        {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
         "tolerationSeconds":300}],
      "priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
    "status":{"phase":"Pending","qosClass":"BestEffort"}})")))
      << model::to_pretty_text(pod);
}

TEST(PodStrategy, FillsInTwiceWhatItFillsInOnce) {
  const Json once = created(pods(), pod_with_container(R"(,"resources":{"limits":{"cpu":"1"}})"));
  Json twice = once;
  pods().fill_in(twice);
  EXPECT_TRUE(model::is_same(once, twice));
}

TEST(PodStrategy, PullsWhatHasNoFixedTagEveryTime) {
  const auto policy = [](std::string_view image) {
    const Json pod = created(
        pods(), pod_with(fmt::format(R"({{"containers":[{{"name":"a","image":"{}"}}]}})", image)));
    return std::string(model::text_at(pod.at("spec").at("containers").at(0), {"imagePullPolicy"}));
  };
  EXPECT_EQ(policy("python"), "Always");
  EXPECT_EQ(policy("python:latest"), "Always");
  EXPECT_EQ(policy("localhost:5000/python"), "Always");
  EXPECT_EQ(policy("python:3.12"), "IfNotPresent");
  EXPECT_EQ(policy("localhost:5000/python:3"), "IfNotPresent");
  EXPECT_EQ(policy("python@sha256:abc"), "IfNotPresent");
  EXPECT_EQ(policy("python:latest@sha256:abc"), "Always");
}

TEST(PodStrategy, FillsInProbesVolumesAndEnvironment) {
  const Json pod = created(pods(), pod_with(R"({"containers":[{"name":"a","image":"x:1",
      "env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
      "readinessProbe":{"httpGet":{"port":80}},
      "lifecycle":{"preStop":{"httpGet":{"port":80}}}}],
    "volumes":[{"name":"e"},{"name":"c","configMap":{"name":"m"}},
      {"name":"h","hostPath":{"path":"/x"}},
      {"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]})"));
  const Json& container = pod.at("spec").at("containers").at(0);

  EXPECT_EQ(model::text_at(container.at("env").at(0), {"valueFrom", "fieldRef", "apiVersion"}),
            "v1");
  EXPECT_TRUE(model::is_same(container.at("readinessProbe"), json(R"({
    "httpGet":{"port":80,"path":"/","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,
    "successThreshold":1,"failureThreshold":3})")));
  EXPECT_EQ(model::text_at(container, {"lifecycle", "preStop", "httpGet", "scheme"}), "HTTP");
  EXPECT_TRUE(model::is_same(pod.at("spec").at("volumes"), json(R"([{"name":"e","emptyDir":{}},
    {"name":"c","configMap":{"name":"m","defaultMode":420}},
    {"name":"h","hostPath":{"path":"/x","type":""}},
    {"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t",
      "expirationSeconds":3600}}],"defaultMode":420}}])")));
}

TEST(PodStrategy, WritesQuantitiesAsTheyAreRead) {
  const Json pod = created(pods(), pod_with_container(R"(,"resources":{
    "limits":{"cpu":2,"memory":"2048Mi"},"requests":{"cpu":"0.5"}})"));
  EXPECT_EQ(model::to_text(pod.at("spec").at("containers").at(0).at("resources")),
            R"({"limits":{"cpu":"2","memory":"2Gi"},"requests":{"cpu":"500m","memory":"2Gi"}})");
}

TEST(PodStrategy, KnowsTheOlderNameOfTheServiceAccount) {
  const Json older = created(pods(), pod_with(R"({"containers":[],"serviceAccount":"robot"})"));
  EXPECT_EQ(model::text_at(older, {"spec", "serviceAccountName"}), "robot");
  const Json newer = created(pods(), pod_with(R"({"containers":[],"serviceAccount":"robot",
    "serviceAccountName":"person"})"));
  EXPECT_EQ(model::text_at(newer, {"spec", "serviceAccount"}), "person");
}

TEST(PodStrategy, KeepsTolerationsThatSayOtherwise) {
  const Json pod = created(pods(), pod_with(R"({"containers":[],"tolerations":[
    {"operator":"Exists"}]})"));
  EXPECT_EQ(pod.at("spec").at("tolerations").as_array().size(), 1U);
}

TEST(PodStrategy, NamesTheQualityOfService) {
  const auto quality = [](std::string_view resources) {
    return std::string(model::text_at(
        created(pods(), pod_with_container(fmt::format(R"(,"resources":{})", resources))),
        {"status", "qosClass"}));
  };
  EXPECT_EQ(quality("{}"), "BestEffort");
  EXPECT_EQ(quality(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(quality(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(quality(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m"}})"),
            "Guaranteed");
  EXPECT_EQ(quality(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})"),
            "Burstable");
  EXPECT_EQ(quality(R"({"limits":{"nvidia.com/gpu":"1"}})"), "BestEffort");
}

TEST(PodStrategy, MatchesAddressesOfTheStatus) {
  Json pod = json(R"({"spec":{},"status":{"podIP":"10.0.0.1"}})");
  pods().fill_in(pod);
  EXPECT_EQ(model::to_text(pod.at("status").at("podIPs")), R"([{"ip":"10.0.0.1"}])");
  pod = json(R"({"spec":{},"status":{"podIPs":[{"ip":"10.0.0.2"}]}})");
  pods().fill_in(pod);
  EXPECT_EQ(model::text_at(pod, {"status", "podIP"}), "10.0.0.2");
}

TEST(PodStrategy, AcceptsAGoodPod) {
  EXPECT_EQ(refusals(pods(), pod_with(R"({"initContainers":[{"name":"i","image":"x"}],
    "containers":[{"name":"a","image":"x","env":[{"name":"A.b-c","value":"1"}],
      "volumeMounts":[{"name":"v","mountPath":"/v"}],
      "resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":1,"memory":"1Gi"}},
      "livenessProbe":{"exec":{"command":["true"]}}}],
    "volumes":[{"name":"v","emptyDir":{}}]})")),
            Sentences{});
}

TEST(PodStrategy, RefusesNamesThatAreMissingTwiceOrWrong) {
  EXPECT_EQ(refusals(pods(), pod_with("{}")), Sentences{"spec.containers: Required value"});
  EXPECT_EQ(refusals(pods(), pod_with(R"({"containers":[{}]})")),
            (Sentences{"spec.containers[0].name: Required value",
                       "spec.containers[0].image: Required value"}));
  EXPECT_EQ(refusals(pods(), pod_with(R"({"containers":[{"name":"a","image":"x"},
    {"name":"a","image":"x"}],"initContainers":[{"name":"a","image":"x"}],
    "volumes":[{"name":"v"},{"name":"v"}]})")),
            (Sentences{R"(spec.volumes[1].name: Duplicate value: "v")",
                       R"(spec.containers[1].name: Duplicate value: "a")",
                       R"(spec.initContainers[0].name: Duplicate value: "a")"}));
  EXPECT_EQ(
      refusals(pods(), pod_with(R"({"containers":[{"name":"A_","image":"x"}]})")),
      Sentences{
          R"(spec.containers[0].name: Invalid value: "A_": a lowercase RFC 1123 label must consist )"
          R"(of lower case alphanumeric characters or '-', and must start and end with an )"
          R"(alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is )"
          R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?'))"});
  EXPECT_EQ(refusals(pods(), pod_with(R"({"containers":[{"name":"a.b","image":"x"}]})")),
            Sentences{R"(spec.containers[0].name: Invalid value: "a.b": must not contain dots)"});
}

TEST(PodStrategy, RefusesToRunAsNobodyCould) {
  EXPECT_EQ(
      refusals(pods(), pod_with_container(R"(,"restartPolicy":"Perhaps",
      "securityContext":{"runAsUser":-1,"privileged":true,"allowPrivilegeEscalation":false},
      "lifecycle":{"preStop":{}})")),
      (Sentences{
          "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 "
          "and 2147483647, inclusive",
          R"(spec.containers[0].securityContext: Invalid value: {"runAsUser":-1,"privileged":)"
          R"(true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` )"
          "to false and `privileged` to true",
          R"(spec.containers[0].restartPolicy: Unsupported value: "Perhaps": supported values: )"
          R"("Always", "Never", "OnFailure")",
          "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type"}));
  const auto complaints_of = [](std::string_view part) {
    std::string spec = R"({"containers":[{"name":"a","image":"x"}],)";
    return refusals(pods(), pod_with(spec.append(part).append("}")));
  };
  EXPECT_EQ(complaints_of(R"("hostUsers":false,"hostNetwork":true)"),
            Sentences{"spec.hostNetwork: Forbidden: when `hostUsers` is false"});
  EXPECT_EQ(
      complaints_of(R"("os":{"name":"dos"})"),
      Sentences{R"(spec.os: Unsupported value: "dos": supported values: "linux", "windows")"});
  EXPECT_EQ(
      complaints_of(R"("dnsPolicy":"None")"),
      Sentences{
          "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"});
  EXPECT_EQ(
      complaints_of(R"("hostAliases":[{"ip":"here","hostnames":["a"]}])"),
      Sentences{R"(spec.hostAliases[0].ip: Invalid value: "here": must be a valid IP address, )"
                "(e.g. 10.9.8.7 or 2001:db8::ffff)"});
  EXPECT_EQ(complaints_of(R"("ephemeralContainers":[{"name":"e","image":"x"}])"),
            Sentences{"spec.ephemeralContainers: Forbidden: cannot be set on create"});
  EXPECT_EQ(complaints_of(R"("schedulingGates":[{"name":"a"},{"name":"a"}])"),
            Sentences{R"(spec.schedulingGates[1]: Duplicate value: "a")"});
  EXPECT_EQ(complaints_of(R"("securityContext":{"supplementalGroups":[1,-1]})").size(), 1U);
  EXPECT_EQ(complaints_of(R"("nodeSelector":{"a b":"c"})").size(), 1U);
}

TEST(PodStrategy, RefusesMountsOfUnknownVolumes) {
  EXPECT_EQ(
      refusals(pods(), pod_with_container(R"(,"volumeMounts":[{"name":"v","mountPath":"/a"},
        {"name":"","mountPath":"/a","subPath":"../b"}])")),
      (Sentences{
          R"(spec.containers[0].volumeMounts[0].name: Not found: "v")",
          "spec.containers[0].volumeMounts[1].name: Required value",
          R"(spec.containers[0].volumeMounts[1].name: Not found: "")",
          R"(spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique)",
          R"(spec.containers[0].volumeMounts[1].subPath: Invalid value: "../b": must not contain '..')"}));
}

TEST(PodStrategy, RefusesPortsOutOfRange) {
  EXPECT_EQ(
      refusals(pods(), pod_with_container(R"(,"ports":[{"containerPort":70000},{},
    {"containerPort":1,"protocol":"X","name":"a"},{"containerPort":2,"name":"a"}])")),
      (Sentences{
          "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between "
          "1 and 65535, inclusive",
          "spec.containers[0].ports[1].containerPort: Required value",
          R"(spec.containers[0].ports[2].protocol: Unsupported value: "X": supported values: )"
          R"("SCTP", "TCP", "UDP")",
          R"(spec.containers[0].ports[3].name: Duplicate value: "a")"}));
}

TEST(PodStrategy, RefusesPoliciesThatDoNotExist) {
  EXPECT_EQ(refusals(pods(), pod_with(R"({"containers":[{"name":"a","image":"x"}],
    "restartPolicy":"Sometimes","activeDeadlineSeconds":0})")),
            (Sentences{R"(spec.restartPolicy: Unsupported value: "Sometimes": supported values: )"
                       R"("Always", "OnFailure", "Never")",
                       "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and "
                       "2147483647, inclusive"}));
}

TEST(PodStrategy, RefusesMoreThanTheLimit) {
  EXPECT_EQ(
      refusals(pods(), pod_with_container(
                           R"(,"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1500m"}})")),
      Sentences{R"(spec.containers[0].resources.requests: Invalid value: "2": must be less )"
                "than or equal to cpu limit of 1500m"});
  EXPECT_EQ(refusals(pods(), pod_with_container(R"(,"resources":{"requests":{"beans":"2"}})")),
            Sentences{R"(spec.containers[0].resources.requests[beans]: Invalid value: "beans": )"
                      "must be a standard resource for containers"});
  EXPECT_EQ(refusals(pods(), pod_with_container(R"(,"resources":{"requests":{"cpu":"-1"}})")),
            Sentences{R"(spec.containers[0].resources.requests[cpu]: Invalid value: "-1": )"
                      "must be greater than or equal to 0"});
}

TEST(PodStrategy, RefusesEnvironmentThatMakesNoSense) {
  EXPECT_EQ(
      refusals(pods(),
               pod_with_container(R"(,"env":[{},{"name":"a=b"},{"name":"c","valueFrom":{}}])")),
      (Sentences{"spec.containers[0].env[0].name: Required value",
                 R"(spec.containers[0].env[1].name: Invalid value: "a=b": a valid )"
                 "environment variable name must consist only of printable ASCII characters "
                 "other than '='",
                 R"(spec.containers[0].env[2].valueFrom: Invalid value: "": must specify one )"
                 "of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                 "`fileKeyRef`"}));
}

TEST(PodStrategy, StopsComplainingAtSomePoint) {
  std::string ports = "{}";
  for (int i = 0; i < 1000; ++i) ports += ",{}";
  EXPECT_LE(refusals(pods(), pod_with_container(fmt::format(R"(,"ports":[{}])", ports))).size(),
            100U);
}

TEST(PodStrategy, SurvivesTypesThatAreWrong) {
  for (const std::string_view text :
       {"null", "[]", R"({"spec":[]})", R"({"spec":{"containers":{},"volumes":[1,null]}})",
        R"({"spec":{"containers":[1,{"ports":3,"env":["x"],"resources":[],"image":7}]}})",
        R"({"spec":{"tolerations":"x","serviceAccountName":5}})"}) {
    Json pod = json(text);
    pods().fill_in(pod);
    pods().prepare_create(pod);
    EXPECT_FALSE(pods().validate(pod, nullptr, "").empty()) << text;
    pods().validate(pod, &pod, "");
  }
}

TEST(PodStrategy, LetsImagesChangeAndLittleElse) {
  const std::string old = pod_with_container("");
  EXPECT_EQ(refusals(pods(), old, pod_with(R"({"containers":[{"name":"a","image":"y",
    "imagePullPolicy":"Always"}],"activeDeadlineSeconds":5})")),
            Sentences{});
  EXPECT_EQ(refusals(pods(), old, pod_with(R"({"containers":[{"name":"a","image":"x"},
    {"name":"b","image":"x"}]})")),
            Sentences{"spec.containers: Forbidden: pod updates may not add or remove containers"});
  const Sentences told = refusals(pods(), old, pod_with(R"({"containers":[{"name":"a","image":"x"}],
    "nodeName":"n"})"));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with(
      "spec: Forbidden: pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
      "`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)\n"))
      << told[0];
  EXPECT_NE(told[0].find("spec.nodeName"), std::string::npos);
}

TEST(PodStrategy, LetsTolerationsComeButNotGo) {
  const std::string old = pod_with(R"({"containers":[{"name":"a","image":"x"}],
    "tolerations":[{"key":"k","operator":"Exists"}]})");
  EXPECT_EQ(refusals(pods(), old, pod_with(R"({"containers":[{"name":"a","image":"x"}],
    "tolerations":[{"key":"k","operator":"Exists"},{"key":"l","operator":"Exists"}]})")),
            Sentences{});
  EXPECT_EQ(refusals(pods(), old, pod_with(R"({"containers":[{"name":"a","image":"x"}]})")),
            Sentences{"spec.tolerations: Forbidden: existing toleration can not be modified except "
                      "its tolerationSeconds"});
}

TEST(PodStrategy, KeepsTheStatusOnUpdates) {
  Json next = json(pod_with_container(""));
  const Json old = json(R"({"status":{"phase":"Running"}})");
  pods().prepare_update(next, old);
  EXPECT_EQ(model::text_at(next, {"status", "phase"}), "Running");
}

TEST(BindPod, PutsAPodOnANodeOnce) {
  Json pod = created(pods(), pod_with_container(""));
  const Json binding = json(R"({"metadata":{"annotations":{"a":"b"}},
    "target":{"kind":"Node","name":"n1"}})");
  bind_pod(pod, binding, "2026-01-02T03:04:05Z");
  EXPECT_EQ(model::text_at(pod, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(model::text_at(pod, {"metadata", "annotations", "a"}), "b");
  EXPECT_EQ(model::to_text(pod.at("status").at("conditions")),
            R"([{"type":"PodScheduled","status":"True","lastProbeTime":null,)"
            R"("lastTransitionTime":"2026-01-02T03:04:05Z"}])");
  try {
    bind_pod(pod, binding, "2026-01-02T03:04:06Z");
    FAIL() << "bound twice";
  } catch (const model::StatusError& error) {
    EXPECT_EQ(error.status().code, 409U);
    EXPECT_EQ(error.status().message,
              "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to "
              "node \"n1\"");
  }
}

TEST(BindPod, RefusesABindingToNothing) {
  Json pod = created(pods(), pod_with_container(""));
  EXPECT_THROW(bind_pod(pod, json("{}"), ""), model::StatusError);
  EXPECT_EQ(model::text_at(pod, {"spec", "nodeName"}), "");
}

}  // namespace
}  // namespace hearth::apiserver
