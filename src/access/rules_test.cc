#include "access/rules.h"

#include <gtest/gtest.h>

#include "access/defaults.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using Texts = std::vector<std::string>;

Json parse(std::string_view text) {
  return model::parse_json(text).value;
}

Json role(std::string_view ns, std::string_view name, std::string_view rules,
          std::string_view labels = "{}") {
  Json made = parse(R"({"metadata":{}})");
  JsonObject& metadata = made.as_object()["metadata"].as_object();
  made.as_object()["kind"] = ns.empty() ? "ClusterRole" : "Role";
  if (!ns.empty()) metadata["namespace"] = ns;
  metadata["name"] = name;
  metadata["labels"] = parse(labels);
  made.as_object()["rules"] = parse(rules);
  return made;
}

Json binding(std::string_view ns, std::string_view role_kind, std::string_view role_name,
             std::string_view subjects) {
  Json made = parse(R"({"metadata":{"name":"b"}})");
  made.as_object()["kind"] = ns.empty() ? "ClusterRoleBinding" : "RoleBinding";
  if (!ns.empty()) made.as_object()["metadata"].as_object()["namespace"] = ns;
  made.as_object()["roleRef"] =
      JsonObject{{"apiGroup", kRbacGroup}, {"kind", role_kind}, {"name", role_name}};
  made.as_object()["subjects"] = parse(subjects);
  return made;
}

constexpr std::string_view kAlice = R"([{"kind":"User","name":"alice"}])";

Rules rules_of(const std::vector<Json>& objects) {
  return Rules(sort_by_kind(objects));
}

// What alice may do at the cluster scope with one rule.
Rules with_rule(std::string_view rule) {
  return rules_of(
      {role("", "r", "[" + std::string(rule) + "]"), binding("", "ClusterRole", "r", kAlice)});
}

Attributes ask(std::string_view verb, std::string_view resource, std::string_view ns = {},
               std::string_view name = {}) {
  Attributes wanted{.user = {.name = "alice", .groups = {"system:authenticated"}},
                    .verb = std::string(verb),
                    .ns = std::string(ns),
                    .name = std::string(name)};
  const std::size_t slash = resource.find('/');
  wanted.resource = resource.substr(0, slash);
  if (slash != std::string_view::npos) wanted.subresource = resource.substr(slash + 1);
  return wanted;
}

Attributes ask_path(std::string_view verb, std::string_view path) {
  Attributes wanted{.user = {.name = "alice"}, .verb = std::string(verb)};
  wanted.path = path;
  wanted.is_resource = false;
  return wanted;
}

model::Status denial(const Attributes& wanted, const Decision& decision = {}) {
  try {
    throw_denied(wanted, decision);
  } catch (const model::StatusError& error) {
    return error.status();
  }
}

TEST(RulesTest, NothingIsAllowedWithoutARole) {
  const Rules none;

  EXPECT_FALSE(none.decide(ask("get", "pods", "default")).allowed);
  EXPECT_FALSE(none.decide(ask_path("get", "/healthz")).allowed);
  EXPECT_EQ(none.decide(ask("get", "pods", "default")).reason, "");
}

TEST(RulesTest, MastersMayDoEverything) {
  Attributes wanted = ask("delete", "nodes");
  wanted.user.groups = {"system:masters"};

  EXPECT_TRUE(Rules().decide(wanted).allowed);
  EXPECT_EQ(Rules().decide(wanted).reason, "");
}

TEST(RulesTest, VerbGroupAndResourceMustAllMatch) {
  const Rules rules =
      with_rule(R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"]})");

  EXPECT_TRUE(rules.decide(ask("get", "pods", "any")).allowed);
  EXPECT_TRUE(rules.decide(ask("list", "pods")).allowed);
  EXPECT_TRUE(rules.decide(ask("get", "pods/log", "any")).allowed);
  EXPECT_FALSE(rules.decide(ask("delete", "pods", "any")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "pods/exec", "any")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "secrets", "any")).allowed);
  Attributes other_group = ask("get", "pods");
  other_group.group = "metrics.k8s.io";
  EXPECT_FALSE(rules.decide(other_group).allowed);
  Attributes other_user = ask("get", "pods");
  other_user.user.name = "bob";
  EXPECT_FALSE(rules.decide(other_user).allowed);
}

