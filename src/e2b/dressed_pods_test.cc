#include "e2b/dressed_pods.h"

#include <gtest/gtest.h>

#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

TEST(DressedPods, AreKnownWhileTheyRun) {
  World world;
  client::WatchCache pods(world.client(), client::kPods);
  const DressedPods dressed(pods, &world.reach);
  pods.start();
  const std::string id = world.add_member();
  const model::Key key{"default", id};
  ASSERT_TRUE(eventually([&] { return dressed.find(key).has_value(); }));
  EXPECT_EQ(dressed.find(key)->sandbox_uid, model::uid_of(world.sandbox(id)));
  EXPECT_EQ(dressed.find(key)->template_id, "base");
  const auto container = [&] { return dressed.find(key)->container; };
  EXPECT_TRUE(container().starts_with("hearth://"));

  world.node.restart_container("default", id);
  EXPECT_TRUE(eventually([&] { return container().starts_with("hearth://again-"); }));

  world.client().remove(client::kSandboxes, "default", id);
  // Whoever has not heard of that yet makes the pod once more; here nobody collects such ones.
  EXPECT_TRUE(eventually([&] {
    try {
      world.client().remove(client::kPods, "default", id);
    } catch (const Error&) {
      // It is gone.
    }
    return !dressed.find(key);
  }));
  pods.stop();
}

}  // namespace
}  // namespace hearth::e2b
