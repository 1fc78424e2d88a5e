// A pool with its controller running: how it fills, and what it does while members are taken.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "controllers/warm_pool_testing.h"

namespace hearth::controllers {
namespace {

class LivePool : public testing::Test {
 protected:
  void start(int replicas) {
    world_.client().create(client::kSandboxTemplates, template_named("py"));
    world_.client().create(client::kSandboxWarmPools, pool_named("pool", replicas));
    world_.controller.start();
  }
  std::size_t count() { return world_.members().size(); }
  bool fills_up_to(std::size_t replicas) {
    return eventually([&] { return world_.watched.creates >= replicas && count() == replicas; });
  }
  bool says(std::int64_t replicas) {
    return eventually([&] { return model::number_at(world_.status(), {"replicas"}) == replicas; });
  }

  PoolWorld world_;
};

TEST_F(LivePool, FillsAndSaysSoInFewWrites) {
  const auto began = std::chrono::steady_clock::now();
  start(100);
  ASSERT_TRUE(says(100));
  const auto pauses = (std::chrono::steady_clock::now() - began) / std::chrono::milliseconds(50);
  EXPECT_EQ(count(), 100U);
  EXPECT_EQ(world_.watched.creates, 100U);
  EXPECT_LE(world_.reconciler.status_writer().writes(), static_cast<std::uint64_t>(pauses) + 2)
      << "not one for each member";
}

TEST_F(LivePool, ATakenMemberIsReplacedAtOnce) {
  start(3);
  ASSERT_TRUE(fills_up_to(3));
  for (int i = 0; i < 10; ++i) {
    const unsigned before = world_.watched.creates;
    world_.claim(world_.names()[0]);
    ASSERT_TRUE(eventually([&] { return world_.watched.creates > before; }));
    ASSERT_TRUE(fills_up_to(3));
  }
  EXPECT_EQ(world_.watched.creates, 13U);
  EXPECT_EQ(world_.watched.removes, 0U);
}

// As kubectl scale and an autoscaler do it.
TEST_F(LivePool, FollowsItsScale) {
  start(2);
  ASSERT_TRUE(says(2));
  const auto scale = [&](int replicas) {
    return world_.client().patch(client::kSandboxWarmPools, "default", "pool",
                                 client::PatchKind::merge, {{"spec", {{"replicas", replicas}}}},
                                 {.subresource = "scale"});
  };
  EXPECT_EQ(model::number_at(scale(5), {"status", "replicas"}), 2) << "what is, not what is to be";
  ASSERT_TRUE(says(5));
  EXPECT_EQ(count(), 5U);
  const Json scaled = scale(1);
  EXPECT_EQ(model::text_at(scaled, {"kind"}), "Scale");
  EXPECT_EQ(model::number_at(scaled, {"status", "replicas"}), 5);
  EXPECT_EQ(model::text_at(scaled, {"status", "selector"}),
            "agents.x-k8s.io/warm-pool-sandbox=91dd7983");
  ASSERT_TRUE(says(1));
  ASSERT_TRUE(fills_up_to(1));
}

// A rollout of a template while members are taken.
TEST_F(LivePool, RollsOutWhileMembersAreTaken) {
  world_.client().create(client::kSandboxTemplates, template_named("py"));
  world_.client().create(client::kSandboxWarmPools, pool_named("pool", 20, "Recreate"));
  world_.controller.start();
  ASSERT_TRUE(fills_up_to(20));
  const auto claimed = world_.names();
  world_.patch_template(
      R"({"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"new"}]}}}})");
  std::vector<std::string> taken;
  for (const std::string& name : claimed) {
    try {
      world_.claim(name);
      taken.push_back(name);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::not_found) << "replaced before it was taken";
    }
  }
  ASSERT_TRUE(eventually([&] {
    const auto members = world_.members();
    return members.size() == 20 && std::ranges::all_of(members, [](const Json& member) {
             return model::text_at(member.at_pointer("/spec/podTemplate/spec/containers/0"),
                                   {"image"}) == "new";
           });
  }));
  for (const std::string& name : taken)
    EXPECT_TRUE(world_.client().find(client::kSandboxes, "default", name)) << name;
}

// Members are taken by several at once, who want the same ones at times; in the end there are
// exactly as many as wanted, and each one that was made is idle or somebody's: nothing was made for
// nothing.
TEST_F(LivePool, NeverMakesMoreThanWereTaken) {
  constexpr unsigned kReplicas = 300;
  constexpr unsigned kTakers = 4;
  constexpr unsigned kEach = 60;
  start(kReplicas);
  ASSERT_TRUE(fills_up_to(kReplicas));
  std::atomic<unsigned> taken = 0;
  std::atomic<std::size_t> most = 0;
  std::jthread observer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      most = std::max<std::size_t>(most, count());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  {
    std::vector<std::jthread> takers;
    for (unsigned taker = 0; taker < kTakers; ++taker) {
      takers.emplace_back([&, taker] {
        std::minstd_rand random{taker + 1};
        for (unsigned mine = 0; mine < kEach;) {
          const auto idle = world_.sandboxes.list("default");
          const auto& one = idle[random() % idle.size()];
          if (model::label_of(*one, model::kPoolLabel).empty()) continue;
          try {
            world_.patch_sandbox(model::name_of(*one),
                                 claiming_patch(model::resource_version_of(*one)));
            ++mine;
            ++taken;
          } catch (const Error& error) {
            ASSERT_EQ(error.code(), Code::conflict);
          }
        }
      });
    }
  }
  ASSERT_TRUE(fills_up_to(kReplicas));
  ASSERT_TRUE(says(kReplicas));
  observer.request_stop();
  observer.join();
  EXPECT_EQ(taken, kTakers * kEach);
  EXPECT_LE(most, kReplicas);
  // What was made, not how often that was tried: a name may have been taken already.
  const auto all = world_.client().list_all(client::kSandboxes, {.ns = "default"}).items;
  EXPECT_EQ(
      std::ranges::count_if(all,
                            [](const Json& each) {
                              return !model::text_at(each, {"metadata", "generateName"}).empty();
                            }),
      kReplicas + kTakers * kEach);
  EXPECT_EQ(world_.watched.removes, 0U);
}

TEST_F(LivePool, ATemplateOfAnotherNamespaceWakesIt) {
  world_.client().create(client::kNamespaces, json(R"({"apiVersion":"v1","kind":"Namespace",
      "metadata":{"name":"shared"}})"));
  Json lent = template_named("py");
  lent.at("metadata").as_object()["namespace"] = "shared";
  world_.client().create(client::kSandboxTemplates, lent);
  world_.client().create(client::kSandboxWarmPools, pool_named("pool", 2, {}, "shared/py"));
  world_.controller.start();
  ASSERT_TRUE(eventually([&] { return model::find(world_.status(), {"selector"}) != nullptr; }));
  EXPECT_EQ(count(), 0U);
  world_.client().patch(client::kSandboxTemplates, "shared", "py", client::PatchKind::merge,
                        json(R"({"metadata":{"labels":{"hearth.dev/public":"true"}}})"));
  ASSERT_TRUE(fills_up_to(2));
  world_.client().remove(client::kSandboxTemplates, "shared", "py");
  ASSERT_TRUE(eventually([&] { return count() == 0; }));
}

}  // namespace
}  // namespace hearth::controllers
