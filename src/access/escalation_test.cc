#include "access/escalation.h"

#include <gtest/gtest.h>

#include "model/status.h"

namespace hearth::access {
namespace {

Json parse(std::string_view text) {
  return model::parse_json(text).value;
}

// alice may get and list pods and write roles and bindings in "n"; carol may also escalate and
// bind.
class EscalationTest : public testing::Test {
 protected:
  EscalationTest() {
    objects_ = {
        parse(R"({"kind":"Role","metadata":{"namespace":"n","name":"dev"},"rules":[
              {"verbs":["get","list"],"apiGroups":[""],"resources":["pods","*/log"]},
              {"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["mine"]},
              {"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["nothing"]}]})"),
        parse(R"({"kind":"Role","metadata":{"namespace":"n","name":"grants"},"rules":[
              {"verbs":["escalate","bind"],"apiGroups":["rbac.authorization.k8s.io"],
               "resources":["roles","clusterroles"]}]})"),
        parse(R"({"kind":"ClusterRole","metadata":{"name":"strong"},"rules":[
              {"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]})"),
        parse(R"({"kind":"ClusterRole","metadata":{"name":"urls"},"rules":[
              {"verbs":["get"],"nonResourceURLs":["/logs/*"]}]})"),
        parse(R"({"kind":"RoleBinding","metadata":{"namespace":"n","name":"a"},
              "roleRef":{"kind":"Role","name":"dev"},"subjects":[{"kind":"User","name":"alice"}]})"),
        parse(R"({"kind":"ClusterRoleBinding","metadata":{"name":"u"},
              "roleRef":{"kind":"ClusterRole","name":"urls"},
              "subjects":[{"kind":"User","name":"alice"}]})"),
        parse(R"({"kind":"RoleBinding","metadata":{"namespace":"n","name":"c"},
              "roleRef":{"kind":"Role","name":"grants"},"subjects":[{"kind":"User","name":"carol"}]})"),
    };
    rules_ = Rules(sort_by_kind(objects_));
  }

  // The status of what check_escalation() throws; code 200 if it lets pass.
  model::Status check(const Json& object, const Json* old = nullptr) const {
    try {
      check_escalation(user_, object, old, rules_);
    } catch (const model::StatusError& error) {
      return error.status();
    }
    return {.code = 200};
  }
  unsigned check_role(std::string_view rules, std::string_view kind = "Role") const {
    return check(role(rules, kind)).code;
  }
  static Json role(std::string_view rules, std::string_view kind = "Role") {
    Json made = parse(R"({"metadata":{"name":"x","namespace":"n"}})");
    made.as_object()["kind"] = kind;
    made.as_object()["rules"] = parse(rules);
    if (kind == "ClusterRole") model::erase_at(made, {"metadata", "namespace"});
    return made;
  }
  static Json binding(std::string_view kind, std::string_view role_kind, std::string_view name) {
    Json made = parse(R"({"metadata":{"name":"x","namespace":"n"}})");
    made.as_object()["kind"] = kind;
    made.as_object()["roleRef"] = JsonObject{{"kind", role_kind}, {"name", name}};
    return made;
  }

  std::vector<Json> objects_;
  Rules rules_;
  User user_{.name = "alice", .groups = {"system:authenticated"}};
};

TEST_F(EscalationTest, WhatOneHasOneMayGrant) {
  EXPECT_EQ(check_role(R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])"), 200U);
  EXPECT_EQ(check_role(R"([{"verbs":["list"],"apiGroups":[""],"resources":["pods/log"]}])"), 200U);
  EXPECT_EQ(check_role(R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"],)"
                       R"("resourceNames":["one"]}])"),
            200U);
  EXPECT_EQ(check_role(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],)"
                       R"("resourceNames":["mine"]}])"),
            200U);
  EXPECT_EQ(check_role("[]"), 200U);
  EXPECT_EQ(check(binding("RoleBinding", "Role", "dev")).code, 200U);
}

TEST_F(EscalationTest, WhatOneLacksOneMayNot) {
  for (
      const std::string_view rules :
      {R"([{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods"]}])",
       R"([{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}])",
       R"([{"verbs":["get"],"apiGroups":["*"],"resources":["pods"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["*"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["*/exec"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["mine","yours"]}])",
       R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":[""]}])"})
    EXPECT_EQ(check_role(rules), 403U) << rules;
  EXPECT_EQ(check(binding("RoleBinding", "ClusterRole", "strong")).code, 403U);
  EXPECT_EQ(
      check_role(R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])", "ClusterRole"),
      403U)
      << "held in one namespace only";
}

