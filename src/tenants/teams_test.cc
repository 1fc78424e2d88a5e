#include "tenants/teams.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "tenants/api_keys.h"

namespace hearth::tenants {
namespace {

using apiserver::json;

Code refused(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was refused";
  return Code::internal;
}

TEST(Limits, AreAnnotations) {
  const LimitChanges limits{.sandboxes = 5, .memory_mib = 2048};
  const model::Json object =
      model::JsonObject{{"metadata", model::JsonObject{{"annotations", annotations_of(limits)}}}};
  EXPECT_EQ(limits_on(object), limits);
  EXPECT_TRUE(limits_on(json("{}")).is_empty());
  EXPECT_EQ(model::annotation_of(object, "hearth.dev/limit-sandboxes"), "5");
}

TEST(Limits, AllowNothingWhenTheyCannotBeRead) {
  for (const char* text : {R"("many")", R"("-1")", R"("")", R"("5 ")", "5", R"("1e3")"}) {
    const auto object = json(R"({"metadata":{"annotations":{"hearth.dev/limit-sandboxes":)" +
                             std::string(text) + "}}}");
    EXPECT_EQ(limits_on(object).sandboxes, 0) << text;
  }
}

TEST(Limits, OfAKeyOnlyNarrow) {
  const Limits team{.sandboxes = 10, .lifetime_seconds = 100};
  const LimitChanges key{.sandboxes = 20, .lifetime_seconds = 50};
  const Limits both = narrowed(team, key);
  EXPECT_EQ(both.sandboxes, 10);
  EXPECT_EQ(both.lifetime_seconds, 50);
  EXPECT_EQ(both.cpu_millis, Limits{}.cpu_millis);
  EXPECT_EQ(replaced(team, key).sandboxes, 20);
}

class TeamsTest : public testing::Test {
 protected:
  apiserver::TestServer server_;
  client::Client& client_ = server_.client();
};

TEST_F(TeamsTest, AreNamespacesWithALabel) {
  const Team made = create_team(client_, "red", {.sandboxes = 3});
  EXPECT_EQ(made.ns, "red");
  EXPECT_EQ(made.limits.sandboxes, 3);
  EXPECT_EQ(made.limits.memory_mib, Limits{}.memory_mib);
  const auto ns = client_.get(client::kNamespaces, "", "red");
  EXPECT_EQ(model::label_of(ns, "hearth.dev/team"), "red");

  const std::vector<Team> all = list_teams(client_);
  ASSERT_EQ(all.size(), 2U);  // and no kube-system
  EXPECT_EQ(all[0].name, "default");
  EXPECT_EQ(all[1].name, "red");
  EXPECT_EQ(find_team(client_, "red")->limits.sandboxes, 3);
  EXPECT_FALSE(find_team(client_, "kube-system"));
  EXPECT_FALSE(find_team(client_, "blue"));
  EXPECT_FALSE(find_team(client_, "../x"));
}

TEST_F(TeamsTest, ANamespaceThatIsThereBecomesOne) {
  client_.create(client::kNamespaces,
                 json(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"old"}})"));
  EXPECT_FALSE(find_team(client_, "old"));
  create_team(client_, "old", {});
  EXPECT_TRUE(find_team(client_, "old"));
  EXPECT_EQ(refused([&] { create_team(client_, "old", {}); }), Code::already_exists);
}

TEST_F(TeamsTest, BadNamesAreRefused) {
  for (const char* name : {"", "Red", "a b", "-a", "kube-system", "kube-x", "hearth-system"})
    EXPECT_EQ(refused([&] { create_team(client_, name, {}); }), Code::invalid) << name;
  EXPECT_EQ(refused([&] { create_team(client_, "default", {}); }), Code::already_exists);
}

TEST_F(TeamsTest, ALabelWithAnotherNameMakesNoTeam) {
  client_.create(client::kNamespaces, json(R"({"apiVersion":"v1","kind":"Namespace",
      "metadata":{"name":"odd","labels":{"hearth.dev/team":"default"}}})"));
  EXPECT_FALSE(find_team(client_, "odd"));
}

TEST_F(TeamsTest, LimitsChangeOneByOne) {
  create_team(client_, "red", {.sandboxes = 3, .cpu_millis = 500});
  EXPECT_EQ(change_limits(client_, "red", {.sandboxes = 4}).limits.sandboxes, 4);
  EXPECT_EQ(find_team(client_, "red")->limits.cpu_millis, 500);
  EXPECT_EQ(change_limits(client_, "default", {.sandboxes = 1}).limits.sandboxes, 1);
  EXPECT_EQ(refused([&] { change_limits(client_, "blue", {.sandboxes = 4}); }), Code::not_found);
  EXPECT_EQ(refused([&] { change_limits(client_, "kube-system", {.sandboxes = 4}); }),
            Code::not_found);
}

TEST_F(TeamsTest, GoWithTheirKeys) {
  create_team(client_, "red", {});
  issue_key(client_, {.team = "red", .name = "one", .limits = {}, .expires = {}});
  const auto kept =
      issue_key(client_, {.team = "default", .name = "two", .limits = {}, .expires = {}});
  EXPECT_TRUE(remove_team(client_, "red"));
  EXPECT_FALSE(find_team(client_, "red"));
  EXPECT_FALSE(remove_team(client_, "red"));
  const auto keys = list_keys(client_, "");
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].id, kept.info.id);
  EXPECT_EQ(refused([&] { remove_team(client_, "default"); }), Code::invalid);
  EXPECT_FALSE(remove_team(client_, "kube-system"));
}

}  // namespace
}  // namespace hearth::tenants
