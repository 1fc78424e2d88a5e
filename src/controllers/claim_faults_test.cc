// Claims when writes fail, answers are lost, caches are behind, processes end and meet.
#include <random>
#include <set>

#include "controllers/claim_testing.h"

namespace hearth::controllers {
namespace {

const auto kNothing = [](const std::string&) {};

// The process ends right after its nth write: none that follows reaches the server.
void end_after(ClaimWorld& world, unsigned count) {
  auto left = std::make_shared<unsigned>(count);
  world.faulty.before = [left](const std::string&) {
    if (*left == 0) fail(Code::unavailable, "this process has ended");
    --*left;
  };
  world.faulty.after = [left](const std::string&) {
    if (*left == 0) fail(Code::unavailable, "this process has ended");
  };
}

void revive(ClaimWorld& world) {
  world.faulty.before = kNothing;
  world.faulty.after = kNothing;
  world.restart();
}

// Every claim has one sandbox, and every sandbox is somebody's or idle.
void expect_no_double_and_no_leak(ClaimWorld& world) {
  std::map<std::string, std::string> claims;  // by uid
  std::map<std::string, unsigned> owned;
  for (const Json& claim : world.client().list_all(client::kSandboxClaims, {}).items)
    claims[std::string(model::uid_of(claim))] =
        std::string(model::text_at(claim, {"status", "sandbox", "name"}));
  for (const Json& sandbox : world.client().list_all(client::kSandboxes, {}).items) {
    if (model::name_of(sandbox) == "zz-marker" || pool::is_adoptable(sandbox)) continue;
    const auto owner = model::controller_of(sandbox);
    ASSERT_TRUE(owner) << model::name_of(sandbox);
    ASSERT_TRUE(claims.contains(owner->uid)) << model::name_of(sandbox);
    EXPECT_EQ(claims[owner->uid], model::name_of(sandbox));
    EXPECT_EQ(++owned[owner->uid], 1U) << model::name_of(sandbox);
  }
}

TEST(ClaimFaults, AWarmClaimSurvivesTheEndOfItsControllerAfterEachWrite) {
  for (unsigned count = 0; count < 4; ++count) {
    ClaimWorld world;
    world.add_member("pool-a");
    world.add_member("pool-b");
    world.add_claim();
    end_after(world, count);
    try {
      world.pass();
    } catch (const Error&) {
      // as a process that ends
    }
    revive(world);
    for (int i = 0; i < 3; ++i) world.pass();
    EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready") << count;
    EXPECT_EQ(world.owned(), std::vector<std::string>{world.bound()}) << count;
    expect_no_double_and_no_leak(world);
  }
}

TEST(ClaimFaults, AColdClaimSurvivesTheEndOfItsControllerAfterEachWrite) {
  for (unsigned count = 0; count < 3; ++count) {
    ClaimWorld world;
    world.add_claim();
    end_after(world, count);
    try {
      world.pass();
    } catch (const Error&) {
    }
    world.add_member("pool-a");  // must not tempt anybody
    revive(world);
    for (int i = 0; i < 3; ++i) world.pass();
    EXPECT_EQ(world.owned(), std::vector<std::string>{world.bound()}) << count;
    if (count > 0) EXPECT_EQ(world.bound(), "c");
    expect_no_double_and_no_leak(world);
  }
}

TEST(ClaimFaults, ALostAnswerIsAskedForAndNotGuessed) {
  ClaimWorld world;
  world.clock.advance(std::chrono::seconds(-60));
  world.restart();  // claims are younger than it
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.follow_all();
  world.process->sandboxes.stop();  // and the cache does not help
  world.faulty.after = [](const std::string& write) {
    if (write == "patch sandboxes") fail(Code::timeout, "no answer");
  };
  EXPECT_THROW(world.look(), Error);
  EXPECT_EQ(world.owned().size(), 1U);
  world.faulty.after = kNothing;
  follow(world.client(), client::kSandboxClaims, world.process->claims, "c");
  const unsigned lists = world.faulty.lists;
  world.look();
  EXPECT_EQ(world.faulty.lists, lists + 1);
  EXPECT_EQ(world.owned(), std::vector<std::string>{world.bound()});
}

// Many wait when a process begins. Whether they have sandboxes already is one question.
TEST(ClaimFaults, ClaimsFromBeforeAreLookedUpTogether) {
  ClaimWorld world;
  for (const std::string_view name : {"a", "b", "c"})
    world.add_claim(name, R"({"whenEmpty":"Wait"})");
  world.restart();
  world.follow_all();
  const unsigned before = world.faulty.lists;
  world.look("a");
  const unsigned lists = world.faulty.lists;
  EXPECT_GT(lists, before);
  world.look("b");
  world.look("c");
  EXPECT_EQ(world.faulty.lists, lists);
  for (const std::string_view name : {"a", "b", "c"})
    EXPECT_TRUE(world.ready(name).starts_with("False WaitingForWarmPool")) << world.ready(name);
}

// A client that sends a write again, since the first answer was lost, hears of a conflict with
// itself.
TEST(ClaimFaults, AWriteThatMeetsItselfWasMade) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.faulty.after = [](const std::string& write) {
    if (write == "patch sandboxes") throw_injected_conflict();
  };
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.owned(), std::vector<std::string>{world.bound()});
}

