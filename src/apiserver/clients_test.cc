// Both clients, the one in the process and the one over HTTPS, see the same API; the watch cache
// works with either.
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/http_client.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "model/meta.h"
#include "model/status.h"

namespace hearth::apiserver {
namespace {

using client::HttpClient;
using client::ResourceId;
using client::WatchCache;
using model::Json;
using model::text_at;
using namespace std::chrono_literals;

const ResourceId kConfigMaps{"", "v1", "configmaps"};

Json config_map(const std::string& name, const std::string& value = "1") {
  Json object = model::parse_json(R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"namespace":"default","labels":{"test":"yes"}}})")
                    .value;
  model::make_object_at(object, {"metadata"})["name"] = name;
  model::make_object_at(object, {"data"})["a"] = value;
  return object;
}

enum class Way { local, http };

class ClientsTest : public testing::TestWithParam<Way> {
 protected:
  ClientsTest() {
    server_->start();
    http_.emplace(client::load_kubeconfig({server_->kubeconfig_path()}));
  }
  client::Client& api() {
    if (GetParam() == Way::http) return *http_;
    return server_.client();
  }

  TestServer server_;
  std::optional<HttpClient> http_;
};

// What is written, what a watch tells of and what the next one reads is one tree, never read again.
TEST(LocalClientTest, SharesItsTrees) {
  TestServer server;
  WatchCache cache{server.client(), kConfigMaps};
  cache.start();
  ASSERT_TRUE(cache.wait_synced(10s));

  const client::Object made = server.client().create(kConfigMaps, config_map("x"));
  ASSERT_TRUE(eventually([&] { return cache.find("default", "x") != nullptr; }));
  EXPECT_EQ(cache.find("default", "x"), made);
  const client::Object read = server.client().get(kConfigMaps, "default", "x");
  EXPECT_EQ(read, made);

  Json next = *made;
  next.at("data").as_object()["a"] = "2";
  server.client().update(kConfigMaps, next);
  EXPECT_EQ(text_at(*made, {"data", "a"}), "1");
}

// Programs of this process have no use for managedFields, and need not send what they did not get.
TEST(LocalClientTest, LeavesOutWhoOwnsWhat) {
  TestServer server;
  server->start();
  const auto managers = [&] {
    HttpClient http(client::load_kubeconfig({server->kubeconfig_path()}));
    std::string text;
    const Json object = http.get(kConfigMaps, "default", "x");
    for (const Json& entry : *model::array_at(object, {"metadata", "managedFields"}))
      text += std::string(text_at(entry, {"manager"})) + ' ';
    return text;
  };
  Json made = server.client().create(kConfigMaps, config_map("x"), {.manager = "a"});
  EXPECT_EQ(model::find(made, {"metadata", "managedFields"}), nullptr);
  model::make_object_at(made, {"data"})["b"] = "2";
  server.client().update(kConfigMaps, made, "", {.manager = "b"});
  EXPECT_EQ(managers(), "a b ");

  // Read from the text, as after a restart.
  server.reopen();
  server->start();
  const Json read = server.client().get(kConfigMaps, "default", "x");
  EXPECT_EQ(model::find(read, {"metadata", "managedFields"}), nullptr);
  server.client().patch(kConfigMaps, "default", "x", client::PatchKind::merge,
                        model::parse_json(R"({"data":{"c":"3"}})").value, {.manager = "c"});
  EXPECT_EQ(managers(), "a b c ");
}

// Text that is none would be on the disk for good: nobody could read the object again.
TEST(LocalClientTest, RefusesWhatCouldNotBeReadAgain) {
  TestServer server;
  EXPECT_EQ(refusal([&] { server.client().create(kConfigMaps, config_map("x", "\xFF")); }).code,
            400);
  server.client().create(kConfigMaps, config_map("y"));
  const Json patch = model::JsonObject{{"data", model::JsonObject{{"a", "\xC3"}}}};
  EXPECT_EQ(refusal([&] {
              server.client().patch(kConfigMaps, "default", "y", client::PatchKind::merge, patch);
            }).code,
            400);
}