TEST(RulesTest, StarsStandForEverything) {
  const Rules verbs = with_rule(R"({"verbs":["*"],"apiGroups":["*"],"resources":["pods"]})");
  const Rules scale = with_rule(R"({"verbs":["get"],"apiGroups":["*"],"resources":["*/scale"]})");
  const Rules all = with_rule(R"({"verbs":["get"],"apiGroups":[""],"resources":["*"]})");

  EXPECT_TRUE(verbs.decide(ask("anything", "pods")).allowed);
  EXPECT_FALSE(verbs.decide(ask("get", "nodes")).allowed);
  EXPECT_TRUE(scale.decide(ask("get", "sandboxes/scale", "a")).allowed);
  EXPECT_FALSE(scale.decide(ask("get", "sandboxes", "a")).allowed);
  EXPECT_FALSE(scale.decide(ask("get", "sandboxes/status", "a")).allowed);
  EXPECT_TRUE(all.decide(ask("get", "pods/log", "a")).allowed);
  EXPECT_FALSE(all.decide(ask("*", "pods", "a")).allowed) << "to ask for all verbs is to need all";
}

TEST(RulesTest, NamesLimitARule) {
  const Rules rules = with_rule(
      R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})");

  EXPECT_TRUE(rules.decide(ask("get", "pods", "n", "a")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "pods", "n", "b")).allowed);
  EXPECT_FALSE(rules.decide(ask("list", "pods", "n")).allowed);
}

