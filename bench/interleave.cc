#include "bench/interleave.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "base/error.h"
#include "bench/interrupt.h"

namespace hearth::bench {
namespace {

void take_turns(Contender& contender, const Schedule& schedule, bool counts) {
  try {
    for (unsigned turn = 0; turn < schedule.in_a_row; ++turn) {
      check_interrupts();
      if (schedule.gap > Duration::zero()) std::this_thread::sleep_for(schedule.gap);
      const double figure = contender.take_turn();
      if (counts) contender.turns.push_back(figure);
    }
    if (contender.recover) contender.recover();
  } catch (const Error& error) {
    contender.failure = error.what();
  }
}

}  // namespace

void interleave(std::vector<Contender>& contenders, const Schedule& schedule) {
  std::mt19937 random;  // unseeded: the same orders in every run
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (unsigned round = 0; round < schedule.warm_up + schedule.rounds; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t index : order) {
      if (!contenders[index].failure.empty()) continue;
      take_turns(contenders[index], schedule, round >= schedule.warm_up);
    }
  }
}

}  // namespace hearth::bench
