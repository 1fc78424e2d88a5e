// A pool with its controller running: how it fills, and what it does while members are taken.
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
    return eventually([&] { return count() == replicas; });
  }
  bool says(std::int64_t replicas) {
    return eventually([&] { return model::number_at(world_.status(), {"replicas"}) == replicas; });
  }

  PoolWorld world_;
};

TEST_F(LivePool, FillsAndSaysSoInFewWrites) {
  start(100);
  ASSERT_TRUE(says(100));
  EXPECT_EQ(count(), 100U);
  EXPECT_EQ(world_.watched.creates, 100U);
  EXPECT_LE(world_.reconciler.status_writer().writes(), 60U) << "not one for each member";
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

// Members are taken by several at once, who want the same ones at times; in the end there are
// exactly as many as wanted, and each one that was made is idle or somebody's: nothing was made for
// nothing.
TEST_F(LivePool, NeverMakesMoreThanWereTaken) {
  constexpr unsigned kReplicas = 300;
  constexpr unsigned kTakers = 4;
  constexpr unsigned kEach = 150;
  start(kReplicas);
  ASSERT_TRUE(fills_up_to(kReplicas));
  std::atomic<unsigned> taken = 0;
  std::atomic<bool> is_over = false;
  std::atomic<std::size_t> most = 0;
  std::jthread observer([&] {
    while (!is_over) most = std::max<std::size_t>(most, count());
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
  is_over = true;
  observer.join();
  EXPECT_EQ(taken, kTakers * kEach);
  EXPECT_LE(most, kReplicas);
  EXPECT_EQ(world_.watched.creates, kReplicas + kTakers * kEach);
  EXPECT_EQ(world_.watched.removes, 0U);
}

}  // namespace
}  // namespace hearth::controllers
