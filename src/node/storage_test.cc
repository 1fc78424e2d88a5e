// The provisioner, images, and the Node, on the real API server.
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/base64.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/fake_runtime_internal.h"
#include "node/images.h"
#include "node/node_object.h"
#include "node/provisioner.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using model::text_at;

class Claims : public testing::Test {
 protected:
  client::Client& client() { return server_.client(); }
  Json claim(std::string_view spec = "", std::string_view size = "1Gi") {
    provisioner_.furnish();
    return client().create(client::kPersistentVolumeClaims,
                           json(fmt::format(R"({{"apiVersion":"v1","kind":"PersistentVolumeClaim",
            "metadata":{{"name":"data","namespace":"default"}},
            "spec":{{"accessModes":["ReadWriteOnce"],
            "resources":{{"requests":{{"storage":"{}"}}}}{}}}}})",
                                            size, spec)));
  }
  Json now() { return client().get(client::kPersistentVolumeClaims, "default", "data"); }
  void remove_claim() {
    // What the server's housekeeper takes off when no pod uses it.
    client().patch(client::kPersistentVolumeClaims, "default", "data", client::PatchKind::merge,
                   json(R"({"metadata":{"finalizers":null}})"));
    client().remove(client::kPersistentVolumeClaims, "default", "data");
  }

  apiserver::TestServer server_;
  FakeRuntime runtime_;
  Provisioner provisioner_{server_.client(), runtime_, nullptr, {.node_name = "here"}};
  Reclaimer reclaimer_{server_.client(), runtime_};
  const model::Key key_{"default", "data"};
};

TEST_F(Claims, GetAVolumeOfTheirSizeAndTakeItAlong) {
  const std::string name = "pvc-" + std::string(model::uid_of(claim()));
  provisioner_.reconcile(key_);
  EXPECT_EQ(runtime_.volumes, (std::map<std::string, std::uint64_t>{{name, 1u << 30}}));
  const Json bound = now();
  EXPECT_EQ(text_at(bound, {"status", "phase"}), "Bound");
  EXPECT_EQ(text_at(bound, {"status", "capacity", "storage"}), "1Gi");
  EXPECT_EQ(text_at(bound, {"spec", "volumeName"}), name);
  EXPECT_EQ(text_at(bound, {"spec", "storageClassName"}), kStorageClass);
  const Json volume = client().get(client::kPersistentVolumes, "", name);
  EXPECT_EQ(text_at(volume, {"status", "phase"}), "Bound");
  EXPECT_EQ(text_at(volume, {"spec", "csi", "volumeHandle"}), name);
  provisioner_.reconcile(key_);  // again: nothing
  reclaimer_.reconcile({"", name});
  EXPECT_EQ(runtime_.volumes.size(), 1u);

  const std::vector<model::Key> concerned = volumes_of_claim(bound);
  ASSERT_EQ(concerned.size(), 1u);
  remove_claim();
  runtime_.used.insert(name);
  EXPECT_TRUE(reclaimer_.reconcile(concerned[0]));  // to be tried again
  EXPECT_EQ(text_at(client().get(client::kPersistentVolumes, "", name), {"status", "phase"}),
            "Released");
  runtime_.used.clear();
  reclaimer_.reconcile(concerned[0]);
  EXPECT_TRUE(runtime_.volumes.empty());
  EXPECT_FALSE(client().find(client::kPersistentVolumes, "", name));
}

