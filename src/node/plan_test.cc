#include "node/plan.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "linux/capabilities.h"
#include "model/meta.h"
#include "node/plan_internal.h"
#include "node/provisioner.h"

namespace hearth::node {
namespace {

using apiserver::json;
using runtime::MountKind;

image::Image host() {
  image::Image image;
  image.name = "host";
  return image;
}

class Plan : public testing::Test {
 protected:
  client::Client& client() { return server_.client(); }

  // What every namespace has, a moment after it was made.
  void SetUp() override {
    make(client::kServiceAccounts, R"({"apiVersion":"v1","kind":"ServiceAccount",
        "metadata":{"name":"default","namespace":"default"}})");
    make(client::kConfigMaps, R"({"apiVersion":"v1","kind":"ConfigMap",
        "metadata":{"name":"kube-root-ca.crt","namespace":"default"},"data":{"ca.crt":"pem"}})");
  }

  // A pod of the API, with what the server fills in. `spec` is the spec's other members.
  Json pod(std::string_view container, std::string_view spec = "",
           std::string_view annotations = "{}") {
    return client().create(
        client::kPods,
        json(fmt::format(
            R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}","namespace":"default",
            "labels":{{"app":"web"}},"annotations":{}}},
            "spec":{{"containers":[{{"name":"main","image":"host"{}}}]{}}}}})",
            ++count_, annotations, container, spec)));
  }
  void make(const client::ResourceId& resource, std::string_view text) {
    client().create(resource, json(text));
  }
  ContainerPlan plan(const Json& pod, const image::Image& image = host()) {
    return planner().plan(pod, model::array_at(pod, {"spec", "containers"})->at(0), image);
  }
  ContainerPlan plan_of(std::string_view container, std::string_view spec = "") {
    return plan(pod(container, spec));
  }
  // Why not, with its code.
  std::pair<Code, std::string> refusal(std::string_view container, std::string_view spec = "") {
    try {
      plan_of(container, spec);
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {Code::internal, "it was planned"};
  }
  Planner& planner() {
    if (!planner_) {
      PlannerOptions options;
      options.node_name = "here";
      options.host_address = "192.0.2.1";
      planner_ = std::make_unique<Planner>(client(), options);
    }
    return *planner_;
  }

  apiserver::TestServer server_;
  std::unique_ptr<Planner> planner_;
  int count_ = 0;
};

std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& line : environment)
    if (line.starts_with(std::string(name) + "=")) return line.substr(name.size() + 1);
  return "(unset)";
}

const runtime::MountSpec& mount_at(const ContainerPlan& plan, std::string_view target) {
  for (const auto& mount : plan.sandbox.mounts)
    if (mount.target == target) return mount;
  throw std::runtime_error("nothing is mounted on " + std::string(target));
}

