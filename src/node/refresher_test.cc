// Files of running pods follow what they are made of, on the real API server.
#include "node/refresher.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/guarded.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/fake_runtime_internal.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;
using apiserver::eventually;
using apiserver::json;

// Remembers what the files of each mount are.
class FilesRuntime final : public FakeRuntime {
 public:
  void replace_files(const std::string& id, const runtime::MountSpec& tree) override {
    if (id != "box") fail(Code::not_found, "there is no sandbox '{}'", id);
    trees_.with([&](auto& trees) { trees[tree.target] = tree; });
  }
  // "(none)" where there is no such file.
  std::string content(const std::string& target, std::string_view path) {
    return trees_.with([&](auto& trees) {
      for (const runtime::MountFile& file : trees[target].files)
        if (file.path == path) return file.content;
      return std::string("(none)");
    });
  }

 private:
  Guarded<std::map<std::string, runtime::MountSpec>> trees_;
};

class RefresherTest : public testing::Test {
 protected:
  ~RefresherTest() override {
    refresher_.stop();
    pods_.stop();
  }

  client::Client& client() { return server_.client(); }
  void start() {
    pods_.start();
    ASSERT_TRUE(pods_.wait_synced(30s));
    refresher_.start();
  }
  void config(std::string_view name, std::string_view data) {
    client().create(client::kConfigMaps, json(fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap",
        "metadata":{{"name":"{}","namespace":"default"}},"data":{}}})",
                                                          name, data)));
  }
  void change(const client::ResourceId& kind, std::string_view name, std::string_view patch) {
    client().patch(kind, "default", name, client::PatchKind::merge, json(patch));
  }
  // A pod that runs in sandbox "box".
  Json run(std::string_view mounts, std::string_view volumes,
           std::string_view account = "default") {
    client().create(client::kPods, json(fmt::format(R"({{"apiVersion":"v1","kind":"Pod",
        "metadata":{{"name":"p","namespace":"default","labels":{{"app":"web"}}}},
        "spec":{{"nodeName":"here","serviceAccountName":"{}","automountServiceAccountToken":false,
          "containers":[{{"name":"main","image":"host","volumeMounts":{}}}],"volumes":{}}}}})",
                                                    account, mounts, volumes)));
    client().patch(client::kPods, "default", "p", client::PatchKind::merge,
                   json(R"({"status":{"phase":"Running","containerStatuses":[{"name":"main",
        "image":"host","imageID":"","ready":true,"restartCount":0,
        "containerID":"hearth://box","state":{"running":{}}}]}})"),
                   {.subresource = "status"});
    return client().get(client::kPods, "default", "p");
  }

  apiserver::TestServer server_;
  ManualClock clock_{SystemClock().now()};
  FilesRuntime runtime_;
  Planner planner_{server_.client(), {.node_name = "here", .clock = &clock_}};
  reconcile::EventRecorder events_{server_.client(), clock_, {.controller = "test"}};
  client::WatchCache pods_{server_.client(), client::kPods};
  Refresher refresher_{server_.client(), runtime_, planner_, pods_, events_};
  const model::Key key_{"default", "p"};
};

TEST_F(RefresherTest, ConfigMapsAndSecretsAreFollowed) {
  start();
  config("c", R"({"color":"red"})");
  run(R"([{"name":"c","mountPath":"/c/"},{"name":"all","mountPath":"/all"},
          {"name":"c","mountPath":"/one","subPath":"color"}])",
      R"([{"name":"c","configMap":{"name":"c"}},{"name":"all","projected":{"sources":[
          {"secret":{"name":"later","optional":true}},{"configMap":{"name":"c"}}]}}])");
  change(client::kConfigMaps, "c", R"({"data":{"color":"blue"}})");
  EXPECT_TRUE(eventually([&] { return runtime_.content("/c", "color") == "blue"; }))
      << "a new colour";
  EXPECT_TRUE(eventually([&] { return runtime_.content("/all", "color") == "blue"; }))
      << "the same, projected";
  EXPECT_EQ(runtime_.content("/one", "color"), "(none)");  // a subPath stays
  client().create(client::kSecrets, json(R"({"apiVersion":"v1","kind":"Secret",
      "metadata":{"name":"later","namespace":"default"},"stringData":{"key":"hush"}})"));
  EXPECT_TRUE(eventually([&] { return runtime_.content("/all", "key") == "hush"; }))
      << "a secret that came later";
  client().remove(client::kSecrets, "default", "later");
  EXPECT_TRUE(eventually([&] { return runtime_.content("/all", "key") == "(none)"; }))
      << "it to go again";
}