// What the engine has checked itself is written as by any other patch, but for the rules.
class CheckedPatchTest : public testing::Test {
 protected:
  CheckedPatchTest() {
    server_.client().create(client::kSandboxes, model::parse_json(R"({
        "apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
        "metadata":{"name":"s","namespace":"default","labels":{"pool":"p"}},
        "spec":{"podTemplate":{"spec":{"containers":[{"name":"c","image":"i"}]}}}})")
                                                    .value);
  }
  Json patch(std::string_view text, const client::PatchOptions& options) {
    return server_.client().patch(client::kSandboxes, "default", "s", client::PatchKind::merge,
                                  model::parse_json(text).value, options);
  }
  Json put_label(const std::string& value) {
    return patch(fmt::format(R"({{"metadata":{{"labels":{{"x":"{}"}}}}}})", value),
                 {.is_checked = true});
  }

  TestServer server_;
};

TEST_F(CheckedPatchTest, ItIsKeptWithItsOwnersAndAsksNoRule) {
  const Json now = put_label("no label, but who checked it said so");
  EXPECT_EQ(model::label_of(now, "x"), "no label, but who checked it said so");
  EXPECT_EQ(model::label_of(now, "pool"), "p");

  server_->start();
  HttpClient http(client::load_kubeconfig({server_->kubeconfig_path()}));
  const Json shown = http.get(client::kSandboxes, "default", "s");
  const model::JsonArray& owners = *model::array_at(shown, {"metadata", "managedFields"});
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(text_at(owners[0], {"manager"}), "hearth");
  EXPECT_NE(model::find(owners[0], {"fieldsV1", "f:metadata", "f:labels", "f:x"}), nullptr);
}

TEST_F(CheckedPatchTest, WhoeverIsLateIsTold) {
  const Json first = patch(R"({"spec":{"operatingMode":"Suspended"}})", {});
  put_label("one");
  EXPECT_EQ(refusal([&] {
              patch(fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})",
                                model::resource_version_of(first)),
                    {.is_checked = true});
            }).reason,
            "Conflict");
  server_.client().remove(client::kSandboxes, "default", "s");
  EXPECT_EQ(refusal([&] { put_label("two"); }).code, 404);
}

// Read from the text, nobody vouches for it any more.
TEST_F(CheckedPatchTest, ObjectsThatNobodyHasCheckedAreCheckedWhole) {
  server_.reopen();
  EXPECT_EQ(refusal([&] { put_label("no label"); }).code, 422);
  put_label("label");
}

TEST_P(ClientsTest, ReadsAndWrites) {
  Json made = api().create(kConfigMaps, config_map("x"));
  EXPECT_EQ(text_at(made, {"kind"}), "ConfigMap");
  model::make_object_at(made, {"data"})["a"] = "2";
  const Json updated = api().update(kConfigMaps, made);
  EXPECT_EQ(text_at(updated, {"data", "a"}), "2");
  EXPECT_EQ(refusal([&] { api().update(kConfigMaps, made); }).reason, "Conflict");

  const Json patched = api().patch(kConfigMaps, "default", "x", client::PatchKind::merge,
                                   model::parse_json(R"({"data":{"b":"3"}})").value);
  EXPECT_EQ(text_at(patched, {"data", "b"}), "3");
  const Json applied = api().patch(kConfigMaps, "default", "y", client::PatchKind::apply,
                                   config_map("y"), {.manager = "me"});
  EXPECT_EQ(text_at(applied, {"metadata", "name"}), "y");
  EXPECT_EQ(api().get(kConfigMaps, "default", "x"), patched);

  api().remove(kConfigMaps, "default", "x");
  EXPECT_FALSE(api().find(kConfigMaps, "default", "x"));
  EXPECT_EQ(refusal([&] { api().get(kConfigMaps, "default", "x"); }).message,
            "configmaps \"x\" not found");
}