TEST_F(Plan, CommandAndArgumentsWinOverTheImagesOwn) {
  image::Image image;
  image.name = "docker.io/library/tool:1";
  image.config.entrypoint = {"/entry"};
  image.config.command = {"usual"};
  const auto command = [&](std::string_view container) {
    return plan(pod(container), image).command.command;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(command(""), (Words{"/entry", "usual"}));
  EXPECT_EQ(command(R"(,"args":["a"])"), (Words{"/entry", "a"}));
  EXPECT_EQ(command(R"(,"command":["c"])"), Words{"c"});
  EXPECT_EQ(command(R"(,"command":["c"],"args":["a"])"), (Words{"c", "a"}));
  EXPECT_TRUE(plan(pod("")).command.command.empty());
  const ContainerPlan made =
      plan_of(R"(,"command":["c"],"stdin":true,"tty":true,"workingDir":"/srv")");
  EXPECT_TRUE(made.command.detached && made.command.keep_input && made.command.terminal);
  EXPECT_EQ(made.sandbox.directory, "/srv");
  EXPECT_EQ(made.sandbox.image, "host");
}

TEST_F(Plan, VariablesComeFromEverywhereInOrder) {
  make(client::kConfigMaps, R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"c","namespace":"default"},"data":{"A":"map","B":"map"}})");
  make(client::kSecrets, R"({"apiVersion":"v1","kind":"Secret",
      "metadata":{"name":"s","namespace":"default"},"stringData":{"KEY":"hush"}})");
  ContainerPlan made = plan_of(R"json(,"command":["say","$(A) $(NONE) $$(A) $(IP)"],
      "resources":{"limits":{"cpu":"1500m","memory":"64Mi"}},
      "envFrom":[{"configMapRef":{"name":"c"}},{"prefix":"P_","secretRef":{"name":"s"}},
                 {"secretRef":{"name":"none","optional":true}}],
      "env":[{"name":"A","value":"own"},{"name":"C","value":"$(A)-$(B)"},
             {"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"KEY"}}},
             {"name":"O","valueFrom":{"configMapKeyRef":{"name":"c","key":"no","optional":true}}},
             {"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
             {"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}},
             {"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
             {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
             {"name":"URL","value":"http://$(IP)/"},
             {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
             {"name":"MIB","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}}])json");
  const auto& environment = made.sandbox.environment;
  EXPECT_EQ(value_of(environment, "A"), "own");
  EXPECT_EQ(value_of(environment, "B"), "map");
  EXPECT_EQ(value_of(environment, "C"), "own-map");
  EXPECT_EQ(value_of(environment, "P_KEY"), "hush");
  EXPECT_EQ(value_of(environment, "S"), "hush");
  EXPECT_EQ(value_of(environment, "O"), "(unset)");
  EXPECT_EQ(value_of(environment, "N"), "p1");
  EXPECT_EQ(value_of(environment, "L"), "web");
  EXPECT_EQ(value_of(environment, "NODE"), "here");
  EXPECT_EQ(value_of(environment, "CPU"), "2");
  EXPECT_EQ(value_of(environment, "MIB"), "64");
  EXPECT_EQ(value_of(environment, "HOSTNAME"), "p1");
  EXPECT_EQ(value_of(environment, "KUBERNETES_SERVICE_PORT"), "443");
  EXPECT_EQ(value_of(environment, "IP"), "(unset)");
  made.set_address("10.1.2.3");
  EXPECT_EQ(value_of(made.command.environment, "IP"), "10.1.2.3");
  EXPECT_EQ(value_of(made.command.environment, "URL"), "http://10.1.2.3/");
  EXPECT_EQ(made.command.command[1], "own $(NONE) $(A) 10.1.2.3");
}

TEST_F(Plan, ServicesWithAnAddressAreVariables) {
  make(client::kServices, R"({"apiVersion":"v1","kind":"Service",
      "metadata":{"name":"my-db","namespace":"default"},
      "spec":{"ports":[{"name":"sql","port":5432}]}})");
  make(client::kServices, R"({"apiVersion":"v1","kind":"Service",
      "metadata":{"name":"headless","namespace":"default"},
      "spec":{"clusterIP":"None","ports":[{"port":1}]}})");
  const auto with = plan_of("").sandbox.environment;
  EXPECT_EQ(value_of(with, "MY_DB_SERVICE_PORT_SQL"), "5432");
  EXPECT_EQ(value_of(with, "MY_DB_PORT"),
            "tcp://" + value_of(with, "MY_DB_SERVICE_HOST") + ":5432");
  EXPECT_EQ(value_of(with, "HEADLESS_SERVICE_HOST"), "(unset)");
  const auto without = plan_of("", R"(,"enableServiceLinks":false)").sandbox.environment;
  EXPECT_EQ(value_of(without, "MY_DB_SERVICE_HOST"), "(unset)");
  EXPECT_NE(value_of(without, "KUBERNETES_SERVICE_HOST"), "(unset)");
}

TEST_F(Plan, WhatIsMissingIsNamed) {
  EXPECT_EQ(refusal(R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])"),
            std::pair(Code::not_found, std::string("secret \"s\" not found")));
  EXPECT_EQ(refusal(R"(,"envFrom":[{"configMapRef":{"name":"c"}}])").second,
            "configmap \"c\" not found");
  EXPECT_EQ(refusal(R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
                    R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])"),
            std::pair(Code::unavailable,
                      std::string("MountVolume.SetUp failed for volume \"v\" : secret \"s\" not "
                                  "found")));
}

TEST_F(Plan, LimitsAreTheContainersOrEverybodys) {
  const runtime::Limits usual;
  EXPECT_EQ(plan_of("").sandbox.limits, usual);
  const auto own = plan_of(R"(,"resources":{"limits":{"cpu":"250m","memory":"128Mi",
      "ephemeral-storage":"4Gi"}})")
                       .sandbox;
  EXPECT_EQ(own.limits.cpu_millis, 250u);
  EXPECT_EQ(own.limits.memory_bytes, 128u << 20);
  EXPECT_EQ(own.limits.disk_bytes, std::uint64_t{4} << 30);
  EXPECT_EQ(own.disk_on, runtime::DiskPlace::disk);
  const auto large = plan_of(R"(,"resources":{"requests":{"memory":"3Gi","cpu":"10m"}})").sandbox;
  EXPECT_EQ(large.limits.memory_bytes, std::uint64_t{3} << 30);
  EXPECT_EQ(large.limits.cpu_millis, usual.cpu_millis);
}

TEST_F(Plan, GroupsAreThoseOfThePodAndOfItsImage) {
  using guest::ImageGroups;
  EXPECT_EQ(plan_of("").sandbox.rights,
            (guest::ProcessRights{.image_groups = ImageGroups::always}));
  const auto both = plan_of(R"(,"securityContext":{"runAsUser":7,"runAsGroup":8})",
                            R"(,"securityContext":{"supplementalGroups":[5,6],"fsGroup":9,
                                "supplementalGroupsPolicy":"Strict"})")
                        .sandbox;
  EXPECT_EQ(both.user, "7:8");
  EXPECT_EQ(both.rights.groups, (std::vector<std::uint32_t>{5, 6, 9}));
  EXPECT_EQ(both.rights.image_groups, ImageGroups::never);
  EXPECT_EQ(refusal("", R"(,"securityContext":{"supplementalGroups":[70000]})").first,
            Code::invalid);
}

