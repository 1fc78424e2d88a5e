// The rules of the API, through the in-process client of a real server on a real store.
#include "apiserver/server.h"

#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"

namespace hearth::apiserver {
namespace {

using client::ResourceId;
using model::Json;
using model::text_at;
using model::to_text;

const ResourceId kConfigMaps{"", "v1", "configmaps"};
const ResourceId kPods{"", "v1", "pods"};
const ResourceId kNamespaces{"", "v1", "namespaces", false};
const ResourceId kSandboxes{"agents.x-k8s.io", "v1beta1", "sandboxes"};
const ResourceId kOldSandboxes{"agents.x-k8s.io", "v1alpha1", "sandboxes"};
const ResourceId kPools{"extensions.agents.x-k8s.io", "v1beta1", "sandboxwarmpools"};
const ResourceId kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false};

Json sandbox(const std::string& name) {
  Json object = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "metadata":{"namespace":"default"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
  model::make_object_at(object, {"metadata"})["name"] = name;
  return object;
}

Json config_map(const std::string& name) {
  Json object = json(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"},"data":{"a":"1"}})");
  model::make_object_at(object, {"metadata"})["name"] = name;
  return object;
}

class ServerTest : public testing::Test {
 protected:
  client::Client& api() { return server_.client(); }

  // The housekeeper works behind the answers; it needs a started server.
  template <typename F>
  bool comes_true(F condition) {
    for (int attempt = 0; attempt < 500; ++attempt) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  TestServer server_;
};

TEST_F(ServerTest, FillsInWhatTheSchemaAndTheServerAddToANewObject) {
  const Json made = api().create(kSandboxes, sandbox("a"));

  EXPECT_EQ(text_at(made, {"spec", "operatingMode"}), "Running");
  EXPECT_EQ(model::number_at(made, {"metadata", "generation"}), 1);
  EXPECT_EQ(text_at(made, {"metadata", "uid"}).size(), 36U);
  EXPECT_EQ(to_text(made), to_text(api().get(kSandboxes, "default", "a")));
}

TEST_F(ServerTest, RefusesASecondOneOfAName) {
  api().create(kSandboxes, sandbox("a"));

  const model::Status status = refusal([&] { api().create(kSandboxes, sandbox("a")); });

  EXPECT_EQ(status.reason, "AlreadyExists");
  EXPECT_EQ(status.message, "sandboxes.agents.x-k8s.io \"a\" already exists");
}

TEST_F(ServerTest, RefusesWhatTheSchemaForbids) {
  Json bad = sandbox("a");
  model::make_object_at(bad, {"spec"})["operatingMode"] = "Nope";

  const model::Status status = refusal([&] { api().create(kSandboxes, bad); });

  EXPECT_EQ(status.code, 422U);
  ASSERT_FALSE(status.causes.empty());
  EXPECT_EQ(status.causes[0].message,
            "Unsupported value: \"Nope\": supported values: \"Running\", \"Suspended\"");
}

TEST_F(ServerTest, MakesUpNames) {
  Json object = sandbox("");
  model::make_object_at(object, {"metadata"}).erase("name");
  model::make_object_at(object, {"metadata"})["generateName"] = "gen-";

  const std::string name(text_at(api().create(kSandboxes, object), {"metadata", "name"}));

  EXPECT_EQ(name.size(), 9U);
  EXPECT_TRUE(name.starts_with("gen-"));
}

TEST_F(ServerTest, HoldsUpdatesToTheRevisionTheirWriterSaw) {
  const Json first = api().create(kSandboxes, sandbox("a"));
  Json second = first;
  model::make_object_at(second, {"spec"})["service"] = true;
  const Json written = api().update(kSandboxes, second);

  Json stale = first;
  model::make_object_at(stale, {"spec"})["service"] = false;

  EXPECT_EQ(refusal([&] { api().update(kSandboxes, stale); }).reason, "Conflict");
  EXPECT_EQ(model::number_at(written, {"metadata", "generation"}), 2);
}

TEST_F(ServerTest, KeepsTheRevisionOfAnUpdateThatChangesNothing) {
  const Json made = api().create(kSandboxes, sandbox("a"));

  const Json again = api().update(kSandboxes, made);

  EXPECT_EQ(to_text(again), to_text(made));
}

TEST_F(ServerTest, KeepsStatusAndSpecApart) {
  api().create(kSandboxes, sandbox("a"));

  const Json status = api().patch(
      kSandboxes, "default", "a", client::PatchKind::merge,
      json(
          R"({"metadata":{"labels":{"x":"1"}},"spec":{"service":true},"status":{"nodeName":"n"}})"),
      {.subresource = "status"});
  const Json spec = api().patch(kSandboxes, "default", "a", client::PatchKind::merge,
                                json(R"({"status":{"nodeName":"other"}})"));

  EXPECT_EQ(text_at(status, {"status", "nodeName"}), "n");
  EXPECT_EQ(model::find(status, {"spec", "service"}), nullptr);
  EXPECT_EQ(model::find(status, {"metadata", "labels"}), nullptr);
  EXPECT_EQ(model::number_at(status, {"metadata", "generation"}), 1);
  EXPECT_EQ(text_at(spec, {"status", "nodeName"}), "n");
}

TEST_F(ServerTest, AppliesAndRemembersWhoOwnsWhat) {
  const auto configuration = [](const char* image) {
    return json(fmt::format(
        R"({{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{{"name":"a"}},
      "spec":{{"podTemplate":{{"spec":{{"containers":[{{"name":"main","image":"{}"}}]}}}}}}}})",
        image));
  };
  const client::PatchOptions one{.subresource = {}, .manager = "one"};
  const client::PatchOptions two{.subresource = {}, .manager = "two"};
  const Json made =
      api().patch(kSandboxes, "default", "a", client::PatchKind::apply, configuration("x"), one);
  const Json again =
      api().patch(kSandboxes, "default", "a", client::PatchKind::apply, configuration("x"), one);