TEST_F(Claims, ARetainedVolumeStays) {
  client().create(
      client::kStorageClasses,
      json(fmt::format(
          R"({{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{{"name":"keep"}},
      "provisioner":"{}","reclaimPolicy":"Retain"}})",
          kProvisioner)));
  claim(R"(,"storageClassName":"keep")");
  provisioner_.reconcile(key_);
  const std::string name(text_at(now(), {"spec", "volumeName"}));
  remove_claim();
  reclaimer_.reconcile({"", name});
  EXPECT_EQ(runtime_.volumes.size(), 1u);
  EXPECT_EQ(text_at(client().get(client::kPersistentVolumes, "", name), {"status", "phase"}),
            "Released");
  client().remove(client::kPersistentVolumes, "", name);
  reclaimer_.reconcile({"", name});
  EXPECT_FALSE(client().find(client::kPersistentVolumes, "", name));
  EXPECT_EQ(runtime_.volumes.size(), 1u);  // what is on it is the owner's to remove
}

TEST_F(Claims, OfOthersAreLeftAlone) {
  claim(R"(,"storageClassName":"other")");
  provisioner_.reconcile(key_);
  EXPECT_EQ(text_at(now(), {"status", "phase"}), "Pending");
  EXPECT_TRUE(runtime_.volumes.empty());
}

TEST_F(Claims, OfAnImpossibleSizeLeaveNothingBehind) {
  claim("", "1Pi");
  EXPECT_THROW(provisioner_.reconcile(key_), Error);
  EXPECT_EQ(text_at(now(), {"status", "phase"}), "Pending");
  EXPECT_TRUE(runtime_.volumes.empty());
}

TEST_F(Claims, GetAVolumeWithoutALimitWhereThereAreNone) {
  runtime_.has_sizes = false;
  claim();
  provisioner_.reconcile(key_);
  ASSERT_EQ(runtime_.volumes.size(), 1u);
  EXPECT_EQ(runtime_.volumes.begin()->second, 0u);
}

// --- images

class FakeSource final : public ImageSource {
 public:
  std::vector<image::Image> list() override {
    const std::lock_guard lock(mutex);
    return images;
  }
  image::Image pull(const registry::Reference& reference,
                    const registry::DockerConfig& credentials) override {
    std::unique_lock lock(mutex);
    ++pulls;
    seen = credentials;
    opened.wait(lock, [&] { return is_open; });
    if (!problem.empty()) fail(Code::not_found, "{}", problem);
    image::Image image;
    image.name = reference.text();
    image.bytes = 7;
    images.push_back(image);
    return image;
  }

  std::mutex mutex;
  std::condition_variable opened;
  bool is_open = true;
  std::vector<image::Image> images;
  registry::DockerConfig seen;
  std::string problem;
  int pulls = 0;
};

class Pulling : public testing::Test {
 protected:
  static Json container(std::string_view image, std::string_view policy = "IfNotPresent") {
    return json(
        fmt::format(R"({{"name":"c","image":"{}","imagePullPolicy":"{}"}})", image, policy));
  }

  apiserver::TestServer server_;
  FakeSource source_;
  ManualClock clock_;
  Images images_{server_.client(), source_, clock_};
  const Json pod_ = json(R"({"metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{}})");
};

TEST_F(Pulling, TheHostIsAlwaysThere) {
  const auto outcome = images_.look(pod_, container("host", "Always"));
  ASSERT_TRUE(outcome && outcome->image);
  EXPECT_EQ(outcome->image->name, "host");
  EXPECT_EQ(source_.pulls, 0);
}

TEST_F(Pulling, PoliciesAreKept) {
  EXPECT_EQ(images_.ensure(pod_, container("tool:1", "Never")).reason, "ErrImageNeverPull");
  EXPECT_EQ(images_.ensure(pod_, container("Not An Image")).reason, "InvalidImageName");
  EXPECT_FALSE(images_.look(pod_, container("tool:1")));
  const ImageOutcome pulled = images_.ensure(pod_, container("tool:1"));
  ASSERT_TRUE(pulled.image);
  EXPECT_TRUE(pulled.pulled);
  EXPECT_EQ(pulled.image->name, "docker.io/library/tool:1");
  EXPECT_TRUE(images_.look(pod_, container("tool:1")));
  EXPECT_TRUE(images_.look(pod_, container("docker.io/library/tool:1", "Never"))->image);
  EXPECT_EQ(source_.pulls, 1);
  clock_.advance(60s);
  EXPECT_TRUE(images_.ensure(pod_, container("tool:1", "Always")).pulled);
  EXPECT_EQ(source_.pulls, 2);
  EXPECT_FALSE(images_.ensure(pod_, container("tool:1", "Always")).pulled);  // a moment ago
  EXPECT_EQ(source_.pulls, 2);
}

