// Many who want the same few sandboxes at once: one winner each, whatever goes wrong.
#include <atomic>
#include <set>
#include <thread>

#include "pool/allocator_testing_internal.h"

namespace hearth::pool {
namespace {

// Claims until it has one or nothing is left; remembers what it was.
class Rush {
 public:
  void claim(House& house, const std::string& name) {
    // Somebody may hold the last ones and lose them: whoever found nothing asks again while there
    // is anything.
    const Wish wish{.pool = kPool, .tenant = name, .fits = {}};
    while (true) {
      std::optional<Hold> hold = house.allocator->take(wish);
      if (!hold) {
        const Stock stock = house.allocator->stock(kPool);
        if (stock.ready + stock.held == 0) return;
        std::this_thread::yield();
        continue;
      }
      const auto won = house.allocator->commit(house.client, *std::move(hold), adoption(name));
      if (!won) continue;
      const std::lock_guard lock(mutex_);
      winners_.emplace_back(model::name_of(*won), name);
      return;
    }
  }
  const std::vector<std::pair<std::string, std::string>>& winners() const { return winners_; }

 private:
  std::mutex mutex_;  // guards winners_
  std::vector<std::pair<std::string, std::string>> winners_;
};

class RushTest : public testing::Test {
 protected:
  void fill(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("s{:03}", i);
      server_.client().create(client::kSandboxes, member(name));
      report(server_.client(), name, status_patch(fmt::format("n{}", i % 3), true, true));
    }
  }
  // A third of the writes fails: half of those because somebody changed the sandbox in between,
  // half for no reason that anybody can see.
  void meddle(House& house) {
    house.client.before_patch = [this](std::string_view ns, std::string_view name) {
      const int turn = writes_++;
      if (turn % 6 == 0) throw model::StatusError({.code = 409, .message = "injected"});
      if (turn % 6 == 3) {
        Json patch = apiserver::json(R"({"metadata":{"annotations":{}}})");
        model::make_object_at(patch, {"metadata", "annotations"})["turn"] = std::to_string(turn);
        server_.client().patch(client::kSandboxes, ns, name, client::PatchKind::merge, patch, {});
      }
    };
  }
  void expect_all_won(const Rush& rush, int count) {
    std::set<std::string> sandboxes;
    std::set<std::string> claims;
    for (const auto& [sandbox, claim] : rush.winners()) {
      sandboxes.insert(sandbox);
      claims.insert(claim);
      const Json now = server_.client().get(client::kSandboxes, kPool.ns, sandbox);
      EXPECT_EQ(model::controller_of(now)->name, claim);
    }
    EXPECT_EQ(rush.winners().size(), static_cast<std::size_t>(count));
    EXPECT_EQ(sandboxes.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(claims.size(), static_cast<std::size_t>(count));
  }

  apiserver::TestServer server_;
  std::atomic<int> writes_ = 0;
};

TEST_F(RushTest, FiveHundredTakersOfAHundred) {
  fill(100);
  House house(server_.client());
  meddle(house);
  Rush rush;
  {
    std::vector<std::jthread> takers;
    for (int i = 0; i < 500; ++i)
      takers.emplace_back([&, i] { rush.claim(house, fmt::format("claim-{}", i)); });
  }
  expect_all_won(rush, 100);
}

TEST_F(RushTest, TwoAllocatorsThatKnowNothingOfEachOther) {
  fill(60);
  House left(server_.client());
  House right(server_.client());
  meddle(left);
  meddle(right);
  Rush rush;
  {
    std::vector<std::jthread> takers;
    for (int i = 0; i < 100; ++i)
      takers.emplace_back(
          [&, i] { rush.claim(i % 2 == 0 ? left : right, fmt::format("claim-{}", i)); });
  }
  expect_all_won(rush, 60);
}

}  // namespace
}  // namespace hearth::pool
