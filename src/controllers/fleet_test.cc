#include "controllers/fleet.h"

#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "metrics/registry.h"
#include "model/meta.h"
#include "pool/allocator.h"
#include "reconcile/manager.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using apiserver::TestServer;
using model::Json;

constexpr char kSandbox[] = R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
    "metadata":{"namespace":"default","name":"alone"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}})";
constexpr char kTemplate[] = R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxTemplate","metadata":{"namespace":"default","name":"template"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"a"}]}}}})";
constexpr char kPool[] = R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxWarmPool","metadata":{"namespace":"default","name":"pool"},
    "spec":{"replicas":1,"sandboxTemplateRef":{"name":"template"}}})";
constexpr char kClaim[] = R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",
    "kind":"SandboxClaim","metadata":{"namespace":"default","name":"claim"},
    "spec":{"warmPoolRef":{"name":"pool"}}})";
constexpr char kRunning[] = R"({"status":{"phase":"Running","podIP":"10.1.2.3",
    "podIPs":[{"ip":"10.1.2.3"}],"conditions":[{"type":"Ready","status":"True"}]}})";

bool soon(const std::function<bool()>& is_so) {
  for (int i = 0; i < 1000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class FleetTest : public testing::Test {
 protected:
  client::Client& api() { return server_.client(); }
  void start(FleetOptions options) {
    fleet_.emplace(api(), clock_, registry_, std::move(options));
    fleet_->start_caches(30s);
    fleet_->start_controllers();
  }
  std::vector<Json> pods() { return api().list(client::kPods, {.ns = "default"}).items; }
  void run(const Json& pod) {
    api().patch(client::kPods, "default", model::name_of(pod), client::PatchKind::merge,
                json(kRunning), {.subresource = "status"});
  }
  bool is_ready(const client::ResourceId& resource, const char* name) {
    const auto object = api().find(resource, "default", name);
    return object && model::is_condition_true(*object, "Ready");
  }

  TestServer server_;
  SystemClock clock_;
  metrics::Registry registry_;
  std::optional<Fleet> fleet_;
};

TEST_F(FleetTest, FromATemplateToAClaimThatIsReady) {
  start({});
  EXPECT_TRUE(fleet_->is_synced());
  EXPECT_NE(fleet_->allocator(), nullptr);
  api().create(client::kSandboxTemplates, json(kTemplate));
  api().create(client::kSandboxWarmPools, json(kPool));
  ASSERT_TRUE(soon([&] { return pods().size() == 1; }));
  const Json warm = pods().front();
  run(warm);
  const model::Key pool{"default", "pool"};
  ASSERT_TRUE(soon([&] { return fleet_->allocator()->stock(pool).ready == 1; }));
  api().create(client::kSandboxClaims, json(kClaim));
  ASSERT_TRUE(soon([&] { return is_ready(client::kSandboxClaims, "claim"); }));
  const Json claim = api().get(client::kSandboxClaims, "default", "claim");
  EXPECT_EQ(model::text_at(claim, {"status", "sandbox", "name"}), model::name_of(warm));
  EXPECT_TRUE(soon([&] { return pods().size() == 2; })) << "the pool makes up for it";
  EXPECT_TRUE(api().find(client::kNetworkPolicies, "default", "template-network-policy"));
  fleet_->stop();
  const std::string numbers = registry_.render();
  for (const char* name :
       {"agent_sandbox_build_info", "controller_runtime_reconcile_total{controller=\"sandbox\"",
        "workqueue_depth{controller=\"sandboxclaim\"", "controller=\"sandboxwarmpool\"",
        "controller=\"sandboxtemplate\"", "agent_sandboxes{"}) {
    EXPECT_NE(numbers.find(name), std::string::npos) << name;
  }
}

TEST_F(FleetTest, WithoutExtensionsThereAreSandboxesOnly) {
  start({.extensions = false});
  EXPECT_EQ(fleet_->allocator(), nullptr);
  EXPECT_EQ(fleet_->manager().controllers().size(), 1U);
  api().create(client::kSandboxes, json(kSandbox));
  ASSERT_TRUE(soon([&] { return pods().size() == 1; }));
  run(pods().front());
  EXPECT_TRUE(soon([&] { return is_ready(client::kSandboxes, "alone"); }));
}

TEST_F(FleetTest, PodsOfOthersNeedNotBeKnown) {
  FleetOptions options;
  options.controllers.caches_by_label = true;
  start(options);
  api().create(client::kPods, json(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"namespace":"default","name":"other"},
      "spec":{"containers":[{"name":"main","image":"a"}]}})"));
  api().create(client::kSandboxes, json(kSandbox));
  ASSERT_TRUE(soon([&] { return pods().size() == 2; }));
  run(api().get(client::kPods, "default", "alone"));
  EXPECT_TRUE(soon([&] { return is_ready(client::kSandboxes, "alone"); }));
  EXPECT_EQ(fleet_->manager().cache(client::kPods).list().size(), 1U);
}

}  // namespace
}  // namespace hearth::controllers
