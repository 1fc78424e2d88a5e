#include "pool/allocator.h"

#include <atomic>
#include <set>
#include <thread>

#include "pool/allocator_testing_internal.h"
#include "pool/state_internal.h"

namespace hearth::pool {
namespace {

using Names = std::vector<std::string>;

std::string name_of(const Hold& hold) {
  return std::string(model::name_of(*hold.sandbox()));
}

class AllocatorTest : public testing::Test {
 protected:
  client::Client& api() { return server_.client(); }
  Allocator& allocator() { return *house_.allocator; }

  // Returns when the allocator has heard of it.
  Json make(const std::string& name, const std::string& node = "n1", bool has_address = true,
            bool is_ready = true, const std::string& pool = kPool.name) {
    api().create(client::kSandboxes, member(name, pool));
    Json made = report(api(), name, status_patch(node, has_address, is_ready));
    EXPECT_TRUE(house_.sees(made));
    return made;
  }
  std::optional<Hold> take(const std::string& tenant = "t") {
    return allocator().take({.pool = kPool, .tenant = tenant, .fits = {}});
  }
  // Takes until there is none.
  Names take_all() {
    Names names;
    std::vector<Hold> holds;
    while (auto hold = take()) {
      names.push_back(name_of(*hold));
      holds.push_back(*std::move(hold));
    }
    return names;
  }
  // Somebody else does something to it.
  Json touch(const std::string& name) {
    const Json patch = apiserver::json(R"({"metadata":{"annotations":{"touched":"yes"}}})");
    return api().patch(client::kSandboxes, kPool.ns, name, client::PatchKind::merge, patch);
  }

