// The pure parts of the Sandbox controller: pod, ports, volumes, lifetime.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/time_text.h"
#include "controllers/sandbox_lifetime.h"
#include "controllers/sandbox_pod.h"
#include "controllers/sandbox_service.h"
#include "controllers/sandbox_volumes.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

Json yaml(std::string_view text) {
  return model::parse_yaml(text).value;
}

Json sandbox(std::string_view spec, std::string_view more_metadata = "{}") {
  Json made = yaml(
      "{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox,"
      " metadata: {name: my-sandbox, namespace: a, uid: U}}");
  const Json more = yaml(more_metadata);
  for (const auto& [key, value] : more.as_object()) made.at("metadata").as_object()[key] = value;
  made.as_object()["spec"] = yaml(spec);
  return made;
}

// JSON that is the same whatever the order of members.
void expect_same(const Json& is, std::string_view expected) {
  EXPECT_TRUE(model::is_same(is, yaml(expected))) << model::to_pretty_text(is);
}

TEST(PodName, IsTheAnnotationOrTheSandboxsOwn) {
  EXPECT_EQ(pod_name_of(sandbox("{}")), "my-sandbox");
  EXPECT_EQ(pod_name_of(sandbox("{}", "{annotations: {other: x}}")), "my-sandbox");
  EXPECT_EQ(pod_name_of(sandbox("{}", "{annotations: {agents.x-k8s.io/pod-name: ''}}")),
            "my-sandbox");
  EXPECT_EQ(pod_name_of(sandbox("{}", "{annotations: {agents.x-k8s.io/pod-name: warm-1}}")),
            "warm-1");
  EXPECT_EQ(pod_name_of(sandbox("{}", "{annotations: {agents.x-k8s.io/pod-name: ../secrets/x}}")),
            "my-sandbox");
}

TEST(NewPod, HasTheTemplatesSpecAndOurMarks) {
  const Json made = new_pod(sandbox(R"(
    podTemplate:
      metadata: {labels: {team: a, app: b}, annotations: {note: x}}
      spec: {containers: [{name: main, image: i}]})"));

  expect_same(made, R"(
    apiVersion: v1
    kind: Pod
    metadata:
      name: my-sandbox
      namespace: a
      labels: {team: a, app: b, agents.x-k8s.io/sandbox-name-hash: 374de8f5}
      annotations:
        note: x
        agents.x-k8s.io/propagated-labels: app,team
        agents.x-k8s.io/propagated-annotations: note
      ownerReferences:
      - {apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, name: my-sandbox, uid: U,
         controller: true, blockOwnerDeletion: true}
    spec: {containers: [{name: main, image: i}]})");
}

TEST(NewPod, GetsNoReservedKeyFromItsTemplateOrFromLabelsOfAStandaloneSandbox) {
  const Json made = new_pod(sandbox(R"(
    podTemplate:
      metadata:
        labels:
          agents.x-k8s.io/sandbox-name-hash: deadbeef
          agents.x-k8s.io/claim-uid: forged
          extensions.agents.x-k8s.io/x: y
          agents.x-k8s.iox/fine: z
        annotations: {agents.x-k8s.io/x: y, opentelemetry.io/trace-context: t}
      spec: {containers: []})",
                                    "{labels: {agents.x-k8s.io/warm-pool-sandbox: p, "
                                    "agents.x-k8s.io/sandbox-template-ref-hash: h, "
                                    "agents.x-k8s.io/claim-uid: c}}"));

  expect_same(made.at("metadata").at("labels"),
              "{agents.x-k8s.iox/fine: z, agents.x-k8s.io/sandbox-name-hash: 374de8f5}");
  expect_same(made.at("metadata").at("annotations"),
              "{agents.x-k8s.io/propagated-labels: agents.x-k8s.iox/fine}");
}

Json owned_by(std::string_view kind, std::string_view version = "v1beta1") {
  return sandbox("{podTemplate: {spec: {containers: []}}}",
                 "{labels: {agents.x-k8s.io/warm-pool-sandbox: p, agents.x-k8s.io/claim-uid: c, "
                 "agents.x-k8s.io/sandbox-template-ref-hash: h, agents.x-k8s.io/created-by: me},"
                 " ownerReferences: [{controller: true, uid: o, kind: " +
                     std::string(kind) + ", apiVersion: extensions.agents.x-k8s.io/" +
                     std::string(version) + "}]}");
}

