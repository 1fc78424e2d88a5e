// The Service and the volumes of a Sandbox, on a real server.
#include "controllers/sandbox_testing_internal.h"

namespace hearth::controllers {
namespace {

constexpr char kTracked[] = "{agents.x-k8s.io/sandbox-name-hash: d55997bc}";
constexpr char kAdoptable[] = "{agents.x-k8s.io/adoptable: 'true'}";
constexpr char kHeadless[] = "{clusterIP: None, selector: {app: x}, ports: [{port: 99}]}";

class SandboxServiceTest : public SandboxReconcilerTest {
 protected:
  Json service() { return server_.client().get(client::kServices, "default", "dev"); }
  bool is_owned() { return model::is_controlled_by(service(), model::uid_of(sandbox())); }
  std::string told() { return std::string(model::text_at(sandbox(), {"status", "service"})); }
  Json make_service(std::string_view labels, std::string_view owner,
                    std::string_view spec = kHeadless) {
    return make_child(client::kServices, "dev", labels, owner, spec);
  }
};

TEST_F(SandboxServiceTest, IsRepairedWhereItIsWanted) {
  make_ready("{service: true}");
  patch(client::kServices, "dev",
        "{metadata: {labels: null}, spec: {selector: {app: evil}, ports: [{port: 1, name: x}]}}");

  pass();

  EXPECT_EQ(client_.take_writes(), Writes{"patch services"});
  EXPECT_EQ(model::label_of(service(), model::kNameHashLabel), kHash);
  EXPECT_EQ(service().at("spec").at("selector"), yaml(kTracked));
  EXPECT_EQ(service().at("spec").at("ports").at(0).at("name"), "p-80-tcp");
  pass();
  EXPECT_EQ(client_.take_writes(), Writes{});
}

TEST_F(SandboxServiceTest, FollowsThePortsOfTheTemplate) {
  make_ready("{service: true}");
  patch_sandbox("{spec: {podTemplate: {spec: {containers: [{name: main, image: i}]}}}}");
  pass();
  EXPECT_EQ(model::find(service(), {"spec", "ports"}), nullptr);
}

TEST_F(SandboxServiceTest, KeepsPortsWhereNothingIsSaid) {
  make_ready("{service: true}");
  patch_sandbox("{spec: {service: null}}");
  patch(client::kServices, "dev", "{spec: {selector: {app: evil}, ports: [{port: 7, name: x}]}}");
  pass();
  EXPECT_EQ(service().at("spec").at("ports").at(0).at("port"), 7);
  EXPECT_EQ(model::find(service(), {"spec", "selector", "app"}), nullptr);
  EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready; Service Exists");
}

TEST_F(SandboxServiceTest, IsDeletedWhereItIsNotWanted) {
  make_ready("{service: true}");
  patch_sandbox("{spec: {service: false}}");
  pass();
  EXPECT_FALSE(find(client::kServices, "dev"));
  EXPECT_EQ(told(), "");
  EXPECT_EQ(model::find(sandbox(), {"status", "serviceFQDN"}), nullptr);
  EXPECT_EQ(condition("Ready"), "True DependenciesReady: Pod is Ready");
}

class AdoptableServiceTest : public SandboxServiceTest,
                             public testing::WithParamInterface<const char*> {};

TEST_P(AdoptableServiceTest, OfNobodyIsAdoptedWhereItIsWanted) {
  make_service(GetParam(), "");
  make_sandbox("{service: true}");

  pass();

  EXPECT_TRUE(is_owned());
  EXPECT_EQ(service().at("spec").at("selector"), yaml(kTracked));
  EXPECT_EQ(service().at("spec").at("ports").as_array().size(), 1u);
  EXPECT_EQ(service().at("spec").at("ports").at(0).at("port"), 80);
  EXPECT_EQ(told(), "dev");
}

INSTANTIATE_TEST_SUITE_P(Labels, AdoptableServiceTest, testing::Values(kTracked, kAdoptable));

TEST_F(SandboxServiceTest, AdoptionClearsPortsThatNoContainerHas) {
  make_service(kTracked, "");
  make_sandbox("{service: true, podTemplate: {spec: {containers: [{name: main, image: i}]}}}");
  pass();
  EXPECT_EQ(model::find(service(), {"spec", "ports"}), nullptr);
}

TEST_F(SandboxServiceTest, OfNobodyIsLeftWhereItIsNotAskedFor) {
  make_service(kTracked, "");
  make_sandbox();
  pass();
  EXPECT_FALSE(model::controller_of(service()));
  EXPECT_EQ(told(), "");
  patch_sandbox("{spec: {service: false}}");
  pass();
  EXPECT_FALSE(model::controller_of(service()));
}

TEST_F(SandboxServiceTest, ItsNameAloneMakesItNobodysToTake) {
  make_service("{}", "");
  make_sandbox("{service: true}");
  failing_pass();
  EXPECT_FALSE(model::controller_of(service()));
  EXPECT_EQ(condition("Ready").substr(0, 66),
            "False ReconcilerError: Error seen: cannot adopt unowned service \"d");
}

TEST_F(SandboxServiceTest, WithAClusterAddressIsNotAdopted) {
  make_service(kTracked, "", "{clusterIP: 10.96.0.77, ports: [{port: 99}]}");
  make_sandbox("{service: true}");
  failing_pass();
  EXPECT_EQ(condition("Ready"),
            "False ReconcilerError: Error seen: cannot adopt service \"dev\": ClusterIP is "
            "\"10.96.0.77\" (expected \"None\", field is immutable)");
}

TEST_F(SandboxServiceTest, OfAnotherIsRefusedUnlessNoneIsWanted) {
  make_service(kTracked, "stranger");
  make_sandbox("{service: true}");
  failing_pass();
  EXPECT_EQ(condition("Ready"),
            "False ReconcilerError: Error seen: service \"dev\" is owned by ConfigMap/other (UID: "
            "stranger), not by sandbox \"dev\"");
  patch_sandbox("{spec: {service: null}}");
  failing_pass();
  patch_sandbox("{spec: {service: false}}");
  pass();
  EXPECT_EQ(model::text_at(service(), {"spec", "selector", "app"}), "x");
}

TEST_F(SandboxServiceTest, UnderAStaleCacheIsFoundWhereItIs) {
  make_sandbox("{service: true}");
  settle();
  services_.stop();
  make_service(kTracked, "");
  hasty_pass();
  EXPECT_TRUE(is_owned());
}

TEST_F(SandboxServiceTest, ThatTheCacheDoesNotShowIsDeletedAllTheSame) {
  make_sandbox("{service: true}");
  settle();
  services_.stop();
  hasty_pass();
  ASSERT_EQ(told(), "dev");
  clock_.advance(std::chrono::seconds(2));  // nothing is remembered any more
  patch_sandbox("{spec: {service: false}}");
  while (sandboxes_.find("default", "dev")->at("spec").at("service") != false)
    std::this_thread::yield();

  hasty_pass();

  EXPECT_FALSE(find(client::kServices, "dev"));
  EXPECT_EQ(told(), "");
}

class SandboxVolumeTest : public SandboxReconcilerTest {
 protected:
  static constexpr char kClaimSpec[] =
      "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}";