TEST_P(ClientsTest, ListsInPages) {
  for (const char* name : {"a", "b", "c"}) api().create(kConfigMaps, config_map(name));

  const client::List page =
      api().list(kConfigMaps, {.ns = "default", .label_selector = "test=yes", .limit = 2});
  EXPECT_EQ(page.items.size(), 2U);
  EXPECT_FALSE(page.continue_token.empty());

  const client::List all =
      api().list_all(kConfigMaps, {.label_selector = "test in (yes)", .limit = 2});
  ASSERT_EQ(all.items.size(), 3U);
  EXPECT_EQ(text_at(all.items[2], {"kind"}), "ConfigMap");
  EXPECT_EQ(text_at(all.items[2], {"metadata", "name"}), "c");
  EXPECT_EQ(refusal([&] { api().list(kConfigMaps, {.label_selector = "=="}); }).code, 400U);
}

TEST_P(ClientsTest, AWatchEndsByItselfAndWhenAsked) {
  EXPECT_EQ(api().watch(kConfigMaps, {.timeout = 1s}, [](const client::Event&) {}, {}),
            client::WatchEnd::closed);

  std::stop_source source;
  std::latch heard{1};
  auto end = std::async(std::launch::async, [&] {
    const auto handler = [&](const client::Event& event) {
      if (text_at(*event.object, {"metadata", "name"}) == "x") heard.count_down();
    };
    return api().watch(kConfigMaps, {.resource_version = "0"}, handler, source.get_token());
  });
  api().create(kConfigMaps, config_map("x"));
  heard.wait();
  source.request_stop();
  EXPECT_EQ(end.get(), client::WatchEnd::stopped);
}

TEST_P(ClientsTest, AWatchCacheFollows) {
  api().create(kConfigMaps, config_map("old"));
  WatchCache cache(api(), kConfigMaps, {.ns = "default", .label_selector = "test"});
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard;
  const auto note = [&](const char* what, const client::Object& object) {
    const std::lock_guard lock(mutex);
    heard.push_back(what + std::string(text_at(*object, {"metadata", "name"})));
    changed.notify_all();
  };
  cache.add_handlers({
      .on_add = [&](const client::Object& now) { note("+", now); },
      .on_update = [&](const client::Object&, const client::Object& now) { note("~", now); },
      .on_delete = [&](const client::Object& last) { note("-", last); },
  });
  cache.start();
  ASSERT_TRUE(cache.wait_synced(20s));
  EXPECT_TRUE(cache.find("default", "old"));

  Json made = api().create(kConfigMaps, config_map("new"));
  model::make_object_at(made, {"data"})["a"] = "2";
  api().update(kConfigMaps, made);
  api().remove(kConfigMaps, "default", "old");
  // Out of the selection is out of the cache.
  api().patch(kConfigMaps, "default", "new", client::PatchKind::merge,
              model::parse_json(R"({"metadata":{"labels":null}})").value);

  std::unique_lock lock(mutex);
  const std::vector<std::string> expected{"+old", "+new", "~new", "-old", "-new"};
  EXPECT_TRUE(changed.wait_for(lock, 20s, [&] { return heard.size() >= expected.size(); }));
  EXPECT_EQ(heard, expected);
  EXPECT_TRUE(cache.list().empty());
}

TEST_P(ClientsTest, AWrongTokenIsRefused) {
  client::ClusterAccess access = client::load_kubeconfig({server_->kubeconfig_path()});
  access.token = "wrong";
  access.certificate = {};
  access.key = {};
  HttpClient stranger(access);
  EXPECT_EQ(refusal([&] { stranger.get(kConfigMaps, "default", "x"); }).reason, "Unauthorized");
}

INSTANTIATE_TEST_SUITE_P(Both, ClientsTest, testing::Values(Way::local, Way::http),
                         [](const auto& info) {
                           return info.param == Way::local ? "local" : "http";
                         });

}  // namespace
}  // namespace hearth::apiserver