TEST_F(Pulling, FailuresAreTriedAgainLessAndLessOften) {
  source_.problem = "there is no such tag";
  const ImageOutcome first = images_.ensure(pod_, container("tool:1"));
  EXPECT_EQ(first.reason, "ErrImagePull");
  EXPECT_NE(first.message.find("there is no such tag"), std::string::npos);
  EXPECT_EQ(first.event_reason, "Failed");
  EXPECT_EQ(first.event, "Failed to pull image \"tool:1\": there is no such tag");
  const ImageOutcome second = images_.ensure(pod_, container("tool:1"));
  EXPECT_EQ(second.reason, "ImagePullBackOff");
  EXPECT_EQ(second.event_reason, "BackOff");
  EXPECT_EQ(second.event, "Back-off pulling image \"tool:1\"");
  EXPECT_TRUE(second.message.starts_with("Back-off pulling image \"tool:1\"")) << second.message;
  EXPECT_EQ(second.retry_after, 10s);
  EXPECT_EQ(source_.pulls, 1);
  clock_.advance(10s);
  EXPECT_EQ(images_.ensure(pod_, container("tool:1")).reason, "ErrImagePull");
  EXPECT_EQ(images_.ensure(pod_, container("tool:1")).retry_after, 20s);
  for (int i = 0; i < 8; ++i) {
    clock_.advance(300s);
    images_.ensure(pod_, container("tool:1"));
  }
  EXPECT_EQ(images_.ensure(pod_, container("tool:1")).retry_after, 300s);
  images_.forget("u");
  source_.problem.clear();
  EXPECT_TRUE(images_.ensure(pod_, container("tool:1")).image);
}

TEST_F(Pulling, OnePullServesAllWhoWait) {
  source_.is_open = false;
  std::vector<std::jthread> waiting;
  std::atomic<int> served = 0;
  for (int i = 0; i < 4; ++i)
    waiting.emplace_back(
        [&] { served += images_.ensure(pod_, container("tool:1")).image ? 1 : 0; });
  {
    const std::lock_guard lock(source_.mutex);
    source_.is_open = true;
  }
  source_.opened.notify_all();
  waiting.clear();
  EXPECT_EQ(served, 4);
  EXPECT_EQ(source_.pulls, 1);
}

TEST_F(Pulling, SecretsOfThePodAreUsed) {
  const std::string config = R"({"auths":{"registry.test":{"auth":")" + base64_encode("me:pw") +
                             R"("}},"credsStore":"evil"})";
  server_.client().create(
      client::kSecrets,
      json(fmt::format(
          R"({{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/dockerconfigjson",
      "metadata":{{"name":"regcred","namespace":"default"}},
      "data":{{".dockerconfigjson":"{}"}}}})",
          base64_encode(config))));
  const Json pod = json(R"({"metadata":{"name":"p","namespace":"default","uid":"u"},
      "spec":{"imagePullSecrets":[{"name":"missing"},{"name":"regcred"}]}})");
  EXPECT_TRUE(images_.ensure(pod, container("registry.test/app:1")).image);
  ASSERT_EQ(source_.seen.entries.size(), 1u);
  EXPECT_EQ(source_.seen.entries[0].credentials.password, "pw");
  EXPECT_TRUE(source_.seen.store.empty());  // no program of ours for their words
}

// --- the Node

