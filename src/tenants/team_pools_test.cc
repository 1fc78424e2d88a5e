#include "tenants/team_pools.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "tenants/teams.h"

namespace hearth::tenants {
namespace {

using apiserver::json;
using client::kSandboxWarmPools;

class TeamPoolTest : public testing::Test {
 protected:
  void SetUp() override { create_team(client_, "blue", {}); }
  model::Json pool() { return client_.get(kSandboxWarmPools, "blue", "default.base"); }
  std::int64_t replicas() { return model::number_at(pool(), {"spec", "replicas"}).value_or(-1); }
  void settle(std::uint32_t count) {
    settle_team_pool(client_, "blue", {"default", "base"}, count);
  }

  apiserver::TestServer server_;
  client::Client& client_ = server_.client();
};

TEST_F(TeamPoolTest, IsInTheTeamsNamespaceAndOfTheOthersTemplate) {
  settle(2);
  EXPECT_EQ(model::text_at(pool(), {"spec", "sandboxTemplateRef", "name"}), "default/base");
  EXPECT_EQ(model::annotation_of(pool(), "hearth.dev/sandbox-names"), "id");
  EXPECT_EQ(replicas(), 2);
  EXPECT_TRUE(is_team_pool(pool()));
}

TEST_F(TeamPoolTest, FollowsUntilSomebodyScalesIt) {
  settle(2);
  const std::string before(model::resource_version_of(pool()));
  settle(2);
  EXPECT_EQ(model::resource_version_of(pool()), before) << "nothing to write";
  settle(3);
  EXPECT_EQ(replicas(), 3);
  EXPECT_TRUE(is_team_pool(pool()));
  client_.patch(kSandboxWarmPools, "blue", "default.base", client::PatchKind::merge,
                json(R"({"spec":{"replicas":20}})"));
  EXPECT_FALSE(is_team_pool(pool()));
  settle(2);
  EXPECT_EQ(replicas(), 20);
}

TEST_F(TeamPoolTest, OfItsNameIsNotEnough) {
  client_.create(kSandboxWarmPools, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
    "metadata":{"name":"default.base","namespace":"blue"},
    "spec":{"replicas":5,"sandboxTemplateRef":{"name":"default/base"}}})"));
  EXPECT_FALSE(is_team_pool(pool()));
  settle(2);
  EXPECT_EQ(replicas(), 5);
}

}  // namespace
}  // namespace hearth::tenants
