#include "e2b/team_pools.h"

#include "e2b/birth.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

using client::kSandboxTemplates;
using client::kSandboxWarmPools;
using std::chrono_literals::operator""min;

Options two_each() {
  Options options = quick_options();
  options.team_warm = 2;
  options.team_idle = 15min;
  return options;
}

std::optional<Json> pool_in(client::Client& client, std::string_view ns,
                            std::string_view name = "default.base") {
  return client.find(kSandboxWarmPools, ns, name);
}

// Driven by hand: its caches follow the server, its controller does not run.
class TeamPoolsTest : public testing::Test {
 protected:
  void SetUp() override {
    tenants::create_team(client_, "blue", {});
    add_template("base", true);
    start(two_each());
  }
  void TearDown() override { manager_->stop(); }

  void start(const Options& options) {
    manager_ = std::make_unique<reconcile::Manager>(client_);
    core_ = std::make_unique<Core>(Parts{.client = client_,
                                         .manager = *manager_,
                                         .keys = keys_,
                                         .tokens = tokens_,
                                         .clock = clock_,
                                         .metrics = metrics_},
                                   options);
    index_pools(core_->pools);
    pools_ = std::make_unique<TeamPools>(*core_);
    pools_->add_to(*manager_);
    manager_->start_caches(std::chrono::seconds(30));
  }
  // Another process in the place of this one.
  void restart(const Options& options) {
    manager_->stop();
    pools_.reset();
    core_.reset();
    start(options);
  }

  Json template_named(std::string_view name) const {
    return client_.get(kSandboxTemplates, "default", name);
  }
  void add_template(std::string_view name, bool is_public) {
    Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
        "kind":"SandboxTemplate","metadata":{"namespace":"default"},
        "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"host"}]}}}})");
    made.at("metadata").as_object()["name"] = name;
    if (is_public) made.at("metadata").as_object()["labels"] = {{"hearth.dev/public", "true"}};
    client_.create(kSandboxTemplates, made);
    if (core_)
      ASSERT_TRUE(eventually([&] { return core_->templates.find("default", name) != nullptr; }));
  }
  // A create of the team: noted, and looked at.
  void use(std::string_view name = "base", std::string_view ns = "blue",
           std::optional<model::Key> pool = {}) {
    Birth birth;
    birth.ns = ns;
    birth.pool = std::move(pool);
    pools_->note_use(birth, template_named(name));
    look("default." + std::string(name), ns);
  }
  // With caches that show the pool as it is.
  reconcile::Next look(std::string_view name = "default.base", std::string_view ns = "blue") {
    EXPECT_TRUE(eventually([&] {
      const auto there = pool_in(client_, ns, name);
      const auto here = core_->pools.find(ns, name);
      if (!there || !here) return !there && !here;
      return model::resource_version_of(*there) == model::resource_version_of(*here);
    }));
    return pools_->reconcile({std::string(ns), std::string(name)});
  }
  bool has_pool(std::string_view name = "default.base", std::string_view ns = "blue") {
    return pool_in(client_, ns, name).has_value();
  }

  apiserver::TestServer server_;
  client::Client& client_ = server_.client();
  ManualClock clock_{SystemClock().now()};
  metrics::Registry metrics_;
  tenants::ApiKeys keys_{client_, clock_};
  tenants::SandboxTokens tokens_{tenants::load_token_seed(client_)};
  std::unique_ptr<reconcile::Manager> manager_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<TeamPools> pools_;
};

TEST_F(TeamPoolsTest, AreMadeWithTheFirstUse) {
  EXPECT_FALSE(look());
  EXPECT_FALSE(has_pool());
  use();
  EXPECT_TRUE(has_pool());
  EXPECT_FALSE(has_pool("default.base", "default")) << "whose template it is has its own";
}

TEST_F(TeamPoolsTest, OfATeamsOwnTemplateAreItsOwnBusiness) {
  use("base", "default");
  EXPECT_FALSE(has_pool("default.base", "default"));
}

TEST_F(TeamPoolsTest, GoWhenNobodyCreatedForAWhile) {
  use();
  clock_.advance(14min);
  EXPECT_EQ(look(), Duration(1min));
  use();
  clock_.advance(14min);
  EXPECT_EQ(look(), Duration(1min)) << "from the last create on";
  clock_.advance(1min);
  EXPECT_FALSE(look());
  EXPECT_FALSE(has_pool());
  use();
  EXPECT_TRUE(has_pool()) << "and come back";
}

TEST_F(TeamPoolsTest, GoWithTheTemplateThatIsPublicNoMore) {
  use();
  client_.patch(kSandboxTemplates, "default", "base", client::PatchKind::merge,
                json(R"({"metadata":{"labels":{"hearth.dev/public":null}}})"));
  ASSERT_TRUE(eventually([&] {
    return model::label_of(*core_->templates.find("default", "base"), "hearth.dev/public").empty();
  }));
  look();
  EXPECT_FALSE(has_pool());
  use();
  EXPECT_FALSE(has_pool());
}

