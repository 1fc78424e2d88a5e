#include "access/reviews.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "access/defaults.h"
#include "access/kubeconfig.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/id.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using namespace std::chrono_literals;

Json parse(std::string_view text) {
  return model::parse_json(text).value;
}

Rules default_rules() {
  const std::vector<Json> objects = default_roles();
  return Rules(sort_by_kind(objects));
}

unsigned code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const model::StatusError& error) {
    return error.status().code;
  }
  return 200;
}

const User kAdmin{
    .name = "admin", .uid = "1", .groups = {"system:masters", "system:authenticated"}};
const User kAlice{.name = "alice", .groups = {"system:authenticated"}};

TEST(ReviewsTest, SelfAccessIsAnsweredInPlace) {
  const Json review =
      parse(R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":)"
            R"({"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}})");

  EXPECT_EQ(model::to_text(review_self_access(review, kAdmin, default_rules())),
            R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",)"
            R"("metadata":{},"spec":{"resourceAttributes":{"namespace":"default","verb":"get",)"
            R"("resource":"pods"}},"status":{"allowed":true}})");
  const Json denied = review_self_access(review, kAlice, default_rules());
  EXPECT_EQ(model::to_text(*model::find(denied, {"status"})), R"({"allowed":false})");
}

TEST(ReviewsTest, PathsCanBeAskedAbout) {
  const Json review =
      parse(R"({"spec":{"nonResourceAttributes":{"path":"/version","verb":"get"}}})");

  const Json answer = review_self_access(review, kAlice, default_rules());

  EXPECT_TRUE(model::is_true_at(answer, {"status", "allowed"}));
  EXPECT_NE(model::text_at(answer, {"status", "reason"}).find("RBAC: allowed by"),
            std::string_view::npos);
}

TEST(ReviewsTest, OthersAccessNeedsASubject) {
  const Rules rules = default_rules();
  const Json group = parse(
      R"({"spec":{"groups":["system:masters"],"resourceAttributes":{"verb":"*","resource":"*"}}})");

  EXPECT_TRUE(model::is_true_at(review_access(group, rules), {"status", "allowed"}));
  EXPECT_EQ(code_of([&] {
              review_access(parse(R"({"spec":{"resourceAttributes":{"verb":"get"}}})"), rules);
            }),
            422U);
}

TEST(ReviewsTest, ALocalReviewStaysInItsNamespace) {
  const Rules rules = default_rules();
  const Json review = parse(
      R"({"spec":{"user":"x","resourceAttributes":{"namespace":"n","verb":"get","resource":"p"}}})");

  const Json answer = review_local_access(review, "n", rules);
  EXPECT_FALSE(model::is_true_at(answer, {"status", "allowed"}));
  EXPECT_EQ(model::text_at(answer, {"metadata", "namespace"}), "n");
  EXPECT_EQ(code_of([&] { review_local_access(review, "m", rules); }), 422U);
}

TEST(ReviewsTest, NonsenseIsRefused) {
  const Rules rules = default_rules();
  for (const std::string_view text :
       {"{}", "7", "null", R"({"spec":7})", R"({"spec":{}})",
        R"({"spec":{"resourceAttributes":7}})",
        R"({"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}})"}) {
    EXPECT_EQ(code_of([&] { review_self_access(parse(text), kAdmin, rules); }), 422U) << text;
    EXPECT_EQ(code_of([&] { review_access(parse(text), rules); }), 422U) << text;
    EXPECT_EQ(code_of([&] { review_self_rules(parse(text), kAdmin, rules); }), 400U) << text;
  }
}

TEST(ReviewsTest, SelfRulesListWhatIsGranted) {
  const Json answer =
      review_self_rules(parse(R"({"spec":{"namespace":"default"}})"), kAlice, default_rules());

  EXPECT_EQ(model::to_text(*model::find(answer, {"spec"})), "{}");
  EXPECT_EQ(model::to_text(*model::find(answer, {"status", "resourceRules"})),
            R"([{"verbs":["create"],"apiGroups":["authorization.k8s.io"],"resources":)"
            R"(["selfsubjectaccessreviews","selfsubjectrulesreviews"]},{"verbs":["create"],)"
            R"("apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"]}])");
  EXPECT_EQ(model::array_at(answer, {"status", "nonResourceRules"})->size(), 2U);
  EXPECT_FALSE(model::is_true_at(answer, {"status", "incomplete"}));
}

TEST(ReviewsTest, SelfReviewSaysWhoOneIs) {
  EXPECT_EQ(model::to_text(review_self(kAdmin, Time(1'700'000'000s))),
            R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":)"
            R"({"creationTimestamp":"2023-11-14T22:13:20Z"},"status":{"userInfo":{"username":)"
            R"("admin","uid":"1","groups":["system:masters","system:authenticated"]}}})");
}

TEST(ReviewsTest, DefaultRolesAreOrdinaryObjects) {
  EXPECT_EQ(model::to_text(default_roles()[2]),
            R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":)"
            R"({"name":"edit","labels":{"kubernetes.io/bootstrapping":"rbac-defaults",)"
            R"("rbac.authorization.k8s.io/aggregate-to-admin":"true"}},"rules":[],)"
            R"("aggregationRule":{"clusterRoleSelectors":[{"matchLabels":)"
            R"({"rbac.authorization.k8s.io/aggregate-to-edit":"true"}}]}})");
}

class KubeconfigTest : public testing::Test {
 protected:
  KubeconfigTest() { std::filesystem::create_directory(folder_); }
  ~KubeconfigTest() override { std::filesystem::remove_all(folder_); }
  KubeconfigTest(const KubeconfigTest&) = delete;
  KubeconfigTest& operator=(const KubeconfigTest&) = delete;

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hearth-kubeconfig-" + random_hex(8));
};

TEST_F(KubeconfigTest, HasClusterUserAndContext) {
  const Json config = model::parse_yaml(kubeconfig_text({.server = "https://127.0.0.1:6443",
                                                         .authority = "PEM",
                                                         .token = "secret: \"#\n",
                                                         .ns = "team-a"}))
                          .value;

  const Json& cluster = (*model::array_at(config, {"clusters"}))[0];
  EXPECT_EQ(model::text_at(cluster, {"cluster", "server"}), "https://127.0.0.1:6443");
  EXPECT_EQ(base64_decode(model::text_at(cluster, {"cluster", "certificate-authority-data"})),
            "PEM");
  const Json& user = (*model::array_at(config, {"users"}))[0];
  EXPECT_EQ(model::text_at(user, {"user", "token"}), "secret: \"#\n") << "hostile text stays text";
  EXPECT_EQ(model::find(user, {"user", "client-key-data"}), nullptr);
  const Json& context = (*model::array_at(config, {"contexts"}))[0];
  EXPECT_EQ(model::text_at(context, {"context", "user"}), model::text_at(user, {"name"}));
  EXPECT_EQ(model::text_at(context, {"context", "namespace"}), "team-a");
  EXPECT_EQ(model::text_at(config, {"current-context"}), model::text_at(context, {"name"}));
}

TEST_F(KubeconfigTest, IsReplacedAtOnceAndPrivate) {
  const std::string path = folder_ / "config";
  std::ofstream(path) << "old";
  std::filesystem::permissions(path, std::filesystem::perms(0644));

  write_kubeconfig(path, {.server = "https://s", .identity = {"CERT", "KEY"}});

  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("client-key-data: \"" + base64_encode("KEY")), std::string::npos) << text;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write_kubeconfig(folder_ / "no" / "config", {}), Error);
  EXPECT_THROW(write_kubeconfig("", {}), Error);
}

}  // namespace
}  // namespace hearth::access
