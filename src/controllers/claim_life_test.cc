// How claims wait, end and are left.
#include <algorithm>

#include "base/time_text.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_testing.h"

namespace hearth::controllers {
namespace {

using model::text_at;

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

TEST(ClaimLife, RetainedOnesStayWithoutTheirSandbox) {
  ClaimWorld world;
  world.add_member("pool-a");
  const std::string end = format_rfc3339(world.clock.now() + std::chrono::seconds(60));
  world.add_claim("c", R"({"lifecycle":{"shutdownTime":")" + end + R"("}})");
  const auto again = world.pass();
  ASSERT_TRUE(again);
  EXPECT_LE(*again, std::chrono::seconds(60));
  world.clock.advance(std::chrono::seconds(61));
  EXPECT_EQ(world.pass(), std::chrono::milliseconds(1));
  EXPECT_EQ(world.ready(), "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
  EXPECT_TRUE(world.has_sandbox("pool-a"));  // the status comes first
  world.pass();
  EXPECT_FALSE(world.has_sandbox("pool-a"));
  world.pass();
  EXPECT_EQ(world.bound(), "");
  EXPECT_EQ(world.ready(), "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
  EXPECT_TRUE(has(world.told(), "ClaimExpired/Claim Expired: Claim expired"));
  const auto writes = world.faulty.writes().size();
  world.pass();
  EXPECT_EQ(world.faulty.writes().size(), writes);
}

TEST(ClaimLife, OneThatIsSettledIsLookedAtAgainWhenSomethingChanges) {
  ClaimWorld world({.claim_observability_annotations = false});
  world.add_member("pool-a");
  const std::string end = format_rfc3339(world.clock.now() + std::chrono::seconds(60));
  world.add_claim("c", R"({"lifecycle":{"shutdownTime":")" + end + R"("}})");
  const auto first = world.pass();
  ASSERT_TRUE(first);
  const std::string version(model::resource_version_of(world.claim()));
  // Its own writes are no news, and its end is not forgotten over them.
  world.clock.advance(std::chrono::seconds(10));
  EXPECT_EQ(world.pass(), *first - std::chrono::seconds(10));
  EXPECT_EQ(model::resource_version_of(world.claim()), version);

  world.patch_claim(R"({"status":{"conditions":null}})", "c", "status");
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");

  world.set_sandbox("pool-a", "10.0.0.2", "False", "DependenciesNotReady", "Pod is gone");
  world.pass();
  EXPECT_EQ(world.ready(), "False DependenciesNotReady: Pod is gone");
}

TEST(ClaimLife, DeletedOnesTakeTheirSandboxAlong) {
  ClaimWorld world;
  world.server->start();  // somebody has to collect
  world.add_member("pool-a");
  world.add_claim("c", R"({"lifecycle":{"shutdownTime":"2020-01-01T00:00:00Z",
    "shutdownPolicy":"DeleteForeground"}})");
  world.pass();
  EXPECT_EQ(world.ready(), "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
  world.pass();
  EXPECT_TRUE(
      eventually([&] { return !world.client().find(client::kSandboxClaims, "default", "c"); }));
  EXPECT_TRUE(
      has(world.told(), "ClaimExpired/Deleting: Deleting Claim (ShutdownPolicy=DeleteForeground)"));
  EXPECT_TRUE(world.has_sandbox("pool-a"));  // never adopted
}

TEST(ClaimLife, AnExpiredOneNeverDeletesWhatIsNotItsOwn) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("c", R"({"lifecycle":{"shutdownTime":"2020-01-01T00:00:00Z"}})");
  world.patch_claim(R"({"status":{"sandbox":{"name":"pool-a"}}})", "c", "status");
  world.pass();
  world.patch_claim(R"({"status":{"sandbox":{"name":"pool-a"}}})", "c", "status");
  world.pass();
  EXPECT_TRUE(world.has_sandbox("pool-a"));
  EXPECT_EQ(world.ready(),
            "False ClaimExpired: Claim expired. sandbox not owned by this claim: sandbox "
            "\"pool-a\" is not owned by claim \"c\"; deletion skipped.");
  EXPECT_EQ(world.bound(), "");
}

TEST(ClaimLife, FinishedIsMirroredAndCounts) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("c", R"({"lifecycle":{"ttlSecondsAfterFinished":10}})");
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  world.set_sandbox("pool-a", "", "False", "PodSucceeded", "Pod completed successfully",
                    "PodSucceeded");
  const auto again = world.pass();
  ASSERT_TRUE(again);
  EXPECT_LE(*again, std::chrono::seconds(10));
  EXPECT_TRUE(model::is_condition_true(world.claim(), "Finished"));
  world.clock.advance(std::chrono::seconds(11));
  world.pass();
  world.pass();
  world.pass();
  EXPECT_FALSE(world.has_sandbox("pool-a"));
  EXPECT_TRUE(model::is_condition_true(world.claim(), "Finished"));
  EXPECT_EQ(world.ready(), "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
}

TEST(ClaimLife, ATimeToLiveOfZeroEndsInTheSamePass) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim("c", R"({"lifecycle":{"ttlSecondsAfterFinished":0}})");
  world.pass();
  world.set_sandbox("pool-a", "", "False", "PodSucceeded", "m", "PodSucceeded");
  EXPECT_EQ(world.pass(), std::chrono::milliseconds(1));
  EXPECT_EQ(world.ready(), "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
  EXPECT_TRUE(model::is_condition_true(world.claim(), "Finished"));
}

TEST(ClaimLife, LeasesEndWithoutRenewal) {
  ClaimWorld world;
  world.server->start();
  world.add_member("pool-a");
  world.add_claim("c", R"({"lifecycle":{"leaseDurationSeconds":30,"shutdownPolicy":"Delete"}})");
  world.pass();
  world.clock.advance(std::chrono::seconds(29));
  world.patch_claim(R"({"metadata":{"annotations":{"hearth.dev/renewed-at":")" +
                    format_rfc3339(world.clock.now()) + R"("}}})");
  world.clock.advance(std::chrono::seconds(20));
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  world.clock.advance(std::chrono::seconds(20));
  world.pass();
  world.pass();
  EXPECT_TRUE(eventually([&] { return !world.has_sandbox("pool-a"); }));
  EXPECT_FALSE(world.client().find(client::kSandboxClaims, "default", "c"));
}

