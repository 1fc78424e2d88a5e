// Contenders take turns, so that whatever the machine does meanwhile happens to all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hearth::bench {

// What one turn took, in microseconds.
struct Turn {
  double done_us = 0;  // until the program had finished
  double gone_us = 0;  // until nothing was left of its sandbox; 0 where that is not part of it

  bool operator==(const Turn&) const = default;
};

struct Contender {
  std::string subject;
  std::function<Turn()> take_turn;
  std::vector<Turn> turns = {};
  std::string failure = {};  // why it was dropped; empty: it was not
};

struct Schedule {
  unsigned warm_up = 3;  // rounds that do not count
  unsigned rounds = 1;
  Duration gap = {};  // to do nothing for before each turn
};

// Each round gives every contender one turn, in another order each time: nobody always pays for
// what the one before left behind. The orders are the same in every run. A contender that throws
// Error is dropped. Throws Interrupted.
void interleave(std::vector<Contender>& contenders, const Schedule& schedule);

}  // namespace hearth::bench