  std::string with_volume(std::string_view more = "") {
    return "{volumeClaimTemplates: [{metadata: {name: work}, spec: " + std::string(kClaimSpec) +
           "}]" + std::string(more) + "}";
  }
  Json claim() {
    return server_.client().get(client::kPersistentVolumeClaims, "default", "work-dev");
  }
  void make_claim(std::string_view labels, std::string_view owner) {
    make_child(client::kPersistentVolumeClaims, "work-dev", labels, owner, kClaimSpec);
  }
};

TEST_F(SandboxVolumeTest, OfNobodyIsAdoptedIfItMayBe) {
  make_claim(kAdoptable, "");
  make_sandbox(with_volume());
  pass();
  EXPECT_TRUE(model::is_controlled_by(claim(), model::uid_of(sandbox())));
  const std::string version(model::resource_version_of(claim()));
  pass();
  EXPECT_EQ(model::resource_version_of(claim()), version);
}

TEST_F(SandboxVolumeTest, ItsNameAloneMakesItNobodysToTake) {
  make_claim("{}", "");
  make_sandbox(with_volume());
  failing_pass();
  EXPECT_FALSE(model::controller_of(claim()));
}

TEST_F(SandboxVolumeTest, OutlivesItsSandboxAndServesTheNextOfThatName) {
  const std::string spec =
      with_volume(", persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}");
  make_sandbox(spec);
  pass();
  const std::string uid(model::uid_of(claim()));
  EXPECT_FALSE(model::controller_of(claim()));
  server_.client().remove(client::kSandboxes, "default", "dev");
  end_pod();
  settle();
  hasty_pass();

  make_sandbox(with_volume());
  pass();

  EXPECT_EQ(model::uid_of(claim()), uid);
  EXPECT_TRUE(model::is_controlled_by(claim(), model::uid_of(sandbox())));
  patch_sandbox("{spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}}}");
  pass();
  EXPECT_FALSE(model::controller_of(claim()));
  EXPECT_EQ(model::label_of(claim(), model::kNameHashLabel), kHash);
}

TEST_F(SandboxVolumeTest, TemplatesCannotChange) {
  make_sandbox(with_volume());
  EXPECT_EQ(apiserver::refusal([&] { patch_sandbox("{spec: {volumeClaimTemplates: null}}"); }).code,
            422u);
  EXPECT_EQ(
      apiserver::refusal([&] {
        patch_sandbox("{spec: {volumeClaimTemplates: [{metadata: {name: other}, spec: {}}]}}");
      }).code,
      422u);
}

}  // namespace
}  // namespace hearth::controllers