  apiserver::TestServer server_;
  House house_{server_.client()};
};

TEST_F(AllocatorTest, HandsOutReadyOnesFirstAndNeverOneWithoutAnAddress) {
  make("starting", "n1", false, false);
  make("unready", "n1", true, false);
  make("ready-1");
  make("ready-2");

  const Stock stock = allocator().stock(kPool);
  EXPECT_EQ(stock.ready, 2U);
  EXPECT_EQ(stock.unready, 1U);
  EXPECT_EQ(stock.starting, 1U);
  EXPECT_EQ(take_all(), (Names{"ready-1", "ready-2", "unready"}));
}

TEST_F(AllocatorTest, TakesFromTheNodeThatHasMost) {
  make("a", "n1");
  make("b", "n2");
  make("c", "n2");
  make("d", "n2");
  make("e", "");

  EXPECT_EQ(take_all(), (Names{"b", "c", "a", "d", "e"}));
}

TEST_F(AllocatorTest, OffersOnlyIdleMembersOfThePool) {
  make("other", "n1", true, true, "another");
  Json plain = member("plain");
  model::erase_at(plain, {"metadata", "ownerReferences"});
  api().create(client::kSandboxes, plain);
  report(api(), "plain", status_patch("n1", true, true));
  Json unlabelled = member("unlabelled");
  model::erase_at(unlabelled, {"metadata", "labels", model::kTemplateRefHashLabel});
  api().create(client::kSandboxes, unlabelled);
  EXPECT_TRUE(house_.sees(report(api(), "unlabelled", status_patch("n1", true, true))));

  EXPECT_EQ(take_all(), Names{});
}

TEST_F(AllocatorTest, AHoldIsNobodyElsesUntilItIsDropped) {
  make("a");

  auto hold = take();
  ASSERT_TRUE(hold);
  EXPECT_FALSE(take());
  EXPECT_EQ(allocator().stock(kPool).held, 1U);
  hold.reset();

  EXPECT_TRUE(take());
}

TEST_F(AllocatorTest, WhatIsKeptIsOfferedAgainInAnotherVersion) {
  make("a");

  take()->keep();
  EXPECT_FALSE(take());
  ASSERT_TRUE(house_.sees(touch("a")));

  EXPECT_TRUE(take());
}

TEST_F(AllocatorTest, WhatChangedWhileItWasHeldIsNotPutAside) {
  make("a");

  auto hold = take();
  ASSERT_TRUE(house_.sees(touch("a")));
  EXPECT_FALSE(take());
  hold->keep();

  EXPECT_TRUE(take());
}

TEST_F(AllocatorTest, WhatIsGoneIsNotOffered) {
  make("a");
  make("b");
  auto hold = take();

  api().remove(client::kSandboxes, kPool.ns, "a");
  api().remove(client::kSandboxes, kPool.ns, "b");
  ASSERT_TRUE(house_.comes_true([&] { return allocator().stocks().empty(); }));
  hold.reset();

  EXPECT_FALSE(take());
}

TEST_F(AllocatorTest, CommitsWithOneWriteAndDoesNotOfferItAgainWhileTheCacheIsBehind) {
  const Json made = make("a");
  house_.client.close_gate();

  const auto won = allocator().commit(house_.client, *take(), adoption("c"));

  ASSERT_TRUE(won);
  EXPECT_EQ(std::stoll(std::string(model::resource_version_of(*won))),
            std::stoll(std::string(model::resource_version_of(made))) + 1);
  EXPECT_EQ(model::controller_of(api().get(client::kSandboxes, kPool.ns, "a"))->name, "c");
  EXPECT_FALSE(take());
  house_.client.open_gate();
  ASSERT_TRUE(house_.sees(*won));
  EXPECT_FALSE(take());
  EXPECT_TRUE(allocator().stocks().empty());
}

TEST_F(AllocatorTest, AChangeThatTheCacheHasNotShownIsAConflictAndNoLoss) {
  make("a");
  house_.client.close_gate();
  touch("a");

  EXPECT_FALSE(allocator().commit(house_.client, *take(), adoption("c")));

  EXPECT_TRUE(allocator().commit(house_.client, *take(), adoption("c")));
}

TEST_F(AllocatorTest, AChangeThatTheCacheHasShownIsNoConflict) {
  make("a");
  auto hold = take();
  ASSERT_TRUE(house_.sees(touch("a")));

  EXPECT_TRUE(allocator().commit(house_.client, *std::move(hold), adoption("c")));
}

TEST_F(AllocatorTest, WhoeverIsSecondGetsNothing) {
  make("a");
  house_.client.close_gate();
  auto hold = take();
  api().patch(client::kSandboxes, kPool.ns, "a", client::PatchKind::merge, adoption("first"));

  EXPECT_FALSE(allocator().commit(house_.client, *std::move(hold), adoption("second")));

  EXPECT_EQ(model::controller_of(api().get(client::kSandboxes, kPool.ns, "a"))->name, "first");
  EXPECT_FALSE(take());
}

TEST_F(AllocatorTest, OneThatIsGoneBeforeTheWriteIsNotOfferedAgain) {
  make("a");
  house_.client.close_gate();
  auto hold = take();
  api().remove(client::kSandboxes, kPool.ns, "a");

  EXPECT_FALSE(allocator().commit(house_.client, *std::move(hold), adoption("c")));

  EXPECT_FALSE(take());
}

TEST_F(AllocatorTest, OtherRefusalsAreThrownAndGiveItBack) {
  make("a");
  house_.client.before_patch = [](auto, auto) {
    throw model::StatusError({.code = 403, .message = "no"});
  };

  EXPECT_THROW(allocator().commit(house_.client, *take(), adoption("c")), model::StatusError);

  EXPECT_TRUE(take());
}

TEST_F(AllocatorTest, AWishMayBeChoosy) {
  make("a");
  make("b");
  const auto is_b = [](const Json& sandbox) { return model::name_of(sandbox) == "b"; };

  const auto hold = allocator().take({.pool = kPool, .tenant = "t", .fits = is_b});

  ASSERT_TRUE(hold);
  EXPECT_EQ(name_of(*hold), "b");
  EXPECT_FALSE(allocator().take({.pool = kPool, .tenant = "t", .fits = is_b}));
}

// Who was served, in which order.
class WaitingTest : public AllocatorTest {
 protected:
  using Ticket = std::shared_ptr<Allocator::Ticket>;

  Ticket wait(const std::string& who, const std::string& tenant, int priority = 0,
              std::function<bool(const Json&)> fits = {}, Duration patience = 1h) {
    return allocator().wait(
        {.pool = kPool, .tenant = tenant, .priority = priority, .fits = std::move(fits)}, patience,
        [this, who](std::optional<Hold> hold) {
          {
            const std::lock_guard lock(mutex_);
            served_.push_back(hold ? who : "not " + who);
            if (hold) holds_.push_back(*std::move(hold));
          }
          house_.note_change();
        });
  }
  Names served() {
    const std::lock_guard lock(mutex_);
    return served_;
  }

