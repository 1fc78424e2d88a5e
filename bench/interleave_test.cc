#include "bench/interleave.h"

#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

// Writes its name into `turns` at each turn.
Contender make_contender(const std::string& name, double figure, std::string& turns) {
  return {.subject = name, .take_turn = [&turns, name, figure] {
            turns += name;
            return figure;
          }};
}

TEST(InterleaveTest, GivesEveryoneOneTurnARoundAndDropsTheWarmUp) {
  std::string turns;
  std::vector<Contender> contenders = {make_contender("a", 1, turns),
                                       make_contender("b", 2, turns)};

  interleave(contenders, {.warm_up = 2, .rounds = 20});

  ASSERT_EQ(turns.size(), 44U);
  std::set<std::string> orders;
  for (std::size_t i = 0; i < turns.size(); i += 2) orders.insert(turns.substr(i, 2));
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
  EXPECT_EQ(contenders[0].turns, std::vector<double>(20, 1));
  EXPECT_EQ(contenders[1].turns, std::vector<double>(20, 2));
}

TEST(InterleaveTest, LetsOneRecoverAfterItsTurnsInARow) {
  std::string turns;
  std::vector<Contender> contenders = {make_contender("a", 1, turns)};
  contenders[0].recover = [&] { turns += '.'; };

  interleave(contenders, {.warm_up = 1, .rounds = 2, .in_a_row = 3});

  EXPECT_EQ(turns, "aaa.aaa.aaa.");
  EXPECT_EQ(contenders[0].turns.size(), 6U);
}

TEST(InterleaveTest, DropsOneThatFailsAndGoesOnWithTheOthers) {
  int calls = 0;
  std::string turns;
  std::vector<Contender> contenders = {
      {.subject = "fails",
       .take_turn =
           [&] {
             if (++calls == 3) fail(Code::timeout, "it hung");
             return 0.0;
           }},
      make_contender("w", 0, turns),
      {.subject = "does not recover",
       .take_turn = [] { return 0.0; },
       .recover = [] { fail(Code::timeout, "it is empty"); }},
  };

  interleave(contenders, {.warm_up = 1, .rounds = 5});

  EXPECT_EQ(contenders[0].failure, "it hung");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(contenders[1].turns.size(), 5U);
  EXPECT_EQ(contenders[2].failure, "it is empty");
}

}  // namespace
}  // namespace hearth::bench