TEST_F(EscalationTest, PathsAreCoveredByTheirStart) {
  EXPECT_EQ(
      check_role(R"([{"verbs":["get"],"nonResourceURLs":["/logs/a","/logs/b/*"]}])", "ClusterRole"),
      200U);
  EXPECT_EQ(check_role(R"([{"verbs":["get"],"nonResourceURLs":["/logs"]}])", "ClusterRole"), 403U);
  EXPECT_EQ(check_role(R"([{"verbs":["get"],"nonResourceURLs":["*"]}])", "ClusterRole"), 403U);
}

TEST_F(EscalationTest, TheMessageSaysWhatIsMissing) {
  const model::Status status =
      check(role(R"([{"verbs":["get","delete","patch"],"apiGroups":[""],"resources":["pods"]}])"));

  EXPECT_EQ(status.message,
            "roles.rbac.authorization.k8s.io \"x\" is forbidden: user \"alice\" "
            "(groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not "
            "currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" "
            "\"patch\"]}");
}

TEST_F(EscalationTest, EscalateAndBindAreTheWayAround) {
  user_.name = "carol";

  EXPECT_EQ(check_role(R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])"), 200U);
  EXPECT_EQ(check(binding("RoleBinding", "ClusterRole", "strong")).code, 200U);
  EXPECT_EQ(check(binding("ClusterRoleBinding", "ClusterRole", "strong")).code, 403U)
      << "she may in one namespace only";
  user_ = {.name = "root", .groups = {"system:masters"}};
  EXPECT_EQ(check(binding("ClusterRoleBinding", "ClusterRole", "strong")).code, 200U);
}

TEST_F(EscalationTest, ABindingNeedsItsRole) {
  const model::Status status = check(binding("RoleBinding", "Role", "gone"));

  EXPECT_EQ(status.code, 404U);
  EXPECT_EQ(status.message, "roles.rbac.authorization.k8s.io \"gone\" not found");
  Json loose = binding("RoleBinding", "Role", "urls");
  model::erase_at(loose, {"metadata", "namespace"});
  EXPECT_EQ(check(loose).code, 400U) << "urls is a ClusterRole, and no Role";
}

TEST_F(EscalationTest, OnlyTheMightyGatherRoles) {
  Json gathering = role("[]", "ClusterRole");
  gathering.as_object()["aggregationRule"] =
      parse(R"({"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]})");
  const Json plain = role("[]", "ClusterRole");

  EXPECT_EQ(check(gathering).code, 403U);
  EXPECT_EQ(check(plain, &gathering).code, 403U) << "nor stop it";
  EXPECT_EQ(check(plain).code, 200U);
}

TEST_F(EscalationTest, GarbageCollectionIsNotStopped) {
  Json old = role(R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}])");
  Json next = old;
  model::make_object_at(next, {"metadata"})["finalizers"] = JsonArray();
  EXPECT_EQ(check(next, &old).code, 200U);
  model::make_object_at(next, {"metadata"})["labels"] = JsonObject{{"a", "b"}};
  EXPECT_EQ(check(next, &old).code, 403U);
}

TEST_F(EscalationTest, HugeRolesAreRefusedQuickly) {
  JsonArray words;
  for (int i = 0; i < 1000; ++i) words.emplace_back(std::to_string(i));
  Json huge = role("[{}]");
  JsonObject& rule = huge.as_object()["rules"].as_array()[0].as_object();
  rule = {{"apiGroups", words}, {"resources", words}, {"resourceNames", words}};

  EXPECT_EQ(check(huge).code, 200U) << "no verbs, no rights";
  rule["verbs"] = words;
  EXPECT_EQ(check(huge).code, 403U);
}

TEST_F(EscalationTest, OtherKindsPass) {
  EXPECT_EQ(check(parse(R"({"kind":"Pod"})")).code, 200U);
  EXPECT_EQ(check(parse("7")).code, 200U);
}

}  // namespace
}  // namespace hearth::access