TEST(ClaimFaults, ACacheThatIsBehindDoesNotMakeTwo) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.follow_all();
  for (client::WatchCache* cache : world.process->caches()) cache->stop();
  world.look();
  const auto writes = world.faulty.writes().size();
  EXPECT_EQ(world.bound(), "pool-a");
  // The claim still looks new and both members idle.
  for (int i = 0; i < 3; ++i) world.look();
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-a"});
  world.clock.advance(std::chrono::seconds(30));
  world.look();
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-a"});
  EXPECT_EQ(world.faulty.writes().size(), writes);
}

TEST(ClaimFaults, AColdOneIsNotMadeTwiceEither) {
  ClaimWorld world;
  world.add_claim();
  world.follow_all();
  for (client::WatchCache* cache : world.process->caches()) cache->stop();
  world.look();
  world.look();
  EXPECT_EQ(world.owned(), std::vector<std::string>{"c"});
  EXPECT_EQ(std::ranges::count(world.faulty.writes(), "create sandboxes"), 1);
}

TEST(ClaimFaults, TheStatusKeepsItsSandboxInAnyWeather) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.pass();
  world.patch_template(R"({"spec":{"podTemplate":{"metadata":{"labels":{"t":"1"}}}}})");
  world.faulty.before = [](const std::string& write) {
    if (write == "patch sandboxes") fail(Code::unavailable, "rain");
  };
  EXPECT_THROW(world.pass(), Error);
  EXPECT_EQ(world.ready(), "False ReconcilerError: Error seen: rain");
  EXPECT_EQ(world.bound(), "pool-a");
  // A conflict says nothing about the claim.
  world.faulty.before = [](const std::string& write) {
    if (write == "patch sandboxes") throw_injected_conflict();
  };
  EXPECT_THROW(world.pass(), Error);
  EXPECT_EQ(world.ready(), "False ReconcilerError: Error seen: rain");
  world.faulty.before = kNothing;
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
}

TEST(ClaimFaults, AStatusConflictIsNoFailure) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.follow_all();
  world.process->claims.stop();  // somebody changes the claim, and we do not know yet
  world.patch_claim(R"({"metadata":{"annotations":{"note":"x"}}})");
  EXPECT_TRUE(world.look());
  EXPECT_EQ(world.ready(), "none");
  EXPECT_EQ(world.process->metrics.render().find("startup_latency"), std::string::npos);
  world.restart();
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.owned().size(), 1U);
}

TEST(ClaimFaults, OfTwoSandboxesOneStays) {
  ClaimWorld world;
  world.clock.advance(std::chrono::seconds(-60));
  world.restart();
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.follow_all();
  // Another leader, who does not know that it is none any more.
  ClaimProcess other(world.client(), world.faulty, world.clock, {}, nullptr);
  for (client::WatchCache* cache : other.caches()) cache->stop();
  other.allocator->take({.pool = {"default", "pool"}})->keep();  // so that it takes the other one
  world.look();
  other.reconciler.reconcile({"default", "c"});
  ASSERT_EQ(world.owned().size(), 2U);
  EXPECT_EQ(world.bound(), "pool-a");
  world.pass();
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-a"});
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
}