TEST_F(RefresherTest, APodsOwnLabelsAreFollowed) {
  start();
  run(R"([{"name":"d","mountPath":"/d"}])",
      R"([{"name":"d","downwardAPI":{"items":[
          {"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}])");
  change(client::kPods, "p", R"({"metadata":{"labels":{"app":"shop"}}})");
  EXPECT_TRUE(eventually([&] { return runtime_.content("/d", "labels") == "app=\"shop\""; }))
      << "a new label";
}

TEST_F(RefresherTest, WhatIsGoneStaysInsideAndIsTold) {
  config("c", R"({"color":"red"})");
  run(R"([{"name":"gone","mountPath":"/gone"},{"name":"c","mountPath":"/c"}])",
      R"([{"name":"gone","configMap":{"name":"gone"}},{"name":"c","configMap":{"name":"c"}}])");
  pods_.start();
  ASSERT_TRUE(pods_.wait_synced(30s));
  EXPECT_TRUE(refresher_.reconcile(key_).has_value());  // again in a minute
  EXPECT_EQ(runtime_.content("/c", "color"), "red");
  EXPECT_EQ(runtime_.content("/gone", "color"), "(none)");
  events_.flush();
  const auto events = client().list_all(client::kEvents, {.ns = "default"}).items;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(model::text_at(events[0], {"reason"}), "FailedMount");
  EXPECT_EQ(model::text_at(events[0], {"note"}), "configmap \"gone\" not found");
  EXPECT_FALSE(refresher_.reconcile({"default", "nobody"}));
}

TEST_F(RefresherTest, TokensAreRenewedInGoodTimeAndNotBefore) {
  client().create(client::kServiceAccounts, json(R"({"apiVersion":"v1","kind":"ServiceAccount",
      "metadata":{"name":"worker","namespace":"default"}})"));
  run(R"([{"name":"t","mountPath":"/t"}])",
      R"([{"name":"t","projected":{"sources":[
          {"serviceAccountToken":{"path":"token","audience":"vault","expirationSeconds":1000}}]}}])",
      "worker");
  pods_.start();
  ASSERT_TRUE(pods_.wait_synced(30s));
  const auto token = [&] {
    refresher_.reconcile(key_);
    return runtime_.content("/t", "token");
  };
  const std::string first = token();
  EXPECT_EQ(std::ranges::count(first, '.'), 2);
  clock_.advance(790s);
  EXPECT_EQ(token(), first);
  clock_.advance(20s);
  const std::string second = token();
  EXPECT_NE(second, first);
  clock_.advance(20s);
  EXPECT_EQ(token(), second);
  // One that cannot be renewed serves to its end, and stays inside after that.
  client().remove(client::kServiceAccounts, "default", "worker");
  clock_.advance(900s);
  EXPECT_EQ(token(), second);
  events_.flush();
  EXPECT_TRUE(client().list_all(client::kEvents, {.ns = "default"}).items.empty());
  clock_.advance(200s);
  EXPECT_EQ(token(), second);
  events_.flush();
  EXPECT_EQ(client().list_all(client::kEvents, {.ns = "default"}).items.size(), 1u);
}

}  // namespace
}  // namespace hearth::node