  const model::Status conflict = refusal([&] {
    api().patch(kSandboxes, "default", "a", client::PatchKind::apply, configuration("y"), two);
  });
  client::PatchOptions forced = two;
  forced.force = true;
  api().patch(kSandboxes, "default", "a", client::PatchKind::apply, configuration("y"), forced);

  EXPECT_EQ(to_text(again), to_text(made));
  EXPECT_EQ(conflict.message,
            "Apply failed with 1 conflict: conflict with \"one\": "
            ".spec.podTemplate.spec.containers[name=\"main\"].image");
  EXPECT_EQ(refusal([&] {
              api().patch(kSandboxes, "default", "a", client::PatchKind::apply, configuration("x"),
                          one);
            }).message,
            "Apply failed with 1 conflict: conflict with \"two\": "
            ".spec.podTemplate.spec.containers[name=\"main\"].image");
}

TEST_F(ServerTest, WaitsForFinalizers) {
  Json held = sandbox("a");
  model::make_object_at(held, {"metadata"})["finalizers"] = model::JsonArray{"x.io/f"};
  api().create(kSandboxes, held);

  const Json leaving = api().remove(kSandboxes, "default", "a");
  const Json last = api().patch(kSandboxes, "default", "a", client::PatchKind::merge,
                                json(R"({"metadata":{"finalizers":null}})"));

  EXPECT_FALSE(text_at(leaving, {"metadata", "deletionTimestamp"}).empty());
  EXPECT_EQ(text_at(last, {"metadata", "resourceVersion"}),
            text_at(leaving, {"metadata", "resourceVersion"}));
  EXPECT_FALSE(api().find(kSandboxes, "default", "a"));
}

TEST_F(ServerTest, ShowsOldVersionsConverted) {
  Json object = sandbox("a");
  model::make_object_at(object, {"spec"})["operatingMode"] = "Suspended";
  api().create(kSandboxes, object);

  const Json old = api().get(kOldSandboxes, "default", "a");

  EXPECT_EQ(text_at(old, {"apiVersion"}), "agents.x-k8s.io/v1alpha1");
  EXPECT_EQ(model::number_at(old, {"spec", "replicas"}), 0);
}

TEST_F(ServerTest, ListsInPagesAsOfOneRevision) {
  for (const char* name : {"a", "b", "c"}) api().create(kConfigMaps, config_map(name));
  client::ListOptions options;
  options.ns = "default";
  options.limit = 2;

  const client::List first = api().list(kConfigMaps, options);
  api().create(kConfigMaps, config_map("d"));
  options.continue_token = first.continue_token;
  const client::List second = api().list(kConfigMaps, options);

  ASSERT_EQ(first.items.size(), 2U);
  EXPECT_EQ(text_at(first.items[0], {"kind"}), "ConfigMap");
  EXPECT_EQ(second.resource_version, first.resource_version);
  ASSERT_EQ(second.items.size(), 1U);
  EXPECT_EQ(text_at(second.items[0], {"metadata", "name"}), "c");
}

