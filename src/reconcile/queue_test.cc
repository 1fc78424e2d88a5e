#include "reconcile/queue.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;
using model::Key;

const Key kA{"team", "a"};
const Key kB{"team", "b"};

// What take() gives without waiting for long.
std::optional<Key> take_soon(Queue& queue, Duration patience = 20ms) {
  std::stop_source stop;
  std::jthread timer([&](const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, over, patience, [] { return false; });
    stop.request_stop();
  });
  return queue.take(stop.get_token());
}

TEST(Queue, AKeyWaitsOnce) {
  Queue queue;
  queue.add(kA);
  queue.add(kB);
  queue.add(kA);
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.take({}), kA);
  EXPECT_EQ(queue.take({}), kB);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(Queue, AddedWhileTakenItComesAgainWhenDone) {
  Queue queue;
  queue.add(kA);
  EXPECT_EQ(queue.take({}), kA);
  queue.add(kA);
  queue.add(kA);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(take_soon(queue), std::nullopt);
  queue.done(kA);
  EXPECT_EQ(queue.take({}), kA);
  queue.done(kA);
  EXPECT_EQ(take_soon(queue), std::nullopt);
}

TEST(Queue, TheEarliestTimeWins) {
  Queue queue;
  queue.add_after(kA, 1h);
  queue.add_after(kA, 1ms);
  queue.add_after(kA, 2h);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.take({}), kA);
  queue.done(kA);
  // The later ones are forgotten: who looked says when to look again.
  EXPECT_EQ(take_soon(queue), std::nullopt);
}

TEST(Queue, AddMakesItNow) {
  Queue queue;
  queue.add_after(kA, 1h);
  queue.add(kA);
  EXPECT_EQ(queue.take({}), kA);
  queue.add_after(kB, Duration::zero());
  EXPECT_EQ(queue.take({}), kB);
}

TEST(Queue, AnEarlierTimeWakesTheOneWhoWatchesTheClock) {
  Queue queue;
  queue.add_after(kA, 1h);
  auto taken = std::async(std::launch::async, [&] { return queue.take({}); });
  queue.add_after(kB, 1ms);
  EXPECT_EQ(taken.get(), kB);
}

TEST(Queue, DueWhileTakenItComesWhenDone) {
  Queue queue;
  queue.add(kA);
  EXPECT_EQ(queue.take({}), kA);
  queue.add_after(kA, 1ms);
  EXPECT_EQ(take_soon(queue), std::nullopt);
  queue.done(kA);
  EXPECT_EQ(queue.take({}), kA);
}

TEST(Queue, PausesDoubleUpToTheMostAndAreForgotten) {
  Queue queue({.first_pause = 100ms, .most_pause = 1s});
  for (const Duration due : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    const Duration pause = queue.add_failed(kA);
    EXPECT_LE(pause, due);
    EXPECT_GE(pause, due * 9 / 10);
  }
  EXPECT_LE(queue.add_failed(kB), 100ms);
  queue.forget(kA);
  EXPECT_LE(queue.add_failed(kA), 100ms);
}

TEST(Queue, ManyFailuresDoNotOverflow) {
  Queue queue;
  for (int i = 0; i < 200; ++i) queue.add_failed(kA);
  EXPECT_GE(queue.add_failed(kA), 900s);
}

TEST(Queue, PausesOfKeysDiffer) {
  Queue queue({.first_pause = 100s, .most_pause = 1000s});
  std::set<Duration> pauses;
  for (int i = 0; i < 10; ++i) pauses.insert(queue.add_failed({"team", std::to_string(i)}));
  EXPECT_GT(pauses.size(), 5U);
}

TEST(Queue, AFailedKeyComesAfterItsPause) {
  Queue queue({.first_pause = 5ms, .most_pause = 1s});
  queue.add(kA);
  EXPECT_EQ(queue.take({}), kA);
  const auto began = std::chrono::steady_clock::now();
  const Duration pause = queue.add_failed(kA);
  queue.done(kA);
  EXPECT_EQ(queue.take({}), kA);
  EXPECT_GE(std::chrono::steady_clock::now() - began, pause);
}

TEST(Queue, StoppingWakesEveryone) {
  Queue queue;
  queue.add_after(kA, 1h);
  std::vector<std::jthread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&](const std::stop_token& stop) { EXPECT_FALSE(queue.take(stop)); });
  }
  workers.clear();
}

