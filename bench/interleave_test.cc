#include "bench/interleave.h"

#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

TEST(InterleaveTest, GivesEveryoneOneTurnARoundAndDropsTheWarmUp) {
  std::string turns;
  std::vector<Contender> contenders = {
      {.subject = "a",
       .take_turn =
           [&] {
             turns += 'a';
             return Turn{.done_us = 1};
           }},
      {.subject = "b",
       .take_turn =
           [&] {
             turns += 'b';
             return Turn{.done_us = 2};
           }},
  };

  interleave(contenders, {.warm_up = 2, .rounds = 20});

  ASSERT_EQ(turns.size(), 44U);
  std::set<std::string> orders;
  for (std::size_t i = 0; i < turns.size(); i += 2) orders.insert(turns.substr(i, 2));
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
  EXPECT_EQ(contenders[0].turns, std::vector<Turn>(20, Turn{.done_us = 1}));
  EXPECT_EQ(contenders[1].turns, std::vector<Turn>(20, Turn{.done_us = 2}));
}

TEST(InterleaveTest, DropsOneThatFailsAndGoesOnWithTheOthers) {
  int calls = 0;
  std::vector<Contender> contenders = {
      {.subject = "fails",
       .take_turn =
           [&] {
             if (++calls == 3) fail(Code::timeout, "it hung");
             return Turn{};
           }},
      {.subject = "works", .take_turn = [] { return Turn{}; }},
  };

  interleave(contenders, {.warm_up = 1, .rounds = 5});

  EXPECT_EQ(contenders[0].failure, "it hung");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(contenders[1].turns.size(), 5U);
}

}  // namespace
}  // namespace hearth::bench
