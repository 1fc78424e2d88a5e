#include "cli/kube_text.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::cli {
namespace {

using apiserver::json;
using apiserver::TestServer;
using model::Json;

constexpr std::string_view kTable = R"({
  "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"},
  "columnDefinitions": [{"name": "Name"}, {"name": "Ready", "priority": 0},
                        {"name": "Node", "priority": 1}],
  "rows": [{"cells": ["a", "True", "n"], "object": {"metadata": {"namespace": "x"}}},
           {"cells": ["b", null]}, {"cells": [3, true, "n", "one too many"]}, {}]})";

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What `word` stands for in a cluster with one group of its own.
ApiKind kind_called(std::string_view word) {
  return find_kind(word, [](const std::string& path) {
    if (path == "/api/v1")
      return json(R"({"resources": [
        {"name": "services", "singularName": "service", "kind": "Service", "namespaced": true,
         "shortNames": ["svc"], "verbs": ["get", "list"]},
        {"name": "services/status", "kind": "Service", "verbs": ["get", "list"]},
        {"name": "bindings", "kind": "Binding", "verbs": ["create"]}]})");
    if (path == "/apis")
      return json(R"({"groups": [{"preferredVersion": {"groupVersion": "broken/v1"}},
                                 {"preferredVersion": {"groupVersion": "example.com/v2"}}]})");
    if (path == "/apis/example.com/v2")
      return json(R"({"resources": [{"name": "pods", "singularName": "pod", "kind": "Pod",
                                     "verbs": ["list"]}, 7, {"name": []}]})");
    throw model::StatusError({.code = 503, .reason = "ServiceUnavailable"});
  });
}

TEST(KubeTextTest, KindsHaveManyNames) {
  for (const std::string_view word : {"claim", "claims", "sandboxclaims", "SandboxClaim",
                                      "sandboxclaims.extensions.agents.x-k8s.io"})
    EXPECT_EQ(kind_called(word).resource.plural, "sandboxclaims") << word;
  EXPECT_EQ(kind_called("swp").kind, "SandboxWarmPool");
  EXPECT_EQ(kind_called("pods").resource.group, "");
  EXPECT_EQ(kind_called("pods.example.com").resource.api_version(), "example.com/v2");
  EXPECT_FALSE(kind_called("pods.example.com").resource.namespaced);
  EXPECT_EQ(kind_called("SVC").kind, "Service");
}

TEST(KubeTextTest, AnUnknownKindIsToldWhatThereIs) {
  for (const auto& [word, part] :
       {std::pair{"sandbx", "did you mean 'sandbox'?"},
        std::pair{"zzzzzz", "pools, templates, pods, pods.example.com, services"},
        std::pair{"bindings", "there is no kind 'bindings'"},
        std::pair{"", "there is no kind ''"}}) {
    try {
      kind_called(word);
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::not_found);
      EXPECT_TRUE(has(error.what(), part)) << error.what();
    }
  }
}

TEST(KubeTextTest, ATableIsTheServers) {
  const ObjectTable plain = read_table(json(kTable), false, false);
  EXPECT_EQ(plain.resource_version, "7");
  EXPECT_EQ(plain.heading, (Row{"NAME", "READY"}));
  EXPECT_EQ(plain.rows, (std::vector<Row>{{"a", "True"}, {"b", "<none>"}, {"3", "true"}, {}}));
  const ObjectTable wide = read_table(json(kTable), true, true);
  EXPECT_EQ(wide.heading, (Row{"NAMESPACE", "NAME", "READY", "NODE"}));
  EXPECT_EQ(wide.rows[0], (Row{"x", "a", "True", "n"}));
  EXPECT_EQ(wide.rows[1], (Row{"", "b", "<none>"}));
  EXPECT_THROW(read_table(json(R"({"kind": "PodList"})"), false, false), Error);
}

TEST(KubeTextTest, ColumnsStayInTheirPlaces) {
  Columns columns;
  EXPECT_EQ(
      columns.heading({.heading = {"A", "B"}, .rows = {{"long-one", "x"}}, .resource_version = {}}),
      "A         B\n");
  EXPECT_EQ(columns.line({"s", "y"}), "s         y\n");
  EXPECT_EQ(columns.line({"a-longer-one", "\x1b"}), "a-longer-one  ?\n");
  EXPECT_EQ(columns.line({"s", "y"}), "s             y\n");
}