TEST_F(Plan, VolumesAreGivenToTheGroupOfFiles) {
  const auto regroup_of = [&](std::string_view volume, std::string_view more) {
    const auto mounts =
        plan_of(
            R"(,"volumeMounts":[{"name":"v","mountPath":"/v"}])",
            fmt::format(R"(,"volumes":[{{"name":"v",{}}}],"securityContext":{{{}}})", volume, more))
            .sandbox.mounts;
    for (const runtime::MountSpec& mount : mounts)
      if (mount.target == "/v") return std::pair(mount.group, mount.regroup);
    return std::pair(std::uint32_t{1}, runtime::Regroup::never);
  };
  using runtime::Regroup;
  constexpr std::string_view kGroup = R"("fsGroup":2000)";
  EXPECT_EQ(regroup_of(R"("emptyDir":{})", ""), std::pair(0U, Regroup::never));
  EXPECT_EQ(regroup_of(R"("emptyDir":{})", kGroup), std::pair(2000U, Regroup::where_root_differs));
  EXPECT_EQ(regroup_of(R"("emptyDir":{"medium":"Memory"})", kGroup),
            std::pair(2000U, Regroup::where_root_differs));
  EXPECT_EQ(regroup_of(R"("hostPath":{"path":"/h"})", kGroup), std::pair(0U, Regroup::never));
}

TEST_F(Plan, WhoItRunsAsAndWhatIsRefused) {
  EXPECT_EQ(plan_of("").sandbox.user, "");
  EXPECT_EQ(plan_of(R"(,"securityContext":{"runAsUser":1000})").sandbox.user, "1000");
  EXPECT_EQ(plan_of(R"(,"securityContext":{"runAsUser":1000})",
                    R"(,"securityContext":{"runAsUser":1,"fsGroup":2000})")
                .sandbox.user,
            "1000");
  const std::string root = refusal(R"(,"securityContext":{"runAsNonRoot":true})").second;
  EXPECT_TRUE(root.starts_with("container has runAsNonRoot and image will run as root (pod: \""))
      << root;
  EXPECT_EQ(refusal(R"(,"securityContext":{"runAsUser":70000})").first, Code::invalid);
  EXPECT_NE(refusal(R"(,"securityContext":{"privileged":true})").second.find("privileged"),
            std::string::npos);
  EXPECT_NE(refusal(R"(,"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}})")
                .second.find("'SYS_ADMIN'"),
            std::string::npos);
  EXPECT_EQ(plan_of(R"(,"securityContext":{"capabilities":{"add":["CHOWN"],"drop":["ALL"]}})")
                .sandbox.rights.dropped_capabilities,
            ~(std::uint64_t{1} << CAP_CHOWN));
  EXPECT_EQ(refusal(R"(,"securityContext":{"seccompProfile":{"type":"Localhost",
      "localhostProfile":"mine.json"}})")
                .second,
            "cannot load seccomp profile \"mine.json\": this node has none of its own");
  EXPECT_FALSE(plan_of("").sandbox.read_only_root);
  EXPECT_TRUE(
      plan_of(R"(,"securityContext":{"readOnlyRootFilesystem":true})").sandbox.read_only_root);
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    const auto [code, why] = refusal("", fmt::format(R"(,"{}":true)", field));
    EXPECT_EQ(code, Code::invalid);
    EXPECT_NE(why.find(field), std::string::npos) << why;
  }
}