TEST(ClaimLife, PoolsSayWhatBecomesOfClaimsThatDoNot) {
  ClaimWorld world;
  world.client().patch(
      client::kSandboxWarmPools, "default", "pool", client::PatchKind::merge,
      json(R"({"spec":{"claimDefaults":{"lifecycle":{"shutdownAfterSeconds":60}}}})"));
  world.add_claim();
  const auto again = world.pass();
  ASSERT_TRUE(again);
  EXPECT_LE(*again, std::chrono::seconds(61));
}

TEST(ClaimLife, FailOnAnEmptyPoolIsFinal) {
  ClaimWorld world;
  world.add_claim("c", R"({"whenEmpty":"Fail"})");
  EXPECT_EQ(world.pass(), reconcile::kWhenChanged);
  EXPECT_EQ(world.ready(), R"(False WarmPoolEmpty: SandboxWarmPool "pool" has no sandbox to give)");
  world.add_member("pool-a");
  world.pass();
  EXPECT_EQ(world.bound(), "");
  world.patch_claim(R"({"spec":{"priority":1}})");  // asked again
  world.pass();
  EXPECT_EQ(world.bound(), "pool-a");
}

TEST(ClaimLife, WaitersAreServedInTurnAndByPriority) {
  ClaimWorld world;
  world.add_claim("low", R"({"whenEmpty":"Wait"})");
  world.add_claim("high", R"({"whenEmpty":"Wait","priority":5})");
  world.pass("low");
  world.pass("high");
  EXPECT_EQ(world.ready("low"),
            R"(False WaitingForWarmPool: Waiting for a sandbox of SandboxWarmPool "pool")");
  EXPECT_EQ(world.process->allocator->stock({"default", "pool"}).waiting, 2U);
  // Looking again does not lose its place.
  world.pass("low");
  EXPECT_EQ(world.process->allocator->stock({"default", "pool"}).waiting, 2U);
  world.add_member("pool-a");
  ASSERT_TRUE(eventually([&] { return world.process->controller.queue().size() > 0; }));
  world.pass("low");
  world.pass("high");
  EXPECT_EQ(world.bound("high"), "pool-a");
  EXPECT_EQ(world.bound("low"), "");
  // Who goes leaves the line.
  world.client().remove(client::kSandboxClaims, "default", "low");
  world.pass("low");
  EXPECT_EQ(world.process->allocator->stock({"default", "pool"}).waiting, 0U);
}

TEST(ClaimLife, WhoWaitedInVainIsTold) {
  ClaimWorld world;
  world.add_claim("c", R"({"whenEmpty":"Wait","waitSeconds":1})");
  world.clock.advance(std::chrono::seconds(5));  // its time counts from its making
  world.pass();
  ASSERT_TRUE(eventually([&] { return world.process->controller.queue().size() > 0; }));
  world.pass();
  EXPECT_EQ(world.ready(),
            "False WarmPoolEmpty: SandboxWarmPool \"pool\" has no sandbox to give "
            "within the time the claim waits");
}

}  // namespace
}  // namespace hearth::controllers