TEST(KubeTextTest, AClaimIsWhatWasAskedFor) {
  ClaimOptions options;
  options.pool = "py";
  EXPECT_EQ(*model::find(make_claim(options, "team", {}), {"metadata"}),
            json(R"({"namespace": "team", "generateName": "py-"})"));
  options.name = "c";
  options.environment = {"A=b=c", "E="};
  options.labels = {"k=v"};
  options.ttl = std::chrono::milliseconds(1500);
  options.when_empty = "Wait";
  const Json claim = make_claim(options, "team", *parse_rfc3339("2026-01-02T03:04:05Z"));
  EXPECT_TRUE(model::is_same(claim, json(R"({
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
    "metadata": {"name": "c", "namespace": "team", "labels": {"k": "v"}},
    "spec": {"warmPoolRef": {"name": "py"}, "whenEmpty": "Wait", "waitSeconds": 31,
             "env": [{"name": "A", "value": "b=c"}, {"name": "E", "value": ""}],
             "lifecycle": {"shutdownTime": "2026-01-02T03:04:07Z", "shutdownPolicy": "Delete"}}})")))
      << model::to_text(claim);
}

TEST(KubeTextTest, WhenWaitingHelpsAndWhenNot) {
  using Kind = ClaimState::Kind;
  const auto kind_of = [](std::string_view status, std::string_view reason) {
    return read_claim(model::JsonObject{
                          {"status",
                           model::JsonObject{
                               {"conditions",
                                model::JsonArray{model::JsonObject{
                                    {"type", "Ready"}, {"status", status}, {"reason", reason}}}}}}})
        .kind;
  };
  EXPECT_EQ(read_claim(json("{}")).kind, Kind::pending);
  EXPECT_EQ(kind_of("True", "DependenciesReady"), Kind::ready);
  EXPECT_EQ(kind_of("False", "WaitingForWarmPool"), Kind::pending);
  EXPECT_EQ(kind_of("False", "ReconcilerError"), Kind::pending);
  EXPECT_EQ(kind_of("False", "WarmPoolNotFound"), Kind::lost);
  EXPECT_EQ(kind_of("False", "TemplateNotFound"), Kind::lost);
  EXPECT_EQ(kind_of("False", "EnvVarsInjectionRejected"), Kind::lost);
}

TEST(KubeTextTest, ATemplateIsWhatWasAskedFor) {
  TemplateCreateOptions options;
  options.name = "py";
  options.image = "python:3.12";
  options.command = {"sleep", "1"};
  options.environment = {"A=b"};
  options.memory = "1Gi";
  options.ports = {80};
  options.env_policy = "Allowed";
  const Json made = make_template(options, "team");
  EXPECT_TRUE(model::is_same(made, json(R"({
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
    "metadata": {"name": "py", "namespace": "team"},
    "spec": {"service": true, "envVarsInjectionPolicy": "Allowed", "podTemplate": {"spec": {
      "containers": [{"name": "main", "image": "python:3.12", "command": ["sleep", "1"],
        "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}],
        "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}}]}}}})")))
      << model::to_text(made);
  options = {};
  options.file = "/nonexistent/file";
  EXPECT_THROW(make_template(options, "team"), Error);
}

// Objects as controllers leave them, on a real server.
class DescribeTest : public testing::Test {
 protected:
  Json create(const client::ResourceId& resource, Json object) {
    model::make_object_at(object, {"metadata"})["namespace"] = "default";
    const Json status = model::find(object, {"status"}) ? *model::find(object, {"status"}) : Json();
    Json made = server_.client().create(resource, object);
    if (status.is_null()) return made;
    made.as_object()["status"] = status;
    return server_.client().update(resource, made, "status");
  }

  std::string describe(std::string_view word, const Json& object) {
    const ApiKind kind = find_kind(word, [](const std::string&) { return Json(); });
    return cli::describe(server_.client(), kind, object, SystemClock().now());
  }

  void tell(const Json& about, std::string_view kind, std::string_view reason,
            std::string_view time) {
    create(client::kEvents,
           model::JsonObject{{"apiVersion", "events.k8s.io/v1"},
                             {"kind", "Event"},
                             {"metadata", model::JsonObject{{"generateName", "e-"}}},
                             {"eventTime", time},
                             {"reportingController", "test"},
                             {"reportingInstance", "test"},
                             {"action", "Test"},
                             {"type", reason == "Broke" ? "Warning" : "Normal"},
                             {"reason", reason},
                             {"note", "note of it"},
                             {"regarding", model::JsonObject{{"kind", kind},
                                                             {"namespace", "default"},
                                                             {"name", model::name_of(about)},
                                                             {"uid", model::uid_of(about)}}}});
  }

  TestServer server_;
};

TEST_F(DescribeTest, AClaimTellsTheWholeStory) {
  const Json claim = create(client::kSandboxClaims, json(R"({
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
    "metadata": {"name": "c", "labels": {"team": "a"}},
    "spec": {"warmPoolRef": {"name": "py"}, "env": [{"name": "KEY", "value": "hush"}]},
    "status": {"sandbox": {"name": "s", "podIPs": ["10.0.0.9"]}, "conditions": [{"type": "Ready",
      "status": "False", "reason": "DependenciesNotReady", "message": "soon\u001b[2J",
      "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})"));
  const Json sandbox = create(client::kSandboxes, json(R"({
    "apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "s"},
    "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "host"}]}}}})"));
  const Json pod = create(client::kPods, json(R"({
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "s"},
    "spec": {"containers": [{"name": "main", "image": "host"}]}})"));
  tell(pod, "Pod", "Broke", "2026-01-01T00:00:03.000000Z");
  tell(sandbox, "Sandbox", "Made", "2026-01-01T00:00:02.000000Z");
  tell(claim, "SandboxClaim", "Taken", "2026-01-01T00:00:01.000000Z");
  tell(Json(model::JsonObject{{"metadata", model::JsonObject{{"name", "s"}, {"uid", "other"}}}}),
       "Pod", "Foreign", "2026-01-01T00:00:01.000000Z");

  const std::string text = describe("claim", claim);

  EXPECT_TRUE(has(text, "Pool:         py\n")) << text;
  EXPECT_TRUE(has(text, "Labels:       team=a\n")) << text;
  EXPECT_TRUE(has(text, "Environment:  KEY\n")) << text;
  EXPECT_TRUE(has(text, "Address:      10.0.0.9\n")) << text;
  EXPECT_FALSE(has(text, "hush")) << "values may be secrets";
  EXPECT_FALSE(has(text, "\x1b")) << "a terminal obeys those";
  EXPECT_TRUE(has(text, "DependenciesNotReady")) << text;
  EXPECT_TRUE(has(text, "Sandbox  s ")) << text;
  EXPECT_FALSE(has(text, "Foreign")) << text;
  EXPECT_LT(text.find("Taken"), text.find("Made"));
  EXPECT_LT(text.find("Made"), text.find("Broke"));
  EXPECT_TRUE(has(text, "!  Pod/s")) << text;
}

TEST_F(DescribeTest, APoolCountsItsMembers) {
  const Json pool = create(client::kSandboxWarmPools, json(R"({
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool",
    "metadata": {"name": "py"}, "spec": {"replicas": 60, "sandboxTemplateRef": {"name": "gone"}},
    "status": {"replicas": 55, "readyReplicas": 3}})"));
  for (int i = 0; i < 55; ++i) {
    Json member = json(R"({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
      "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "host"}]}}}})");
    member.as_object()["metadata"] = model::JsonObject{
        {"name", "m-" + std::to_string(i)},
        {"labels",
         model::JsonObject{{"agents.x-k8s.io/warm-pool-sandbox", model::name_hash("py")}}},
        {"ownerReferences", model::JsonArray{model::controller_reference(pool)}}};
    create(client::kSandboxes, std::move(member));
  }

  const std::string text = describe("pool", pool);

  EXPECT_TRUE(has(text, "Members:    3 ready, 55 there, 60 desired\n")) << text;
  EXPECT_TRUE(has(text, "Sandbox  m-0 ")) << text;
  EXPECT_TRUE(has(text, "and 5 more\n")) << text;
  EXPECT_TRUE(has(text, "No events.\n")) << text;
}

}  // namespace
}  // namespace hearth::cli