TEST(ClaimFaults, AnotherClaimOfTheNameDoesNotInherit) {
  ClaimWorld world;
  world.server->start();  // somebody has to collect
  world.add_member("pool-a");
  world.add_member("pool-b");
  world.add_claim();
  world.pass();
  world.client().remove(client::kSandboxClaims, "default", "c");
  ASSERT_TRUE(eventually([&] { return !world.has_sandbox("pool-a"); }));
  world.add_claim();
  world.pass();
  EXPECT_EQ(world.bound(), "pool-b");
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-b"});
}

// A third of all writes meets a conflict.
void make_stormy(ClaimWorld& world) {
  struct Weather {
    std::mutex mutex;
    std::mt19937 random{7};
  };
  world.faulty.before = [weather = std::make_shared<Weather>()](const std::string&) {
    const std::lock_guard lock(weather->mutex);
    if (weather->random() % 3 == 0) throw_injected_conflict();
  };
}

bool are_all_bound(ClaimWorld& world) {
  const auto claims = world.client().list_all(client::kSandboxClaims, {.ns = "default"}).items;
  return std::ranges::all_of(claims, [](const Json& claim) {
    return model::name_of(claim) == "zz-claim" ||
           !model::text_at(claim, {"status", "sandbox", "name"}).empty();
  });
}

void wait_for_all(ClaimWorld& world) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(90));
  while (!are_all_bound(world) && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(are_all_bound(world));
}

TEST(ClaimFaults, FiveHundredClaimsOnAHundredSandboxes) {
  ClaimWorld world({.claim_observability_annotations = false});
  for (int i = 0; i < 100; ++i)
    world.add_member("pool-" + std::to_string(i), "10.0.1." + std::to_string(i));
  world.follow_all();
  make_stormy(world);
  world.process->controller.start();
  for (int i = 0; i < 500; ++i) world.add_claim("c" + std::to_string(i));
  wait_for_all(world);
  world.process->controller.stop();
  std::set<std::string> warm;
  unsigned cold = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "c" + std::to_string(i);
    const std::string bound = world.bound(name);
    if (bound == name)
      ++cold;
    else
      EXPECT_TRUE(warm.insert(bound).second) << bound;
  }
  EXPECT_EQ(warm.size(), 100U);
  EXPECT_EQ(cold, 400U);
  expect_no_double_and_no_leak(world);
}

TEST(ClaimFaults, ClaimsSurviveControllersThatComeAndGo) {
  ClaimWorld world;
  for (int i = 0; i < 20; ++i) world.add_member("pool-" + std::to_string(i));
  for (int i = 0; i < 60; ++i) world.add_claim("c" + std::to_string(i));
  for (const unsigned writes : {7U, 20U, 35U}) {
    world.faulty.before = kNothing;
    world.faulty.after = kNothing;
    world.restart();
    auto left = std::make_shared<std::atomic<int>>(static_cast<int>(writes));
    world.faulty.before = [left](const std::string&) {
      if (*left <= 0) fail(Code::unavailable, "this process has ended");
    };
    world.faulty.after = [left](const std::string&) {
      if (--*left <= 0) fail(Code::unavailable, "this process has ended");
    };
    world.process->controller.start();
    ASSERT_TRUE(eventually([&] { return *left <= 0; }));
    world.process->controller.stop();
  }
  revive(world);
  world.process->controller.start();
  wait_for_all(world);
  world.process->controller.stop();
  expect_no_double_and_no_leak(world);
  unsigned warm = 0;
  for (int i = 0; i < 60; ++i)
    if (world.bound("c" + std::to_string(i)).starts_with("pool-")) ++warm;
  EXPECT_EQ(warm, 20U);
}

}  // namespace
}  // namespace hearth::controllers