TEST_F(ServerTest, TellsWatchersWhatEntersAndLeavesTheirSelection) {
  Json labelled = config_map("a");
  model::make_object_at(labelled, {"metadata", "labels"})["in"] = "1";
  const Json made = api().create(kConfigMaps, labelled);
  api().patch(kConfigMaps, "default", "a", client::PatchKind::merge,
              json(R"({"metadata":{"labels":null}})"));
  api().patch(kConfigMaps, "default", "a", client::PatchKind::merge,
              json(R"({"metadata":{"labels":{"in":"1"}}})"));
  api().remove(kConfigMaps, "default", "a");
  client::WatchOptions options;
  options.ns = "default";
  options.label_selector = "in=1";
  options.resource_version = text_at(made, {"metadata", "resourceVersion"});
  std::vector<client::EventKind> kinds;
  std::stop_source stop;

  const auto end = api().watch(
      kConfigMaps, options,
      [&](const client::Event& event) {
        kinds.push_back(event.kind);
        if (kinds.size() == 3) stop.request_stop();
      },
      stop.get_token());

  EXPECT_EQ(end, client::WatchEnd::stopped);
  using enum client::EventKind;
  EXPECT_EQ(kinds, (std::vector{deleted, added, deleted}));
}

TEST_F(ServerTest, StreamsTheListAndSaysWhenItIsOver) {
  api().create(kConfigMaps, config_map("a"));
  client::WatchOptions options;
  options.ns = "default";
  options.initial_events = true;
  std::stop_source stop;
  std::vector<std::string> seen;

  api().watch(
      kConfigMaps, options,
      [&](const client::Event& event) {
        if (event.kind == client::EventKind::bookmark) {
          EXPECT_EQ(
              text_at(*event.object, {"metadata", "annotations", "k8s.io/initial-events-end"}),
              "true");
          stop.request_stop();
        } else {
          seen.emplace_back(text_at(*event.object, {"metadata", "name"}));
        }
      },
      stop.get_token());

  EXPECT_EQ(seen, std::vector<std::string>{"a"});
}

TEST_F(ServerTest, ScalesThroughTheSubresource) {
  api().create(kPools,
               json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"name":"p","namespace":"default"},"spec":{"replicas":2,"sandboxTemplateRef":{"name":"t"}}})"));

  const Json scaled = api().patch(kPools, "default", "p", client::PatchKind::merge,
                                  json(R"({"spec":{"replicas":5}})"), {.subresource = "scale"});

  EXPECT_EQ(text_at(scaled, {"kind"}), "Scale");
  EXPECT_EQ(model::number_at(scaled, {"spec", "replicas"}), 5);
  EXPECT_EQ(model::number_at(api().get(kPools, "default", "p"), {"spec", "replicas"}), 5);
}

TEST_F(ServerTest, ServesANewKindAtOnceAndForgetsItAgain) {
  server_->start();
  api().create(kDefinitions,
               json(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"widgets.example.io"},"spec":{"group":"example.io","scope":"Namespaced",
    "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":
    {"size":{"type":"integer","default":3}}}}}}}]}})"));
  const ResourceId widgets{"example.io", "v1", "widgets"};

  const Json made = api().create(widgets, json(R"({"apiVersion":"example.io/v1","kind":"Widget",
    "metadata":{"name":"w","namespace":"default"},"spec":{}})"));
  // The finalizer that it has got is no reason to refuse a change.
  const Json labelled =
      api().patch(kDefinitions, "", "widgets.example.io", client::PatchKind::merge,
                  json(R"({"metadata":{"labels":{"a":"b"}}})"));
  api().remove(kDefinitions, "", "widgets.example.io");

  EXPECT_FALSE(model::array_at(labelled, {"metadata", "finalizers"})->empty());
  EXPECT_EQ(model::number_at(made, {"spec", "size"}), 3);
  EXPECT_TRUE(comes_true([&] { return !api().find(kDefinitions, "", "widgets.example.io"); }));
  EXPECT_TRUE(comes_true([&] {
    try {
      api().list(widgets, {});
      return false;
    } catch (const Error&) {  // "404 page not found"
      return true;
    }
  }));
}

TEST_F(ServerTest, TakesDependentsAlongWithTheirOwner) {
  server_->start();
  const Json owner = api().create(kSandboxes, sandbox("owner"));
  Json owned = config_map("owned");
  model::make_object_at(owned, {"metadata"})["ownerReferences"] =
      model::JsonArray{model::JsonObject{{"apiVersion", "agents.x-k8s.io/v1beta1"},
                                         {"kind", "Sandbox"},
                                         {"name", "owner"},
                                         {"uid", text_at(owner, {"metadata", "uid"})}}};
  api().create(kConfigMaps, owned);

  api().remove(kSandboxes, "default", "owner");

  EXPECT_TRUE(comes_true([&] { return !api().find(kConfigMaps, "default", "owned"); }));
}