TEST_F(Plan, SurfacesListenWhereNothingElseRuns) {
  EXPECT_EQ(plan_of("").sandbox.surfaces.size(), 4u);
  EXPECT_TRUE(plan_of(R"(,"command":["x"])").sandbox.surfaces.empty());
  const auto chosen = [&](std::string_view words) {
    return plan(pod("", "", fmt::format(R"({{"hearth.dev/surfaces":"{}"}})", words)));
  };
  EXPECT_TRUE(chosen("none").sandbox.surfaces.empty());
  const auto some = chosen("envd, runtime-api=9000").sandbox.surfaces;
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[1].port, 9000);
  EXPECT_THROW(chosen("nonsense"), Error);
  EXPECT_THROW(chosen("envd=0"), Error);
}

TEST_F(Plan, SudoIsForThoseWhoAreNamed) {
  using Names = std::vector<std::string>;
  const std::string named = R"({"hearth.dev/sudo":"user, admin,"})";

  EXPECT_TRUE(plan_of("").sandbox.sudoers.empty());
  EXPECT_EQ(plan(pod("", "", named)).sandbox.sudoers, (Names{"user", "admin"}));
  EXPECT_EQ(plan(pod(R"(,"securityContext":{"allowPrivilegeEscalation":true})", "", named))
                .sandbox.sudoers,
            (Names{"user", "admin"}));
  EXPECT_TRUE(plan(pod(R"(,"securityContext":{"allowPrivilegeEscalation":false})", "", named))
                  .sandbox.sudoers.empty());
}

TEST_F(Plan, FilesOfObjects) {
  make(client::kConfigMaps, R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"c","namespace":"default"},"data":{"a":"1","b":"2"},
      "binaryData":{"raw":"AAE="}})");
  make(client::kSecrets, R"({"apiVersion":"v1","kind":"Secret",
      "metadata":{"name":"s","namespace":"default"},"stringData":{"key":"hush"}})");
  const ContainerPlan made = plan_of(
      R"(,"volumeMounts":[{"name":"c","mountPath":"/c/"},{"name":"c","mountPath":"/one","subPath":"a"},
          {"name":"s","mountPath":"/s"},{"name":"all","mountPath":"/all","readOnly":true}])",
      R"(,"automountServiceAccountToken":false,"volumes":[{"name":"c","configMap":{"name":"c"}},
          {"name":"s","secret":{"secretName":"s","defaultMode":256,
                                "items":[{"key":"key","path":"deep/key"}]}},
          {"name":"all","projected":{"sources":[
             {"configMap":{"name":"c","items":[{"key":"b","path":"b","mode":292}]}},
             {"downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}},
             {"serviceAccountToken":{"path":"token","audience":"vault"}}]}}])");
  const auto& all = mount_at(made, "/c");
  ASSERT_EQ(all.kind, MountKind::tree);
  EXPECT_EQ(all.files,
            (std::vector<runtime::MountFile>{
                {"a", "1", 0644}, {"b", "2", 0644}, {"raw", std::string("\0\1", 2), 0644}}));
  EXPECT_EQ(mount_at(made, "/one").kind, MountKind::file);
  EXPECT_EQ(mount_at(made, "/one").content, "1");
  EXPECT_EQ(mount_at(made, "/s").files,
            (std::vector<runtime::MountFile>{{"deep/key", "hush", 0400}}));
  const auto& mixed = mount_at(made, "/all").files;
  ASSERT_EQ(mixed.size(), 3u);
  EXPECT_EQ(mixed[0].mode, 0444u);
  EXPECT_EQ(mixed[1].content, "app=\"web\"");
  EXPECT_EQ(mixed[2].path, "token");
  EXPECT_EQ(std::ranges::count(mixed[2].content, '.'), 2);
  EXPECT_EQ(made.sandbox.mounts.size(), 4u);
}

