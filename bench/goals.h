// What was set out to be reached, and whether a run reached it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"

namespace hearth::bench {

// With 20 ms of nothing before each turn: a case of its own, named after the one without.
inline constexpr std::string_view kGapSuffix = "_gap";

enum class Bound { at_most, at_least };

// What of a row is held against the goal.
enum class Figure {
  headline,
  rate,  // where the headline is a median
  p99,
  p99_by_p50,  // has no peer: it is a ratio already
};

// Our figure shall be at most, or at least, `wanted` times the peer's; without a peer, `wanted`.
struct Goal {
  std::string_view bench_case;
  std::string_view subject;
  std::string_view peer;
  Bound bound = Bound::at_most;
  double wanted = 1;
  std::string_view words;  // the goal, for people
  Figure figure = Figure::headline;
};

std::span<const Goal> runtime_goals();
std::span<const Goal> guest_goals();
std::span<const Goal> kube_goals();
std::span<const Goal> claims_goals();
std::span<const Goal> e2b_goals();

// A line a goal: reached or missed, and by what factor, of this run's figures; where there is the
// case with gaps, of that too. "not measured" when a figure is missing.
std::string format_goals(std::span<const Goal> goals, const std::vector<Row>& rows);

}  // namespace hearth::bench