// Many workers, many threads that add: nothing is lost, and no key is with two workers.
TEST(Queue, WorkersNeverShareAKey) {
  constexpr int kKeys = 50;
  constexpr int kRounds = 400;
  Queue queue;
  std::vector<std::atomic<int>> holders(kKeys);
  std::vector<std::atomic<int>> wanted(kKeys);
  std::vector<std::atomic<int>> seen(kKeys);
  std::atomic<bool> has_clashed = false;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 16; ++i) {
      workers.emplace_back([&](const std::stop_token& stop) {
        while (const auto key = queue.take(stop)) {
          const auto index = static_cast<std::size_t>(std::stoi(key->name));
          if (holders[index].fetch_add(1) != 0) has_clashed = true;
          seen[index] = wanted[index].load();
          holders[index].fetch_sub(1);
          queue.done(*key);
        }
      });
    }
    std::vector<std::thread> adders;
    for (int adder = 0; adder < 2; ++adder) {
      adders.emplace_back([&, adder] {
        for (int round = 1; round <= kRounds; ++round) {
          for (int i = adder; i < kKeys; i += 2) {
            wanted[static_cast<std::size_t>(i)] = round;
            const Key key{"", std::to_string(i)};
            if (round % 3 == 0) {
              queue.add_after(key, 50us);
            } else {
              queue.add(key);
            }
          }
        }
      });
    }
    for (std::thread& adder : adders) adder.join();
    const auto all_seen = [&] {
      return std::ranges::all_of(seen, [](const auto& each) { return each == kRounds; });
    };
    for (int i = 0; i < 60'000 && !all_seen(); ++i) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(all_seen());
  }
  EXPECT_FALSE(has_clashed);
}

TEST(Queue, CountsWhatItDoes) {
  metrics::Registry registry;
  const QueueMetrics counted{.depth = &registry.gauge("depth", ""),
                             .added = &registry.counter("added", ""),
                             .retried = &registry.counter("retried", ""),
                             .waited = &registry.histogram("waited", "", {1})};
  Queue queue({.first_pause = 1ms, .metrics = counted});
  queue.add(kA);
  queue.add(kA);
  EXPECT_EQ(counted.depth->value(), 1);
  queue.take({});
  EXPECT_EQ(counted.depth->value(), 0);
  queue.add_failed(kA);
  queue.done(kA);
  queue.take({});
  EXPECT_EQ(counted.added->value(), 2U);
  EXPECT_EQ(counted.retried->value(), 1U);
  EXPECT_EQ(counted.waited->count(), 2U);
}

// The rank is the name's first letter.
Rank rank_by_name(const Key& key) {
  if (key.name.starts_with('u')) return Rank::urgent;
  return key.name.starts_with('i') ? Rank::idle : Rank::usual;
}

std::string take_all(Queue& queue) {
  std::string order;
  while (queue.size() > 0) {
    const auto key = queue.take({});
    order += key->name.front();
    queue.done(*key);
  }
  return order;
}

TEST(Queue, UrgentOnesGoFirst) {
  Queue queue({.rank_of = rank_by_name});
  for (int i = 0; i < 3; ++i) queue.add({"team", fmt::format("i{}", i)});
  queue.add({"team", "u0"});
  queue.add({"team", "u1"});
  EXPECT_EQ(queue.size(), 5U);
  EXPECT_EQ(queue.take({})->name, "u0");
  EXPECT_EQ(queue.take({})->name, "u1");
  EXPECT_EQ(queue.take({})->name, "i0");
}

TEST(Queue, OthersAreNotStarvedByUrgentOnes) {
  Queue queue({.rank_of = rank_by_name});
  for (int i = 0; i < 16; ++i) queue.add({"team", fmt::format("u{}", i)});
  queue.add({"team", "i"});
  queue.add({"team", "a"});
  EXPECT_EQ(take_all(queue), "uuuuuuuauuuuuuuiuu");
}

TEST(Queue, UsualAndIdleOnesTakeTurns) {
  Queue queue({.rank_of = rank_by_name});
  for (int i = 0; i < 4; ++i) queue.add({"team", fmt::format("i{}", i)});
  for (int i = 0; i < 2; ++i) queue.add({"team", fmt::format("a{}", i)});
  EXPECT_EQ(take_all(queue), "aiaiii");
}

TEST(Queue, ABacklogOfUsualOnesDoesNotGrow) {
  Queue queue({.rank_of = rank_by_name});
  for (int i = 0; i < 200; ++i) queue.add({"team", fmt::format("i{}", i)});
  for (int i = 0; i < 600; ++i) queue.add({"team", fmt::format("a{}", i)});
  const std::string order = take_all(queue);
  EXPECT_EQ(order.substr(0, 8), "aaaiaaai");
  EXPECT_EQ(order.substr(300, 4).find("aa"), std::string::npos) << "few enough: by turns";
}

TEST(Queue, TheRankIsThatOfTheLastTimeItWasAdded) {
  Rank rank = Rank::idle;
  Queue queue({.rank_of = [&](const Key& key) { return key == kA ? rank : Rank::usual; }});
  queue.add(kA);
  EXPECT_EQ(queue.take({}), kA);
  rank = Rank::urgent;
  queue.add(kA);  // comes when it is done
  queue.add(kB);
  queue.done(kA);
  EXPECT_EQ(queue.take({}), kA);
}

}  // namespace
}  // namespace hearth::reconcile
