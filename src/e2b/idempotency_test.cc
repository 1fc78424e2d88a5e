#include "e2b/idempotency.h"

#include <thread>

#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kBody = R"({"templateID":"base","timeout":60})";

Answer create(World& world, const std::string& idempotency_key, std::string_view body = kBody,
              const std::optional<std::string>& key = {}) {
  return world.ask("POST", "/v2/sandboxes", body, key, {{"Idempotency-Key", idempotency_key}});
}

TEST(E2bIdempotency, TheSameRequestGivesTheSameSandbox) {
  World world;
  const Answer first = create(world, "k-1");
  ASSERT_EQ(first.status, 201U) << first.message();

  const Answer again = create(world, "k-1");
  EXPECT_EQ(again.status, 201U);
  EXPECT_EQ(again.body, first.body);
  EXPECT_NE(create(world, "k-2").text("sandboxID"), first.text("sandboxID"));
  EXPECT_NE(world.create(kBody), first.text("sandboxID"));

  world.restart();
  EXPECT_EQ(create(world, "k-1").text("sandboxID"), first.text("sandboxID"));
}

TEST(E2bIdempotency, AMemberOfAPoolRemembersItsKeyToo) {
  World world;
  const std::string member = world.add_member();
  EXPECT_EQ(create(world, "k").text("sandboxID"), member);
  world.add_member();
  EXPECT_EQ(create(world, "k").text("sandboxID"), member);
}

TEST(E2bIdempotency, OfManyAtOnceOneIsMade) {
  World world;
  std::array<std::string, 8> ids;
  std::vector<std::thread> clients;
  for (std::string& id : ids)
    clients.emplace_back([&] { id = create(world, "k").text("sandboxID"); });
  for (std::thread& client : clients) client.join();

  EXPECT_FALSE(ids.front().empty());
  for (const std::string& id : ids) EXPECT_EQ(id, ids.front());
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes").body.as_array().size(), 1U);
}

TEST(E2bIdempotency, AnotherRequestMayNotUseTheKey) {
  World world;
  ASSERT_EQ(create(world, "k").status, 201U);
  EXPECT_EQ(create(world, "k", R"({"templateID":"base","timeout":61})").status, 422U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes").body.as_array().size(), 1U);
}

TEST(E2bIdempotency, AKeyCountsInItsTeamAsLongAsItsSandboxIsThere) {
  World world;
  const std::string id = create(world, "k").text("sandboxID");
  const Answer other = create(world, "k", kBody, world.blue);
  EXPECT_EQ(other.status, 201U) << other.message();
  EXPECT_NE(other.text("sandboxID"), id);
  ASSERT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 204U);
  const Answer next = create(world, "k", R"({"templateID":"base","timeout":61})");
  EXPECT_EQ(next.status, 201U) << next.message();
  EXPECT_NE(next.text("sandboxID"), id);
}

TEST(E2bIdempotency, RefusesWhatIsNoKey) {
  World world;
  for (const std::string& bad : {std::string("A"), std::string("a b"), std::string(256, 'a')})
    EXPECT_EQ(create(world, bad).status, 400U) << bad;
  EXPECT_EQ(create(world, std::string(255, 'a')).status, 201U);
}

}  // namespace
}  // namespace hearth::e2b
