// Claims that are bound as they are made: on a real server that asks the reconciler.
#include <algorithm>
#include <set>
#include <thread>

#include "base/time_text.h"
#include "controllers/claim_testing.h"

namespace hearth::controllers {
namespace {

using model::text_at;

// One whose server and controller are one process.
struct WelcomingWorld : ClaimWorld {
  explicit WelcomingWorld(Options wanted = {}, pool::Outfitter* outfitter = nullptr)
      : ClaimWorld(std::move(wanted), outfitter) {
    begin();
  }
  WelcomingWorld(const WelcomingWorld&) = delete;
  WelcomingWorld& operator=(const WelcomingWorld&) = delete;
  ~WelcomingWorld() { server->welcome(client::kSandboxClaims, {}); }

  void begin() {
    reconciler().begin();
    server->welcome(client::kSandboxClaims,
                    [this](const Json& claim) { return reconciler().welcome(claim); });
  }
  void add_members(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) add_member(name);
    follow_all();
  }
};

// status.sandbox.name of what a create answered.
std::string_view bound_in(const Json& answer) {
  return text_at(answer, {"status", "sandbox", "name"});
}

std::uint64_t version_of(const Json& object) {
  return std::stoull(std::string(model::resource_version_of(object)));
}

TEST(ClaimWelcome, AWarmOneIsReadyInTheAnswer) {
  WelcomingWorld world;
  world.add_member("pool-a", "10.0.0.7");
  world.follow_all();
  const Json made = world.add_claim();

  EXPECT_TRUE(model::is_condition_true(made, "Ready"));
  EXPECT_EQ(bound_in(made), "pool-a");
  EXPECT_EQ(model::to_text(*model::find(made, {"status", "sandbox", "podIPs"})), R"(["10.0.0.7"])");
  const Json sandbox = world.sandbox("pool-a");
  EXPECT_TRUE(model::is_controlled_by(sandbox, model::uid_of(made)));
  EXPECT_EQ(model::label_of(sandbox, model::kPoolLabel), "");
  EXPECT_EQ(model::label_of(sandbox, model::kClaimUidLabel), model::uid_of(made));
  // Two writes, and nobody's between them.
  EXPECT_EQ(version_of(made), version_of(sandbox) + 1);
}

// As a pass over a claim would have left both.
TEST(ClaimWelcome, IsTheSameAsWhatAPassMakes) {
  const auto bind = [](ClaimWorld& world) {
    world.add_member("pool-a");
    world.follow_all();
    world.add_claim("c", R"({"additionalPodMetadata":{"labels":{"sandbox.users.io/a":"b"}}})");
    world.pass();
    Json claim = world.claim();
    Json sandbox = world.sandbox("pool-a");
    const std::string uid(model::uid_of(claim));
    std::string both = model::to_text(claim.at("status")) + model::to_text(sandbox.at("spec")) +
                       model::to_text(sandbox.at("metadata").at("labels")) +
                       model::to_text(sandbox.at("metadata").at("annotations")) +
                       model::to_text(sandbox.at("metadata").at("ownerReferences"));
    for (std::size_t at = both.find(uid); at != std::string::npos; at = both.find(uid))
      both.replace(at, uid.size(), "UID");
    // Both worlds begin at another second.
    for (std::size_t at = both.find("Time\":\""); at != std::string::npos;
         at = both.find("Time\":\"", at + 1))
      both.replace(at + 7, 20, "");
    return both;
  };
  ClaimWorld plain({.claim_observability_annotations = false});
  WelcomingWorld welcoming({.claim_observability_annotations = false});
  EXPECT_EQ(bind(welcoming), bind(plain));
}

TEST(ClaimWelcome, ALaterPassHasNothingToWrite) {
  WelcomingWorld world({.claim_observability_annotations = false});
  world.add_members({"pool-a"});
  world.add_claim();
  world.look();  // before its cache has heard of the sandbox, perhaps
  world.pass();
  EXPECT_EQ(world.faulty.writes(), std::vector<std::string>());
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-a"});
  world.restart();
  world.pass();
  EXPECT_EQ(world.faulty.writes(), std::vector<std::string>());
  world.begin();
}

TEST(ClaimWelcome, IsToldAndMeasuredLikeAnyOther) {
  WelcomingWorld world;
  world.add_members({"pool-a"});
  world.add_claim();
  world.pass();
  const auto told = world.told();
  EXPECT_EQ(
      std::ranges::count(told, R"(SandboxAdopted/Adoption: Adopted warm pool Sandbox "pool-a")"),
      1);
  const std::string metrics = world.process->metrics.render();
  EXPECT_NE(metrics.find("agent_sandbox_claim_controller_startup_latency_ms_count{"
                         "launch_type=\"warm\",sandbox_template=\"py\"} 1\n"),
            std::string::npos);
  // And says when it was Ready, with the other annotations.
  const Json claim = world.claim();
  EXPECT_NE(model::annotation_of(claim, model::kFirstReadyAnnotation), "");
  EXPECT_NE(model::annotation_of(claim, model::kFirstReadyAnnotation), "unknown");
  EXPECT_EQ(model::annotation_of(claim, model::kSandboxNameAnnotation), "pool-a");
}

// Its sandbox is changed as it is made, and news of that may come before its own.
TEST(ClaimWelcome, WhatIsKnownOfItIsKeptUntilItIsSeen) {
  WelcomingWorld world;
  world.server->welcome(client::kSandboxClaims, [&](const Json& claim) {
    auto welcome = world.reconciler().welcome(claim);
    if (welcome) EXPECT_TRUE(world.look()) << "it looks again";
    return welcome;
  });
  world.add_members({"pool-a"});
  world.add_claim();
  world.pass();
  EXPECT_TRUE(parse_rfc3339(model::annotation_of(world.claim(), model::kFirstReadyAnnotation)));
  world.client().remove(client::kSandboxClaims, "default", "c");
  EXPECT_FALSE(world.pass()) << "it knows that it has seen it";
}

TEST(ClaimWelcome, WhatIsNeverSeenIsForgotten) {
  ClaimMemories memories;
  const Json claim = json(R"({"metadata":{"namespace":"default","name":"c","uid":"u"}})");
  const model::Key key{"default", "c"};
  const Time now{std::chrono::seconds(1000)};
  const auto memory = memories.of_newborn(claim, now);
  const auto later = memories.forget_missing(key, now);
  ASSERT_TRUE(later);
  EXPECT_EQ(memories.of_newborn(claim, now), memory);
  EXPECT_FALSE(memories.forget_missing(key, *later));
  EXPECT_EQ(memories.size(), 0U);
}

TEST(ClaimWelcome, WhatNeedsMoreIsLeftToAPass) {
  WelcomingWorld world;
  world.add_members({"pool-a"});
  const auto is_left = [&](std::string_view name, std::string_view spec, std::string_view meta) {
    return model::find(world.add_claim(name, spec, meta), {"status"}) == nullptr;
  };
  EXPECT_TRUE(is_left("dressed", R"({"env":[{"name":"A","value":"b"}]})", "{}"));
  EXPECT_TRUE(
      is_left("promised", "{}", R"({"annotations":{"agents.x-k8s.io/sandbox-name":"pool-a"}})"));
  EXPECT_TRUE(is_left("late", R"({"lifecycle":{"shutdownTime":"2020-01-01T00:00:00Z"}})", "{}"));
  EXPECT_TRUE(
      is_left("rude", R"({"additionalPodMetadata":{"labels":{"kubernetes.io/a":"b"}}})", "{}"));
  EXPECT_TRUE(is_left("poolless", R"({"warmPoolRef":{"name":"none"}})", "{}"));
  EXPECT_TRUE(is_left("pool-a", "{}", "{}"));  // a sandbox has that name
  EXPECT_TRUE(world.has_sandbox("pool-a"));
  EXPECT_EQ(model::controller_of(world.sandbox("pool-a"))->kind, "SandboxWarmPool");
  EXPECT_EQ(bound_in(world.add_claim("simple")), "pool-a");
}

TEST(ClaimWelcome, OnlyReadyOnesAreGivenSo) {
  WelcomingWorld world;
  world.add_member("pool-a", "10.0.0.7", /*is_ready=*/false);
  world.follow_all();
  EXPECT_EQ(bound_in(world.add_claim()), "");
  world.pass();
  EXPECT_EQ(world.bound(), "pool-a");
}

TEST(ClaimWelcome, NobodyIsWelcomedBeforeItDecidesNorAfter) {
  WelcomingWorld world;
  world.add_members({"pool-a"});
  world.reconciler().stop();
  EXPECT_EQ(bound_in(world.add_claim("early")), "");
  world.reconciler().begin();
  EXPECT_EQ(bound_in(world.add_claim("later")), "pool-a");
}

TEST(ClaimWelcome, ANameThatIsTakenTakesNothing) {
  WelcomingWorld world;
  world.add_members({"pool-a", "pool-b"});
  EXPECT_EQ(bound_in(world.add_claim()), "pool-a");
  EXPECT_EQ(apiserver::refusal([&] { world.add_claim(); }).reason, "AlreadyExists");
  EXPECT_EQ(world.process->allocator->stock({"default", "pool"}).ready, 1U);
  EXPECT_EQ(world.owned(), std::vector<std::string>{"pool-a"});
}

// The cache is behind: the sandbox that it offers is another one by now.
TEST(ClaimWelcome, WhoIsTooLateIsServedByAPass) {
  WelcomingWorld world;
  world.add_members({"pool-a", "pool-b"});
  world.process->sandboxes.stop();
  world.patch_sandbox("pool-a", json(R"({"metadata":{"annotations":{"touched":"yes"}}})"));
  const Json made = world.add_claim();
  EXPECT_EQ(bound_in(made), "");
  EXPECT_EQ(model::controller_of(world.sandbox("pool-a"))->kind, "SandboxWarmPool");
  follow(world.client(), client::kSandboxClaims, world.process->claims, "c");
  world.look();
  EXPECT_EQ(world.owned().size(), 1U);
}

TEST(ClaimWelcome, ManyAtOnceGetOneEach) {
  constexpr int kMembers = 20;
  constexpr int kClaims = 60;
  WelcomingWorld world;
  for (int i = 0; i < kMembers; ++i) world.add_member("pool-" + std::to_string(i));
  world.follow_all();
  std::vector<std::string> got(kClaims);
  std::vector<std::jthread> clients;
  for (int t = 0; t < 4; ++t)
    clients.emplace_back([&, t] {
      for (int i = t; i < kClaims; i += 4)
        got[i] = bound_in(world.add_claim("c" + std::to_string(i)));
    });
  clients.clear();
  std::erase(got, "");
  EXPECT_EQ(got.size(), static_cast<std::size_t>(kMembers));
  EXPECT_EQ(std::set(got.begin(), got.end()).size(), static_cast<std::size_t>(kMembers));
}

}  // namespace
}  // namespace hearth::controllers