TEST(NodeObject, IsMadeKeptAndMissed) {
  apiserver::TestServer server;
  ManualClock clock;
  NodeReporterOptions options;
  options.facts = read_node_facts("/");
  options.facts.name = "here";
  options.facts.address = "192.0.2.1";
  NodeReporter reporter(server.client(), clock, options);
  reporter.report();
  const Json node = server.client().get(client::kNodes, "", "here");
  EXPECT_TRUE(model::is_condition_true(node, "Ready"));
  EXPECT_EQ(model::label_of(node, "kubernetes.io/hostname"), "here");
  EXPECT_FALSE(text_at(node, {"status", "allocatable", "memory"}).empty());
  EXPECT_EQ(text_at(node, {"status", "capacity", "cpu"}), std::to_string(options.facts.cpus));
  EXPECT_FALSE(text_at(node, {"status", "nodeInfo", "kernelVersion"}).empty());
  EXPECT_TRUE(model::is_true_at(node, {"status", "features", "supplementalGroupsPolicy"}));

  clock.advance(10s);
  reporter.report();  // nothing new
  EXPECT_EQ(model::resource_version_of(server.client().get(client::kNodes, "", "here")),
            model::resource_version_of(node));
  clock.advance(5min);
  reporter.report();
  const Json later = server.client().get(client::kNodes, "", "here");
  EXPECT_NE(model::resource_version_of(later), model::resource_version_of(node));
  EXPECT_EQ(text_at(*model::find_condition(later, "Ready"), {"lastTransitionTime"}),
            text_at(*model::find_condition(node, "Ready"), {"lastTransitionTime"}));

  server.client().remove(client::kNodes, "", "here");
  reporter.report();
  EXPECT_TRUE(model::is_condition_true(server.client().get(client::kNodes, "", "here"), "Ready"));
}

TEST(NodeObject, WhatIsShortKeepsPodsAway) {
  apiserver::TestServer server;
  ManualClock clock;
  NodePressure pressure;
  NodeReporterOptions options;
  options.facts.name = "here";
  options.pressure = [&] { return pressure; };
  options.taints = true;
  const auto node = [&] { return server.client().get(client::kNodes, "", "here"); };
  const auto taints = [&] {
    const Json now = node();
    const Json* all = model::find(now, {"spec", "taints"});
    return all == nullptr ? std::string("none") : model::to_text(*all);
  };
  const auto report = [&] {
    NodeReporter reporter(server.client(), clock, options);
    reporter.start();
  };
  report();
  EXPECT_EQ(taints(), "none");
  server.client().patch(client::kNodes, "", "here", client::PatchKind::merge,
                        json(R"({"spec":{"taints":[{"key":"mine","effect":"NoExecute"}]}})"));
  pressure[Supply::memory] = true;
  report();
  EXPECT_TRUE(model::is_condition_true(node(), "MemoryPressure"));
  EXPECT_FALSE(model::is_condition_true(node(), "DiskPressure"));
  EXPECT_EQ(taints(), R"([{"key":"mine","effect":"NoExecute"},)"
                      R"({"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}])");
  pressure = {};
  report();
  EXPECT_FALSE(model::is_condition_true(node(), "MemoryPressure"));
  EXPECT_EQ(taints(), R"([{"key":"mine","effect":"NoExecute"}])");
}

TEST(NodeObject, ItsLeaseIsRenewed) {
  apiserver::TestServer server;
  ManualClock clock;
  NodeReporterOptions options;
  options.facts.name = "here";
  NodeReporter reporter(server.client(), clock, options);
  reporter.renew_lease();
  const Json first = server.client().get(client::kLeases, "kube-node-lease", "here");
  EXPECT_EQ(text_at(first, {"spec", "holderIdentity"}), "here");
  clock.advance(10s);
  reporter.renew_lease();
  const Json second = server.client().get(client::kLeases, "kube-node-lease", "here");
  EXPECT_NE(text_at(first, {"spec", "renewTime"}), text_at(second, {"spec", "renewTime"}));
}

}  // namespace
}  // namespace hearth::node