TEST_F(Plan, ATokenIsMountedUnlessSomebodySaysNo) {
  const ContainerPlan made = plan_of("");
  const auto& mount = mount_at(made, kTokenFolder);
  ASSERT_EQ(mount.files.size(), 3u);
  EXPECT_EQ(mount.files[0].path, "ca.crt");
  EXPECT_EQ(mount.files[1].content, "default");
  EXPECT_TRUE(plan_of("", R"(,"automountServiceAccountToken":false)").sandbox.mounts.empty());
  EXPECT_EQ(refusal("", R"(,"serviceAccountName":"nobody")").second,
            "serviceaccount \"nobody\" not found");
}

TEST_F(Plan, FoldersOfThePodAndOfTheMachine) {
  const Json made = pod(
      R"(,"volumeMounts":[{"name":"e","mountPath":"/e","subPath":"in/it"},
         {"name":"m","mountPath":"/dev/shm"},{"name":"h","mountPath":"/h","readOnly":true}])",
      R"(,"automountServiceAccountToken":false,"volumes":[{"name":"e","emptyDir":{"sizeLimit":"32Mi"}},
         {"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"8Mi"}},
         {"name":"h","hostPath":{"path":"/srv/data"}}])");
  const ContainerPlan planned = plan(made);
  const auto& folder = mount_at(planned, "/e");
  EXPECT_EQ(folder.kind, MountKind::volume);
  EXPECT_EQ(folder.source, pod_volume_name(model::uid_of(made), "e"));
  EXPECT_EQ(folder.bytes, 32u << 20);
  EXPECT_EQ(folder.sub_path, "in/it");
  EXPECT_EQ(folder.mode, 0777u);
  EXPECT_EQ(mount_at(planned, "/dev/shm").kind, MountKind::memory);
  EXPECT_EQ(mount_at(planned, "/dev/shm").bytes, 8u << 20);
  EXPECT_EQ(mount_at(planned, "/h").kind, MountKind::host);
  EXPECT_TRUE(mount_at(planned, "/h").read_only);
  EXPECT_EQ(pod_volume_names(made).size(), 2u);
  EXPECT_EQ(pod_uid_of_volume(folder.source), model::uid_of(made));
  EXPECT_EQ(pod_uid_of_volume("pvc-" + std::string(model::uid_of(made))), std::nullopt);
  EXPECT_EQ(refusal(R"(,"volumeMounts":[{"name":"n","mountPath":"/n"}])",
                    R"(,"volumes":[{"name":"n","nfs":{"server":"s","path":"/"}}])")
                .second,
            "volume 'n': 'nfs' is not supported");
}

TEST_F(Plan, AClaimIsWaitedFor) {
  constexpr std::string_view kMounts = R"(,"volumeMounts":[{"name":"d","mountPath":"/d"}])";
  constexpr std::string_view kVolumes =
      R"(,"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}])";
  EXPECT_EQ(refusal(kMounts, kVolumes).first, Code::unavailable);
  make(client::kPersistentVolumeClaims, R"({"apiVersion":"v1","kind":"PersistentVolumeClaim",
      "metadata":{"name":"data","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"1Gi"}}}})");
  EXPECT_EQ(refusal(kMounts, kVolumes).first, Code::unavailable);
}

TEST(Expand, LeavesWhatItDoesNotKnow) {
  const Variables variables{{"A", "1"}, {"EMPTY", ""}};
  EXPECT_EQ(expand("$(A)$(EMPTY)$(B)", variables), "1$(B)");
  EXPECT_EQ(expand("$$(A) $ $A $(A $", variables), "$(A) $ $A $(A $");
}

TEST(Hostname, IsALabel) {
  EXPECT_EQ(hostname_of(json(R"({"metadata":{"name":"a.b"}})")), "a-b");
  EXPECT_EQ(hostname_of(json(R"({"metadata":{"name":"a"},"spec":{"hostname":"h"}})")), "h");
  EXPECT_EQ(hostname_of(json(R"({"metadata":{"name":")" + std::string(62, 'a') + R"(-bc"}})")),
            std::string(62, 'a'));
}

}  // namespace
}  // namespace hearth::node
