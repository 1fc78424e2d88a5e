#include "client/query.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/error.h"
#include "client/silent_client_internal.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};
const ResourceId kNodes{"", "v1", "nodes", /*namespaced=*/false};
const ResourceId kSandboxes{"agents.x-k8s.io", "v1beta1", "sandboxes"};

TEST(ResourcePath, NamesGroupNamespaceAndObject) {
  EXPECT_EQ(resource_path(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(resource_path(kPods, "a", "b", "status"), "/api/v1/namespaces/a/pods/b/status");
  EXPECT_EQ(resource_path(kSandboxes, "a"), "/apis/agents.x-k8s.io/v1beta1/namespaces/a/sandboxes");
  EXPECT_EQ(resource_path(kNodes, "ignored", "n"), "/api/v1/nodes/n");
}

TEST(ResourcePath, NoNameLeadsElsewhere) {
  EXPECT_EQ(resource_path(kPods, "a/../b", "x?y"), "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy");
}

TEST(Query, LeavesOutWhatIsNotAsked) {
  EXPECT_EQ(query_of(ListOptions{}), "");
  EXPECT_EQ(query_of(WriteOptions{}), "");
  EXPECT_EQ(query_of(WatchOptions{.bookmarks = false, .timeout = 0s}), "watch=true");
}

TEST(Query, SaysWhatIsAsked) {
  EXPECT_EQ(query_of(ListOptions{.ns = "a",
                                 .label_selector = "a in (b,c)",
                                 .field_selector = "metadata.name=x",
                                 .limit = 5,
                                 .continue_token = "t+/",
                                 .resource_version = "7"}),
            "labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=metadata.name%3Dx&limit=5&"
            "continue=t%2B%2F&resourceVersion=7");
  EXPECT_EQ(query_of(WriteOptions{.manager = "me", .dry_run = true}), "fieldManager=me&dryRun=All");
  EXPECT_EQ(query_of(WatchOptions{.resource_version = "9", .initial_events = true, .timeout = 90s}),
            "watch=true&resourceVersion=9&allowWatchBookmarks=true&sendInitialEvents=true&"
            "resourceVersionMatch=NotOlderThan&timeoutSeconds=90");
}

TEST(Query, OnlyAnApplyIsForced) {
  const PatchOptions options{.manager = "me", .force = true};
  EXPECT_EQ(query_of(options, PatchKind::apply), "fieldManager=me&force=true");
  EXPECT_EQ(query_of(options, PatchKind::merge), "fieldManager=me");
  EXPECT_EQ(content_type_of(PatchKind::apply), "application/apply-patch+yaml");
  EXPECT_EQ(content_type_of(PatchKind::json), "application/json-patch+json");
}

TEST(DeleteBody, HasPreconditionsOnlyIfAsked) {
  EXPECT_EQ(model::to_text(body_of(DeleteOptions{})),
            R"({"kind":"DeleteOptions","apiVersion":"v1"})");
  const Json body = body_of(DeleteOptions{
      .propagation = "Orphan", .uid = "u", .resource_version = "3", .grace_seconds = 0});
  EXPECT_EQ(model::text_at(body, {"propagationPolicy"}), "Orphan");
  EXPECT_EQ(model::number_at(body, {"gracePeriodSeconds"}), 0);
  EXPECT_EQ(model::text_at(body, {"preconditions", "uid"}), "u");
  EXPECT_EQ(model::text_at(body, {"preconditions", "resourceVersion"}), "3");
}

TEST(ListFromJson, GivesItemsTheirTypeBack) {
  const Json json = model::parse_json(R"({"kind":"PodList","apiVersion":"v1",
      "metadata":{"resourceVersion":"5","continue":"c"},
      "items":[{"metadata":{"name":"a"}},{"kind":"Other","apiVersion":"x/v1"}]})")
                        .value;

  const List list = list_from_json(json, kPods);

  EXPECT_EQ(list.resource_version, "5");
  EXPECT_EQ(list.continue_token, "c");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(model::text_at(list.items[0], {"kind"}), "Pod");
  EXPECT_EQ(model::text_at(list.items[0], {"apiVersion"}), "v1");
  EXPECT_EQ(model::text_at(list.items[1], {"kind"}), "Other");
}

TEST(ListFromJson, SurvivesWhatIsNoList) {
  EXPECT_TRUE(list_from_json(Json("text"), kPods).items.empty());
  EXPECT_TRUE(list_from_json(model::parse_json(R"({"items":null})").value, kPods).items.empty());
  EXPECT_EQ(list_from_json(model::parse_json(R"({"items":[1]})").value, kPods).items.size(), 1U);
}

TEST(ParseEvent, KnowsTheKinds) {
  EXPECT_EQ(parse_event(R"({"type":"ADDED","object":{}})")->kind, EventKind::added);
  EXPECT_EQ(parse_event(R"({"type":"MODIFIED","object":{}})")->kind, EventKind::modified);
  EXPECT_EQ(parse_event(R"({"type":"BOOKMARK","object":{}})")->kind, EventKind::bookmark);
  const auto deleted = parse_event(R"({"type":"DELETED","object":{"metadata":{"name":"a"}}})");
  EXPECT_EQ(deleted->kind, EventKind::deleted);
  EXPECT_EQ(model::text_at(*deleted->object, {"metadata", "name"}), "a");
}

TEST(ParseEvent, AnExpiredWatchIsNoFailure) {
  EXPECT_FALSE(
      parse_event(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"));
}

TEST(ParseEvent, OtherErrorsAreThrown) {
  try {
    parse_event(R"({"type":"ERROR","object":{"kind":"Status","code":504,"message":"late"}})");
    FAIL();
  } catch (const model::StatusError& error) {
    EXPECT_EQ(error.status().code, 504U);
    EXPECT_STREQ(error.what(), "late");
  }
}

TEST(ParseEvent, RefusesWhatIsNone) {
  for (const char* line : {"", "garbage", "[]", "1", R"({"type":"ADDED"})", R"({"object":{}})",
                           R"({"type":"NEWS","object":{}})", R"({"type":"ADDED","object":{})"}) {
    EXPECT_THROW(parse_event(line), Error) << line;
  }
}

// Answers get() and list() as told.
class OneAnswer : public SilentClient {
 public:
  Answer get(const ResourceId&, std::string_view, std::string_view) override {
    if (missing) model::throw_not_found({"", "pods"}, "x");
    if (forbidden) model::throw_forbidden({"", "pods"}, "x", "no");
    return Json("found");
  }
  List list(const ResourceId&, const ListOptions& options) override {
    asked.push_back(options);
    List page = std::move(pages.front());
    pages.pop_front();
    return page;
  }

  bool missing = false;
  bool forbidden = false;
  std::deque<List> pages;
  std::vector<ListOptions> asked;
};

TEST(ClientFind, IsNothingForA404Only) {
  OneAnswer client;
  EXPECT_TRUE(client.find(kPods, "a", "x"));
  client.forbidden = true;
  EXPECT_THROW(client.find(kPods, "a", "x"), model::StatusError);
  client.missing = true;
  EXPECT_FALSE(client.find(kPods, "a", "x"));
}

TEST(ClientListAll, TurnsEveryPage) {
  OneAnswer client;
  client.pages.push_back({{Json(1), Json(2)}, "10", "next"});
  client.pages.push_back({{Json(3)}, "10", ""});

  const List all = client.list_all(kPods, {.ns = "a", .resource_version = "7"});

  EXPECT_EQ(all.items.size(), 3U);
  EXPECT_EQ(all.resource_version, "10");
  ASSERT_EQ(client.asked.size(), 2U);
  EXPECT_EQ(client.asked[0].limit, 500);
  EXPECT_EQ(client.asked[0].resource_version, "7");
  // A token knows its version; a server refuses both.
  EXPECT_EQ(client.asked[1].continue_token, "next");
  EXPECT_EQ(client.asked[1].resource_version, "");
}

}  // namespace
}  // namespace hearth::client