TEST(RulesTest, PathsMayEndInAStar) {
  const Rules rules = with_rule(R"({"verbs":["get"],"nonResourceURLs":["/version","/apis/*"]})");

  EXPECT_TRUE(rules.decide(ask_path("get", "/version")).allowed);
  EXPECT_TRUE(rules.decide(ask_path("get", "/apis/apps")).allowed);
  EXPECT_FALSE(rules.decide(ask_path("get", "/apis")).allowed);
  EXPECT_FALSE(rules.decide(ask_path("get", "/version/x")).allowed);
  EXPECT_FALSE(rules.decide(ask_path("post", "/version")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "version")).allowed) << "a resource is no path";
}

TEST(RulesTest, ARoleBindingHoldsInItsNamespaceOnly) {
  constexpr std::string_view kRule = R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])";
  const Rules rules = rules_of({role("team-a", "r", kRule), role("", "c", kRule),
                                binding("team-a", "Role", "r", kAlice),
                                binding("team-b", "ClusterRole", "c", kAlice)});

  EXPECT_TRUE(rules.decide(ask("get", "pods", "team-a")).allowed);
  EXPECT_TRUE(rules.decide(ask("get", "pods", "team-b")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "pods", "team-c")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "pods")).allowed);
  EXPECT_EQ(rules.decide(ask("get", "pods", "team-a")).reason,
            R"(RBAC: allowed by RoleBinding "b/team-a" of Role "r" to User "alice")");
}

TEST(RulesTest, GroupsAndServiceAccountsAreSubjects) {
  const Rules rules =
      rules_of({role("", "r", R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])"),
                binding("n", "ClusterRole", "r",
                        R"([{"kind":"Group","name":"devs"},{"kind":"ServiceAccount","name":"own"},
                   {"kind":"ServiceAccount","name":"far","namespace":"other"}])")});
  const auto allowed = [&](User user) {
    Attributes wanted = ask("get", "pods", "n");
    wanted.user = std::move(user);
    return rules.decide(wanted).allowed;
  };

  EXPECT_TRUE(allowed({.name = "x", .groups = {"a", "devs"}}));
  EXPECT_FALSE(allowed({.name = "devs"})) << "a user called like a group is not in it";
  EXPECT_TRUE(allowed({.name = "system:serviceaccount:n:own"}));
  EXPECT_TRUE(allowed({.name = "system:serviceaccount:other:far"}));
  EXPECT_FALSE(allowed({.name = "system:serviceaccount:n:far"}));
}

TEST(RulesTest, AMissingRoleIsNamed) {
  const Rules rules = rules_of({binding("", "ClusterRole", "gone", kAlice)});

  const Decision decision = rules.decide(ask("get", "pods"));

  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, R"(RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found)");
}

TEST(RulesTest, AggregationGathersWhatIsLabelled) {
  Json all = role("", "all", "[]", R"({"to-top":"yes"})");
  all.as_object()["aggregationRule"] =
      parse(R"({"clusterRoleSelectors":[{"matchLabels":{"to-all":"yes"}}]})");
  Json top = role("", "top", R"([{"verbs":["*"],"apiGroups":["*"],"resources":["own"]}])",
                  R"({"to-all":"yes"})");  // a circle
  top.as_object()["aggregationRule"] = parse(
      R"({"clusterRoleSelectors":[{"matchExpressions":[{"key":"to-top","operator":"In","values":["yes"]}]}]})");
  const std::vector<Json> objects = {
      all, top,
      role("", "part", R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])",
           R"({"to-all":"yes"})"),
      role("", "other", R"([{"verbs":["get"],"apiGroups":[""],"resources":["nodes"]}])",
           R"({"to-all":"no"})"),
      binding("", "ClusterRole", "top", kAlice)};
  const Rules rules = rules_of(objects);

  EXPECT_TRUE(rules.decide(ask("get", "pods")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "nodes")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "own")).allowed) << "gathered instead of its own";
}

TEST(RulesTest, SelectorsKnowAllOperators) {
  const auto gathers = [](std::string_view expression, std::string_view labels) {
    Json top = role("", "top", "[]");
    top.as_object()["aggregationRule"] = parse(R"({"clusterRoleSelectors":[{"matchExpressions":[)" +
                                               std::string(expression) + "]}]}");
    const Rules rules =
        rules_of({top, role("", "part", R"([{"verbs":["get"],"apiGroups":[""],"resources":["p"]}])",
                            labels)});
    return !rules.find_role("", "top")->empty();
  };

  EXPECT_TRUE(gathers(R"({"key":"a","operator":"Exists"})", R"({"a":"1"})"));
  EXPECT_FALSE(gathers(R"({"key":"a","operator":"Exists"})", "{}"));
  EXPECT_TRUE(gathers(R"({"key":"a","operator":"DoesNotExist"})", "{}"));
  EXPECT_FALSE(gathers(R"({"key":"a","operator":"DoesNotExist"})", R"({"a":"1"})"));
  EXPECT_TRUE(gathers(R"({"key":"a","operator":"NotIn","values":["2"]})", R"({"a":"1"})"));
  EXPECT_FALSE(gathers(R"({"key":"a","operator":"NotIn","values":["1"]})", R"({"a":"1"})"));
  EXPECT_FALSE(gathers(R"({"key":"a","operator":"Bogus"})", R"({"a":"1"})"));
}

TEST(RulesTest, HostileObjectsGrantNothing) {
  const std::vector<Json> objects = {
      parse("null"),
      parse("[]"),
      parse(R"({"kind":"Role"})"),
      parse(R"({"kind":"ClusterRole"})"),
      parse(R"({"kind":"RoleBinding","roleRef":7,"subjects":{}})"),
      parse(R"({"kind":"ClusterRoleBinding","roleRef":{"kind":"ClusterRole","name":"r"},)"
            R"("subjects":[7,null,{"kind":"User"},{"kind":"Robot","name":"alice"},)"
            R"({"kind":"ServiceAccount","name":"a"}]})"),
      role("", "r", R"([7,{"verbs":"*","apiGroups":["*"],"resources":[7]},null])"),
      binding("", "Role", "r", kAlice),  // a role of no namespace
      binding("", "ClusterRole", "r", kAlice)};
  const Rules rules = rules_of(objects);

  EXPECT_FALSE(rules.decide(ask("get", "pods", "n")).allowed);
  EXPECT_FALSE(rules.decide(ask("", "", "")).allowed);
}

TEST(RulesTest, ARoleBindingWithoutANamespaceIsNotForTheCluster) {
  Json loose = binding("n", "ClusterRole", "r", kAlice);
  loose.as_object()["metadata"].as_object().erase("namespace");
  const Rules rules =
      rules_of({role("", "r", R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])"), loose});

  EXPECT_FALSE(rules.decide(ask("get", "pods")).allowed);
}

TEST(DeniedTest, SaysItInTheWordsThatClientsKnow) {
  EXPECT_EQ(model::to_text(to_json(denial(ask("list", "pods", "default")))),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
            R"("pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" )"
            R"(in the namespace \"default\"","reason":"Forbidden","details":{"kind":"pods"},)"
            R"("code":403})");
  EXPECT_EQ(model::to_text(to_json(denial(ask_path("get", "/api")))),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
            R"("forbidden: User \"alice\" cannot get path \"/api\"","reason":"Forbidden",)"
            R"("details":{},"code":403})");
}

TEST(DeniedTest, NamesSubresourceNameAndReason) {
  Attributes wanted = ask("create", "sandboxes/scale", "", "s1");
  wanted.group = "agents.x-k8s.io";
  wanted.user.name = "<b>";

  const model::Status status = denial(wanted, {.reason = "RBAC: because"});

  EXPECT_EQ(status.message,
            "sandboxes.agents.x-k8s.io \"s1\" is forbidden: User \"&lt;b&gt;\" cannot create "
            "resource \"sandboxes/scale\" in API group \"agents.x-k8s.io\" at the cluster scope: "
            "RBAC: because");
  EXPECT_EQ(status.name, "s1");
  EXPECT_EQ(status.group, "agents.x-k8s.io");
}

class DefaultRolesTest : public testing::Test {
 protected:
  // With alice bound to `cluster_role` in the namespace "n".
  Rules bound(std::string_view cluster_role) const {
    std::vector<Json> objects = default_roles();
    objects.push_back(binding("n", "ClusterRole", cluster_role, kAlice));
    return rules_of(objects);
  }
};

TEST_F(DefaultRolesTest, StrangersSeeHealthAndVersionOnly) {
  const Rules rules = rules_of(default_roles());
  Attributes health = ask_path("get", "/healthz");
  health.user = anonymous_user();
  Attributes api = ask_path("get", "/api");
  api.user = anonymous_user();

  EXPECT_TRUE(rules.decide(health).allowed);
  EXPECT_FALSE(rules.decide(api).allowed);
  api.user = {.name = "x", .groups = {"system:authenticated"}};
  EXPECT_TRUE(rules.decide(api).allowed);
  api.path = "/metrics";
  EXPECT_FALSE(rules.decide(api).allowed);
}

TEST_F(DefaultRolesTest, ViewersReadButSeeNoSecrets) {
  const Rules rules = bound("view");

  EXPECT_TRUE(rules.decide(ask("list", "pods", "n")).allowed);
  EXPECT_TRUE(rules.decide(ask("get", "pods/log", "n")).allowed);
  EXPECT_FALSE(rules.decide(ask("get", "secrets", "n")).allowed);
  EXPECT_FALSE(rules.decide(ask("create", "pods/exec", "n")).allowed);
  EXPECT_FALSE(rules.decide(ask("delete", "pods", "n")).allowed);
  EXPECT_FALSE(rules.decide(ask("list", "pods", "m")).allowed);
}

TEST_F(DefaultRolesTest, EditorsWriteAndAdminsGrant) {
  Attributes sandbox = ask("create", "sandboxes", "n");
  sandbox.group = "agents.x-k8s.io";
  Attributes grant = ask("create", "rolebindings", "n");
  grant.group = kRbacGroup;

  EXPECT_TRUE(bound("edit").decide(sandbox).allowed);
  EXPECT_TRUE(bound("edit").decide(ask("get", "pods", "n")).allowed) << "what viewers may";
  EXPECT_FALSE(bound("edit").decide(grant).allowed);
  EXPECT_TRUE(bound("admin").decide(grant).allowed);
  EXPECT_TRUE(bound("admin").decide(sandbox).allowed);
  EXPECT_TRUE(bound("cluster-admin").decide(ask("anything", "at/all", "n")).allowed);
  EXPECT_FALSE(bound("cluster-admin").decide(ask("get", "nodes")).allowed) << "only in n";
}

TEST_F(DefaultRolesTest, NodesReportButCannotGrant) {
  const Rules rules = rules_of(default_roles());
  Attributes wanted = ask("patch", "pods/status", "n");
  wanted.user = {.name = "system:node:a", .groups = {"system:nodes"}};
  EXPECT_TRUE(rules.decide(wanted).allowed);
  wanted.resource = "rolebindings";
  wanted.group = kRbacGroup;
  EXPECT_FALSE(rules.decide(wanted).allowed);
}

}  // namespace
}  // namespace hearth::access