TEST_F(TeamPoolsTest, GoWithTheTemplate) {
  use();
  client_.remove(kSandboxTemplates, "default", "base");
  ASSERT_TRUE(eventually([&] { return core_->templates.find("default", "base") == nullptr; }));
  look();
  EXPECT_FALSE(has_pool());
}

TEST_F(TeamPoolsTest, OfOneTeamAreFew) {
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  for (const std::string& each : names) {
    add_template(each, true);
    use(each);
  }
  EXPECT_TRUE(has_pool("default.d"));
  EXPECT_FALSE(has_pool("default.e"));
  tenants::create_team(client_, "green", {});
  use("e", "green");
  EXPECT_TRUE(has_pool("default.e", "green"));
  clock_.advance(15min);
  for (const std::string& each : names) look("default." + each);
  use("e");
  EXPECT_TRUE(has_pool("default.e")) << "there is room again";
}

TEST_F(TeamPoolsTest, WhatSomebodyHasScaledIsHis) {
  use();
  client_.patch(kSandboxWarmPools, "blue", "default.base", client::PatchKind::merge,
                json(R"({"spec":{"replicas":20}})"));
  clock_.advance(60min);
  look();
  restart(quick_options());
  look();
  ASSERT_TRUE(has_pool());
  EXPECT_EQ(model::number_at(*pool_in(client_, "blue"), {"spec", "replicas"}), 20);
}

TEST_F(TeamPoolsTest, WhoHasOneOfHisOwnNeedsNone) {
  client_.create(kSandboxWarmPools, json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
      "kind":"SandboxWarmPool","metadata":{"namespace":"blue","name":"ours",
        "annotations":{"hearth.dev/sandbox-names":"id"}},
      "spec":{"replicas":1,"sandboxTemplateRef":{"name":"default/base"}}})"));
  ASSERT_TRUE(eventually([&] { return core_->pools.find("blue", "ours") != nullptr; }));
  use("base", "blue", model::Key{"blue", "ours"});
  use();
  EXPECT_FALSE(has_pool());
}

TEST_F(TeamPoolsTest, AnotherProcessGoesOn) {
  use();
  clock_.advance(14min);
  Options three = two_each();
  three.team_warm = 3;
  restart(three);
  EXPECT_EQ(look(), Duration(15min)) << "nobody knows who created when";
  EXPECT_EQ(model::number_at(*pool_in(client_, "blue"), {"spec", "replicas"}), 3);
  restart(quick_options());
  look();
  EXPECT_FALSE(has_pool()) << "without teams' pools";
  use();
  EXPECT_FALSE(has_pool());
}

TEST_F(TeamPoolsTest, ATeamThatEndsGetsNone) {
  client_.remove(client::kNamespaces, "", "blue");
  use();
  EXPECT_FALSE(has_pool());
  EXPECT_FALSE(look()) << "and is not tried again";
}

TEST(E2bTeamPools, FromTheSecondOnCreatesOfOtherTeamsAreWarm) {
  World world(two_each());
  const std::string cold = world.create(R"({"templateID":"base"})", world.blue);
  EXPECT_EQ(model::label_of(world.sandbox(cold, "blue"), model::kLaunchTypeLabel), "cold");
  ASSERT_TRUE(eventually([&] { return pool_in(world.client(), "blue").has_value(); }));
  const std::string of_others = world.add_member();
  const std::string warm = world.add_member("default.base", "blue");
  EXPECT_EQ(world.create(R"({"templateID":"base"})", world.blue), warm);
  const Answer shown = world.ask("GET", "/sandboxes/" + warm, "", world.blue);
  EXPECT_EQ(shown.text("templateID"), "base");
  EXPECT_EQ(model::namespace_of(world.sandbox(of_others)), "default");
  EXPECT_FALSE(model::label_of(world.sandbox(of_others), model::kPoolLabel).empty());
}

TEST(E2bTeamPools, WhatWaitsIsNoneOfTheTeamsSandboxes) {
  World world(two_each());
  const std::string blue =
      world.keys.issue({.team = "blue", .name = "two", .limits = {.sandboxes = 2}, .expires = {}})
          .key;
  world.create(R"({"templateID":"base"})", blue);
  ASSERT_TRUE(eventually([&] { return pool_in(world.client(), "blue").has_value(); }));
  world.add_member("default.base", "blue");
  world.add_member("default.base", "blue");
  world.create(R"({"templateID":"base"})", blue);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})", blue).status, 429U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes", "", blue).body.as_array().size(), 2U);
}

TEST(E2bTeamPools, WhatIsPrivateIsNotServedWhateverWaits) {
  World world(two_each());
  world.client().create(kSandboxWarmPools, json(R"({
      "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
      "metadata":{"namespace":"blue","name":"default.private",
        "annotations":{"hearth.dev/sandbox-names":"id"}},
      "spec":{"replicas":1,"sandboxTemplateRef":{"name":"default/private"}}})"));
  world.add_member("default.private", "blue");
  for (const char* body : {R"({"templateID":"private"})", R"({"templateID":"default/private"})"})
    EXPECT_EQ(world.ask("POST", "/v2/sandboxes", body, world.blue).status, 404U) << body;
}

}  // namespace
}  // namespace hearth::e2b