TEST_F(ServerTest, TakesAlongWhatGotAnOwnerThatIsGone) {
  server_->start();
  const auto reference = [](std::string_view uid) {
    return model::JsonArray{model::JsonObject{{"apiVersion", "agents.x-k8s.io/v1beta1"},
                                              {"kind", "Sandbox"},
                                              {"name", "owner"},
                                              {"uid", uid}}};
  };
  const Json owner = api().create(kSandboxes, sandbox("owner"));
  Json owned = config_map("owned");
  model::make_object_at(owned, {"metadata"})["ownerReferences"] =
      reference(text_at(owner, {"metadata", "uid"}));
  api().create(kConfigMaps, owned);
  const auto patch = [&](const Json& change) {
    api().patch(kConfigMaps, "default", "owned", client::PatchKind::merge, change);
  };

  patch(model::JsonObject{{"data", {{"other", "text"}}}});
  patch(model::JsonObject{{"metadata", {{"ownerReferences", reference("another-uid")}}}});

  EXPECT_TRUE(comes_true([&] { return !api().find(kConfigMaps, "default", "owned"); }));
}

TEST_F(ServerTest, KeepsWhatAnUnknownKindOwns) {
  server_->start();
  const Json owner = api().create(kSandboxes, sandbox("owner"));
  const auto owned = [](const char* name, const char* kind, std::string_view uid) {
    Json object = config_map(name);
    model::make_object_at(object, {"metadata"})["ownerReferences"] =
        model::JsonArray{model::JsonObject{{"apiVersion", "agents.x-k8s.io/v1beta1"},
                                           {"kind", kind},
                                           {"name", "owner"},
                                           {"uid", uid}}};
    return object;
  };
  api().create(kConfigMaps, owned("strange", "Stranger", "1"));
  api().create(kConfigMaps, owned("stale", "Sandbox", "another-uid"));

  EXPECT_TRUE(comes_true([&] { return !api().find(kConfigMaps, "default", "stale"); }));
  EXPECT_TRUE(api().find(kConfigMaps, "default", "strange"));
}

TEST_F(ServerTest, EmptiesANamespaceBeforeItGoes) {
  server_->start();
  api().create(kNamespaces,
               json(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gone"}})"));
  Json inside = config_map("inside");
  model::make_object_at(inside, {"metadata"})["namespace"] = "gone";
  api().create(kConfigMaps, inside);

  const Json leaving = api().remove(kNamespaces, "", "gone");

  EXPECT_EQ(text_at(leaving, {"status", "phase"}), "Terminating");
  EXPECT_TRUE(comes_true([&] { return !api().find(kNamespaces, "", "gone"); }));
  EXPECT_FALSE(api().find(kConfigMaps, "gone", "inside"));
}

TEST_F(ServerTest, TheLastAnnotationTakesTheirListAlong) {
  for (const auto& [kind, made] :
       {std::pair(kSandboxes, sandbox("a")),
        std::pair(kConfigMaps, json(R"({"apiVersion":"v1","kind":"ConfigMap",
            "metadata":{"name":"a","namespace":"default"}})"))}) {
    Json annotated = made;
    model::make_object_at(annotated, {"metadata", "annotations"})["x"] = "1";
    model::make_object_at(annotated, {"metadata", "labels"});
    EXPECT_FALSE(model::find(api().create(kind, annotated), {"metadata", "labels"}));
    const Json patch = json(R"({"metadata":{"annotations":{"x":null}}})");
    const Json bare = api().patch(kind, "default", "a", client::PatchKind::merge, patch);
    EXPECT_FALSE(model::find(bare, {"metadata", "annotations"}));
  }
}

TEST_F(ServerTest, FindsEverythingAgainAfterARestart) {
  const Json made = api().create(kSandboxes, sandbox("a"));

  server_.reopen();

  EXPECT_TRUE(model::is_same(api().get(kSandboxes, "default", "a"), made));
}

TEST_F(ServerTest, GivesPodsTheDefaultsThatToolsLookAt) {
  const Json pod = api().create(
      kPods, json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},
    "spec":{"containers":[{"name":"c","image":"busybox"}]}})"));

  EXPECT_EQ(text_at(pod, {"spec", "restartPolicy"}), "Always");
  EXPECT_EQ(text_at(pod, {"status", "phase"}), "Pending");
  EXPECT_EQ(model::number_at(pod, {"spec", "terminationGracePeriodSeconds"}), 30);
}

}  // namespace
}  // namespace hearth::apiserver