TEST(NewPod, CarriesTheLabelsThatItsSandboxsOwnerGives) {
  expect_same(
      new_pod(owned_by("SandboxWarmPool")).at("metadata").at("labels"),
      "{agents.x-k8s.io/sandbox-name-hash: 374de8f5, agents.x-k8s.io/warm-pool-sandbox: p,"
      " agents.x-k8s.io/sandbox-template-ref-hash: h, agents.x-k8s.io/created-by: unknown}");
  expect_same(
      new_pod(owned_by("SandboxClaim", "v1alpha1")).at("metadata").at("labels"),
      "{agents.x-k8s.io/sandbox-name-hash: 374de8f5, agents.x-k8s.io/claim-uid: c,"
      " agents.x-k8s.io/sandbox-template-ref-hash: h, agents.x-k8s.io/created-by: unknown}");
}

TEST(NewPod, MountsItsClaimsInPlaceOfVolumesOfTheSameName) {
  const Json made = new_pod(sandbox(R"(
    podTemplate: {spec: {containers: [], volumes: [{name: work, emptyDir: {}}, {name: tmp, emptyDir: {}}]}}
    volumeClaimTemplates: [{metadata: {name: work}, spec: {}}, {metadata: {name: data}, spec: {}}])"));
  expect_same(made.at("spec").at("volumes"), R"(
    - {name: tmp, emptyDir: {}}
    - {name: work, persistentVolumeClaim: {claimName: work-my-sandbox}}
    - {name: data, persistentVolumeClaim: {claimName: data-my-sandbox}})");
}

TEST(PodMetadata, OfANewPodNeedsNoRepair) {
  const Json owner = sandbox(
      "{podTemplate: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {containers: []}}}");
  EXPECT_TRUE(pod_metadata_repair(new_pod(owner), owner).is_null());
  const Json bare = sandbox("{podTemplate: {spec: {containers: []}}}");
  EXPECT_TRUE(pod_metadata_repair(new_pod(bare), bare).is_null());
  EXPECT_TRUE(
      pod_metadata_repair(new_pod(owned_by("SandboxClaim")), owned_by("SandboxClaim")).is_null());
}

TEST(PodMetadata, FollowsTheTemplateAndLeavesWhatOthersWrote) {
  const Json pod = yaml(R"(
    metadata:
      labels: {agents.x-k8s.io/sandbox-name-hash: 374de8f5, keep: '1', change: old, drop: x, theirs: y}
      annotations:
        note: old
        gone: z
        others: o
        agents.x-k8s.io/propagated-labels: change,drop,keep
        agents.x-k8s.io/propagated-annotations: gone,note)");
  const Json owner = sandbox(R"(
    podTemplate: {metadata: {labels: {keep: '1', change: new}, annotations: {note: new}}})");

  expect_same(pod_metadata_repair(pod, owner), R"(
    metadata:
      labels: {change: new, drop: null}
      annotations:
        note: new
        gone: null
        agents.x-k8s.io/propagated-labels: change,keep
        agents.x-k8s.io/propagated-annotations: note)");
}

TEST(PodMetadata, LosesReservedKeysThatAnOlderControllerLetThrough) {
  const Json pod = yaml(R"(
    metadata:
      labels: {agents.x-k8s.io/sandbox-name-hash: 374de8f5, agents.x-k8s.io/evil: x}
      annotations:
        agents.x-k8s.io/evil: y
        opentelemetry.io/trace-context: t
        agents.x-k8s.io/propagated-labels: agents.x-k8s.io/evil,agents.x-k8s.io/sandbox-name-hash,,
        agents.x-k8s.io/propagated-annotations: agents.x-k8s.io/evil,opentelemetry.io/trace-context,agents.x-k8s.io/propagated-labels)");

  expect_same(pod_metadata_repair(pod, sandbox("{}")), R"(
    metadata:
      labels: {agents.x-k8s.io/evil: null}
      annotations:
        agents.x-k8s.io/evil: null
        opentelemetry.io/trace-context: null
        agents.x-k8s.io/propagated-labels: ''
        agents.x-k8s.io/propagated-annotations: '')");
}

TEST(PodMetadata, ChangesHandsWithItsSandbox) {
  const Json warm = new_pod(owned_by("SandboxWarmPool"));
  Json claimed = owned_by("SandboxClaim");
  claimed.at("metadata").at("labels").as_object()[model::kCreatedByLabel] = "python-client";

  expect_same(pod_metadata_repair(warm, claimed), R"(
    metadata:
      labels:
        agents.x-k8s.io/warm-pool-sandbox: null
        agents.x-k8s.io/claim-uid: c
        agents.x-k8s.io/created-by: python-client)");
  expect_same(pod_metadata_repair(new_pod(claimed), sandbox("{}")), R"(
    metadata:
      labels:
        agents.x-k8s.io/claim-uid: null
        agents.x-k8s.io/created-by: null
        agents.x-k8s.io/sandbox-template-ref-hash: null)");
}

TEST(Creator, IsOneOfThoseWeKnow) {
  EXPECT_EQ(normalised_creator("go-client"), "go-client");
  EXPECT_EQ(normalised_creator("python-client"), "python-client");
  EXPECT_EQ(normalised_creator("controller"), "controller");
  EXPECT_EQ(normalised_creator("hacker"), "unknown");
}

TEST(PodUpdates, ThatChangeNothingForTheSandboxAreNotLookedAt) {
  const Json before = yaml("{metadata: {resourceVersion: '1'}, status: {phase: Running}}");
  Json same = yaml(
      "{metadata: {resourceVersion: '2', managedFields: []}, status: {phase: Running, "
      "containerStatuses: []}}");
  EXPECT_FALSE(concerns_sandbox(before, same));
  EXPECT_TRUE(concerns_sandbox(before, yaml("{metadata: {}, status: {phase: Failed}}")));
  EXPECT_TRUE(concerns_sandbox(
      before, yaml("{metadata: {deletionTimestamp: x}, status: {phase: Running}}")));
}

struct PortCase {
  std::string name;
  std::string pod_spec;
  std::string expected;
};

class ServicePorts : public testing::TestWithParam<PortCase> {};

TEST_P(ServicePorts, ComeFromContainers) {
  const Json owner = sandbox("{podTemplate: {spec: " + GetParam().pod_spec + "}}");
  expect_same(service_ports(owner), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, ServicePorts,
    testing::Values(
        PortCase{"None", "{containers: [{name: a}]}", "[]"},
        PortCase{"UnnamedGetOne", "{containers: [{ports: [{containerPort: 80}]}]}",
                 "[{name: p-80-tcp, protocol: TCP, port: 80, targetPort: 80}]"},
        PortCase{"ZeroIsNone", "{containers: [{ports: [{containerPort: 0}]}]}", "[]"},
        PortCase{"SortedByPortThenProtocol",
                 "{containers: [{ports: [{containerPort: 90}, {containerPort: 80, protocol: UDP}, "
                 "{containerPort: 80}]}]}",
                 "[{name: p-80-tcp, protocol: TCP, port: 80, targetPort: 80},"
                 " {name: p-80-udp, protocol: UDP, port: 80, targetPort: 80},"
                 " {name: p-90-tcp, protocol: TCP, port: 90, targetPort: 90}]"},
        PortCase{"TheFirstNameOfAPortCounts",
                 "{containers: [{ports: [{containerPort: 80}]}, {ports: [{containerPort: 80, name: "
                 "web}]}, {ports: [{containerPort: 80, name: other}]}]}",
                 "[{name: web, protocol: TCP, port: 80, targetPort: 80}]"},
        PortCase{"ANameBelongsToItsFirstPort",
                 "{containers: [{ports: [{containerPort: 90, name: web}, {containerPort: 80, name: "
                 "web}]}]}",
                 "[{name: p-80-tcp, protocol: TCP, port: 80, targetPort: 80},"
                 " {name: web, protocol: TCP, port: 90, targetPort: 90}]"},
        PortCase{"AMadeNameThatIsTakenGetsANumber",
                 "{containers: [{ports: [{containerPort: 80}, {containerPort: 81, name: p-80-tcp}, "
                 "{containerPort: 82, name: p-80-tcp-2}]}]}",
                 "[{name: p-80-tcp-3, protocol: TCP, port: 80, targetPort: 80},"
                 " {name: p-80-tcp, protocol: TCP, port: 81, targetPort: 81},"
                 " {name: p-80-tcp-2, protocol: TCP, port: 82, targetPort: 82}]"},
        PortCase{"OfInitContainersOnlySidecars",
                 "{containers: [], initContainers: [{ports: [{containerPort: 70}]}, "
                 "{restartPolicy: Always, ports: [{containerPort: 71}]}]}",
                 "[{name: p-71-tcp, protocol: TCP, port: 71, targetPort: 71}]"}),
    [](const auto& param) { return param.param.name; });

constexpr char kWithPort[] =
    "{service: true, podTemplate: {spec: {containers: [{ports: [{containerPort: 80}]}]}}}";

TEST(SandboxService, IsHeadlessAndPointsAtTheTrackingLabel) {
  expect_same(new_service(sandbox(kWithPort)), R"(
    apiVersion: v1
    kind: Service
    metadata:
      name: my-sandbox
      namespace: a
      labels: {agents.x-k8s.io/sandbox-name-hash: 374de8f5}
      ownerReferences:
      - {apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, name: my-sandbox, uid: U,
         controller: true, blockOwnerDeletion: true}
    spec:
      clusterIP: None
      selector: {agents.x-k8s.io/sandbox-name-hash: 374de8f5}
      ports: [{name: p-80-tcp, protocol: TCP, port: 80, targetPort: 80}])");
  EXPECT_EQ(model::find(new_service(sandbox("{service: true}")), {"spec", "ports"}), nullptr);
}

TEST(SandboxService, RepairsWhatDriftedAndNothingElse) {
  const Json owner = sandbox(kWithPort);
  Json service = new_service(owner);
  EXPECT_TRUE(service_repair(service, owner).is_null());
  service.at("spec").at("ports").at(0).as_object()["appProtocol"] = "http";
  EXPECT_TRUE(service_repair(service, owner).is_null());

  service.at("metadata").at("labels") = yaml("{x: y}");
  service.at("spec").at("selector") = yaml("{app: evil}");
  service.at("spec").at("ports").at(0).as_object()["targetPort"] = 81;

  expect_same(service_repair(service, owner), R"(
    metadata: {labels: {agents.x-k8s.io/sandbox-name-hash: 374de8f5}}
    spec:
      selector: {app: null, agents.x-k8s.io/sandbox-name-hash: 374de8f5}
      ports: [{name: p-80-tcp, protocol: TCP, port: 80, targetPort: 80}])");
}

TEST(SandboxService, LeavesPortsAloneWhereNothingIsSaidOfAService) {
  const Json owner = sandbox("{podTemplate: {spec: {containers: []}}}");
  const Json service = new_service(sandbox(kWithPort));
  EXPECT_TRUE(service_repair(service, owner).is_null());
  const Json wanted = sandbox("{service: true, podTemplate: {spec: {containers: []}}}");
  expect_same(service_repair(service, wanted), "{spec: {ports: null}}");
}

TEST(SandboxService, HasAFullNameInTheClustersDomain) {
  EXPECT_EQ(service_fqdn(new_service(sandbox("{}")), "cluster.test"),
            "my-sandbox.a.svc.cluster.test");
}

TEST(VolumeClaim, CarriesTheTemplatesMetadataAndOurs) {
  const Json owner = sandbox("{}");
  const Json made = new_volume_claim(
      yaml("{metadata: {name: work, labels: {x: y, agents.x-k8s.io/sandbox-name-hash: evil}, "
           "annotations: {n: o}}, spec: {accessModes: [ReadWriteOnce]}}"),
      owner);
  expect_same(made, R"(
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata:
      name: work-my-sandbox
      namespace: a
      labels: {x: y, agents.x-k8s.io/sandbox-name-hash: 374de8f5}
      annotations: {n: o}
      ownerReferences:
      - {apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, name: my-sandbox, uid: U,
         controller: true, blockOwnerDeletion: true}
    spec: {accessModes: [ReadWriteOnce]})");
}

constexpr char kKept[] = "{persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}}";

TEST(VolumeClaim, ThatIsKeptHasNoOwner) {
  const Json made = new_volume_claim(yaml("{metadata: {name: work}}"), sandbox(kKept));
  EXPECT_FALSE(model::controller_of(made));
  EXPECT_EQ(model::label_of(made, model::kNameHashLabel), "374de8f5");
  EXPECT_TRUE(volume_claim_repair(made, sandbox(kKept)).is_null());
}

TEST(VolumeClaim, ChangesOwnersWithThePolicyAndHoldsForOneVersionOnly) {
  Json owned = new_volume_claim(yaml("{metadata: {name: work}}"), sandbox("{}"));
  owned.at("metadata").as_object()["resourceVersion"] = "5";
  EXPECT_TRUE(volume_claim_repair(owned, sandbox("{}")).is_null());
  expect_same(volume_claim_repair(owned, sandbox(kKept)), R"(
    metadata: {resourceVersion: '5', ownerReferences: [],
      labels: {agents.x-k8s.io/sandbox-name-hash: 374de8f5}})");

  const Json kept = new_volume_claim(yaml("{metadata: {name: work}}"), sandbox(kKept));
  const Json adopted = volume_claim_repair(kept, sandbox("{}"));
  EXPECT_TRUE(model::is_controlled_by(adopted, "U"));
}

TEST(VolumeClaim, OfSomebodyElseIsNotUsed) {
  const Json foreign = yaml(
      "{metadata: {name: work-my-sandbox, ownerReferences: [{controller: true, kind: Sandbox, "
      "name: "
      "x, uid: V}]}}");
  const Json stray = yaml("{metadata: {name: work-my-sandbox}}");
  const Json adoptable =
      yaml("{metadata: {name: work-my-sandbox, labels: {agents.x-k8s.io/adoptable: 'true'}}}");
  for (const char* spec : {"{}", kKept}) {
    EXPECT_THROW(volume_claim_repair(foreign, sandbox(spec)), Error);
    EXPECT_THROW(volume_claim_repair(stray, sandbox(spec)), Error);
    EXPECT_NO_THROW(volume_claim_repair(adoptable, sandbox(spec)));
  }
}

TEST(Expiry, ComesAtTheVeryMomentAndIsNotLookedForTooOften) {
  const Time end = *parse_rfc3339("2026-01-02T03:04:05Z");
  const Json endless = sandbox("{}");
  const Json timed = sandbox("{shutdownTime: '2026-01-02T03:04:05Z'}");

  EXPECT_FALSE(is_expired(endless, end));
  EXPECT_EQ(until_expiry(endless, end), reconcile::kWhenChanged);
  EXPECT_FALSE(is_expired(timed, end - 1ns));
  EXPECT_TRUE(is_expired(timed, end));
  EXPECT_EQ(until_expiry(timed, end - 1h), reconcile::Next(1h));
  EXPECT_EQ(until_expiry(timed, end - 1ms), reconcile::Next(2s));
}

TEST(Recreation, WaitsLongerWithEveryFailure) {
  EXPECT_EQ(recreation_pause(1), 1s);
  EXPECT_EQ(recreation_pause(2), 2s);
  EXPECT_EQ(recreation_pause(5), 16s);
  EXPECT_EQ(recreation_pause(1'000'000), 5min);
}

TEST(Recreation, ForgetsFailuresBeforeALongLife) {
  const Json pod = yaml("{metadata: {creationTimestamp: '2026-01-02T03:00:00Z'}}");
  EXPECT_FALSE(was_stable(pod, *parse_rfc3339("2026-01-02T03:09:59Z")));
  EXPECT_TRUE(was_stable(pod, *parse_rfc3339("2026-01-02T03:10:00Z")));
  EXPECT_FALSE(was_stable(yaml("{}"), *parse_rfc3339("2026-01-02T03:10:00Z")));
}

}  // namespace
}  // namespace hearth::controllers