  std::mutex mutex_;  // guards what follows
  Names served_;
  std::vector<Hold> holds_;
};

TEST_F(WaitingTest, TenantsAreServedInTurnAndTheirOwnInOrder) {
  const std::vector<Ticket> tickets = {wait("a1", "a"), wait("a2", "a"), wait("a3", "a"),
                                       wait("b1", "b"), wait("c1", "c"), wait("b2", "b")};
  EXPECT_EQ(allocator().stock(kPool).waiting, 6U);

  for (int i = 0; i < 7; ++i) make(fmt::format("s{}", i));

  EXPECT_EQ(served(), (Names{"a1", "b1", "c1", "a2", "b2", "a3"}));
  EXPECT_EQ(allocator().stock(kPool).ready, 1U);
  EXPECT_EQ(allocator().stock(kPool).held, 6U);
}

TEST_F(WaitingTest, PriorityComesBeforeFairness) {
  const std::vector<Ticket> tickets = {wait("low", "a", -1), wait("a1", "a"), wait("high1", "b", 5),
                                       wait("high2", "b", 5)};

  for (int i = 0; i < 4; ++i) make(fmt::format("s{}", i));

  EXPECT_EQ(served(), (Names{"high1", "high2", "a1", "low"}));
}

TEST_F(WaitingTest, AWaiterThatWantsSomethingElseHoldsNobodyUp) {
  const Ticket choosy = wait(
      "choosy", "a", 9, [](const Json& sandbox) { return model::name_of(sandbox) == "special"; });
  const Ticket broken = wait("broken", "b", 9, [](const Json&) -> bool { throw std::bad_alloc(); });
  const Ticket easy = wait("easy", "c");

  make("plain-1");
  make("plain-2");
  EXPECT_EQ(served(), Names{"easy"});
  EXPECT_TRUE(take());
  make("special");

  EXPECT_EQ(served(), (Names{"easy", "choosy"}));
}

TEST_F(WaitingTest, WhatIsThereIsServedAtOnce) {
  make("a");

  const Ticket ticket = wait("w", "a");

  EXPECT_EQ(served(), Names{"w"});
}

TEST_F(WaitingTest, NobodyJumpsTheLine) {
  make("a");
  auto hold = take();
  const Ticket ticket = wait("w", "a");

  hold.reset();

  EXPECT_EQ(served(), Names{"w"});
  EXPECT_FALSE(take());
}

TEST_F(WaitingTest, PatienceEnds) {
  const Ticket later = wait("later", "a", 0, {}, 1h);
  const Ticket soon = wait("soon", "a", 0, {}, 1ms);
  const Ticket now = wait("now", "a", 0, {}, 0s);

  EXPECT_TRUE(house_.comes_true([&] { return served().size() == 2; }));
  EXPECT_EQ(served(), (Names{"not now", "not soon"}));
  EXPECT_EQ(allocator().stock(kPool).waiting, 1U);
}

TEST_F(WaitingTest, WhoLeavesIsNotCalled) {
  Ticket first = wait("first", "a");
  const Ticket second = wait("second", "a");

  first.reset();
  make("a");

  EXPECT_EQ(served(), Names{"second"});
}

TEST_F(WaitingTest, ADroppedPoolServesNobody) {
  make("a");
  auto hold = take();
  const Ticket ticket = wait("w", "a");
  make("starting", "n1", false, false);

  allocator().drop(kPool);
  EXPECT_EQ(served(), Names{"not w"});
  EXPECT_EQ(allocator().stock(kPool).starting, 0U);
}

TEST_F(WaitingTest, WhoStillWaitsAtTheEndIsTold) {
  const Ticket ticket = wait("w", "a");

  house_.allocator.reset();

  EXPECT_EQ(served(), Names{"not w"});
}

TEST_F(WaitingTest, ALongLineThatWantsNothingIsNoDeepStack) {
  std::atomic<int> refused = 0;
  std::vector<Ticket> tickets;
  for (int i = 0; i < 20'000; ++i)
    tickets.push_back(allocator().wait({.pool = kPool, .tenant = "t", .fits = {}}, 1h,
                                       [&](const std::optional<Hold>&) { ++refused; }));

  make("a");

  EXPECT_TRUE(house_.comes_true([&] { return allocator().stock(kPool).ready == 1; }));
  EXPECT_EQ(refused, 20'000);
}

TEST_F(AllocatorTest, TellsPrometheus) {
  make("a");
  EXPECT_TRUE(allocator().commit(house_.client, *take(), adoption("c")));
  EXPECT_FALSE(take());
  EXPECT_FALSE(allocator().take({.pool = {"default", "made-up"}, .tenant = "t", .fits = {}}));
  make("b", "n1", true, false);

  const std::string text = house_.registry.render();

  const auto has = [&](std::string_view line) { return text.find(line) != std::string::npos; };
  EXPECT_TRUE(has("hearth_allocator_hits_total{namespace=\"default\",pool=\"warm\"} 1"));
  EXPECT_TRUE(has("hearth_allocator_misses_total{namespace=\"default\",pool=\"warm\"} 1"));
  EXPECT_TRUE(has("hearth_allocator_misses_total{namespace=\"\",pool=\"\"} 1"));
  EXPECT_TRUE(has("hearth_allocator_take_seconds_count 3"));
  EXPECT_TRUE(has("hearth_allocator_commit_seconds_count 1"));
  EXPECT_TRUE(
      has("hearth_allocator_stock{namespace=\"default\",pool=\"warm\",state=\"unready\"} 1"))
      << text;
  EXPECT_FALSE(has("made-up"));
}

// A thousand times the members must not take a thousand times as long: the walk would.
TEST(AllocatorStateTest, TakesFromALargePoolWithoutLookingAtAll) {
  metrics::Registry registry;
  const auto state = std::make_shared<AllocatorState>(registry);
  constexpr int kMembers = 10'000;
  for (int i = 0; i < kMembers; ++i) {
    Json json = member(fmt::format("s{:05}", i));
    model::make_object_at(json, {"metadata"})["resourceVersion"] = std::to_string(i + 1);
    const Json patch = status_patch(fmt::format("n{}", i % 7), true, true);
    json.as_object()["status"] = *model::find(patch, {"status"});
    state->see(std::make_shared<const Json>(std::move(json)));
  }
  ASSERT_EQ(state->stock(kPool).ready, static_cast<std::size_t>(kMembers));
  int looked_at = 0;
  std::vector<Hold> holds;

  for (int i = 0; i < kMembers; ++i) {
    auto hold = state->take({.pool = kPool, .tenant = "t", .fits = [&](const Json&) {
                               ++looked_at;
                               return true;
                             }});
    ASSERT_TRUE(hold);
    holds.push_back(*std::move(hold));
  }

  EXPECT_EQ(looked_at, kMembers);
  EXPECT_FALSE(state->take({.pool = kPool, .tenant = "t", .fits = {}}));
}

TEST(AllocatorStateTest, OldNewsChangesNothing) {
  metrics::Registry registry;
  const auto state = std::make_shared<AllocatorState>(registry);
  const auto at_version = [](int version, bool is_idle) {
    Json json = is_idle ? member("a") : apiserver::json(R"({"metadata":{"name":"a"}})");
    model::make_object_at(json, {"metadata"})["namespace"] = kPool.ns;
    model::make_object_at(json, {"metadata"})["resourceVersion"] = std::to_string(version);
    const Json patch = status_patch("n", true, true);
    json.as_object()["status"] = *model::find(patch, {"status"});
    return std::make_shared<const Json>(std::move(json));
  };
  const Wish wish{.pool = kPool, .tenant = "t", .fits = {}};

  state->see(at_version(9, true));
  state->learn(at_version(10, false), /*is_from_cache=*/false);
  EXPECT_FALSE(state->take(wish));
  state->see(at_version(8, true));
  EXPECT_FALSE(state->take(wish));
  state->see(at_version(10, false));
  state->learn(at_version(11, true), /*is_from_cache=*/false);
  EXPECT_FALSE(state->take(wish));
  state->see(at_version(12, true));
  EXPECT_TRUE(state->take(wish));
}

}  // namespace
}  // namespace hearth::pool
