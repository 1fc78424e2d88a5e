// Contenders take turns, so that whatever the machine does meanwhile happens to all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hearth::bench {

struct Contender {
  std::string subject;
  std::function<double()> take_turn;  // its figure: microseconds, or what the case is about
  // After its turns of a round, before the next contender's: for work that it put off, which must
  // not fall into somebody else's time. May be empty.
  std::function<void()> recover = {};
  std::vector<double> turns = {};
  std::string failure = {};  // why it was dropped; empty: it was not
};

struct Schedule {
  unsigned warm_up = 3;  // rounds that do not count
  unsigned rounds = 1;
  unsigned in_a_row = 1;  // turns of one contender in one round
  Duration gap = {};      // to do nothing for before each turn
};

// Each round gives every contender its turns, in another order each time: nobody always pays for
// what the one before left behind. The orders are the same in every run. A contender that throws
// Error is dropped. Throws Interrupted.
void interleave(std::vector<Contender>& contenders, const Schedule& schedule);

}  // namespace hearth::bench
