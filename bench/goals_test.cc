#include "bench/goals.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace hearth::bench {
namespace {

Row latency(const std::string& bench_case, const std::string& subject, double p50) {
  return {.bench_case = bench_case, .subject = subject, .p50_us = p50, .n = 1};
}

Row rate(const std::string& bench_case, const std::string& subject, double per_s) {
  return {.bench_case = bench_case, .subject = subject, .per_s = per_s, .n = 1};
}

constexpr std::array<Goal, 2> kGoals = {{
    {.bench_case = "cold",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 8,
     .words = "at most 1/8 of crun"},
    {.bench_case = "rate",
     .subject = "hearth",
     .peer = "crun",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "at least 5 x crun"},
}};

constexpr const char* kHeading =
    "goals               wanted                    measured                    with gaps\n";

TEST(GoalsTest, SayByWhatFactorTheyWereReachedOrMissed) {
  const std::vector<Row> rows = {latency("cold", "hearth", 1000), latency("cold", "crun", 16000),
                                 rate("rate", "crun", 100), rate("rate", "hearth", 250)};

  EXPECT_EQ(format_goals(kGoals, rows),
            std::string(kHeading) +
                "  cold              at most 1/8 of crun        1/16.00  reached by 2.00 x\n"
                "  rate              at least 5 x crun           2.50 x  missed by 2.00 x\n"
                "  1 of 2 reached\n");
}

TEST(GoalsTest, LookAtTheCaseWithGapsTooWhichDoesNotCount) {
  const std::vector<Row> rows = {latency("cold", "hearth", 1000), latency("cold", "crun", 4000),
                                 latency("cold_gap", "hearth", 1000),
                                 latency("cold_gap", "crun", 8000)};

  EXPECT_EQ(format_goals(std::span(kGoals).first(1), rows),
            std::string(kHeading) +
                "  cold              at most 1/8 of crun         1/4.00  missed by 2.00 x    "
                "1/8.00  reached by 1.00 x\n"
                "  0 of 1 reached\n");
}

TEST(GoalsTest, AreNotReachedWithoutAFigureOrByAnImpossibleOne) {
  EXPECT_EQ(format_goals(kGoals, {latency("cold", "hearth", -5), latency("cold", "crun", 4000),
                                  rate("rate", "hearth", 250)}),
            std::string(kHeading) +
                "  cold              at most 1/8 of crun       not measured\n"
                "  rate              at least 5 x crun         not measured\n"
                "  0 of 2 reached\n");
}

TEST(GoalsTest, OfTheRuntimeAreEachStatedOnce) {
  std::set<std::string> seen;
  for (const Goal& goal : runtime_goals()) {
    EXPECT_GT(goal.wanted, 0) << goal.words;
    EXPECT_NE(goal.words.find(goal.peer), std::string_view::npos) << goal.words;
    EXPECT_TRUE(seen.insert(std::string(goal.bench_case) + '/' + std::string(goal.peer)).second);
  }
  EXPECT_EQ(seen.size(), 12U);
}

TEST(GoalsTest, MayBeAboutTheRateOrTheTailOfALatency) {
  constexpr std::array<Goal, 2> kOthers = {{
      {.bench_case = "burst",
       .subject = "hearth",
       .peer = "",
       .bound = Bound::at_least,
       .wanted = 500,
       .words = "at least 500 a second",
       .figure = Figure::rate},
      {.bench_case = "burst",
       .subject = "hearth",
       .peer = "",
       .wanted = 3,
       .words = "p99 at most 3 x p50",
       .figure = Figure::p99_by_p50},
  }};
  const std::vector<Row> rows = {{.bench_case = "burst",
                                  .subject = "hearth",
                                  .p50_us = 10,
                                  .p99_us = 60,
                                  .per_s = 1000,
                                  .n = 1}};

  EXPECT_EQ(format_goals(kOthers, rows),
            std::string(kHeading) +
                "  burst             at least 500 a second         1000  reached by 2.00 x\n"
                "  burst             p99 at most 3 x p50         6.00 x  missed by 2.00 x\n"
                "  1 of 2 reached\n");
}

TEST(GoalsTest, MayBeAboutTheTailBesideAPeers) {
  constexpr std::array<Goal, 1> kTail = {{{.bench_case = "proxy",
                                           .subject = "hearth",
                                           .peer = "nginx",
                                           .wanted = 1,
                                           .words = "p99 at most nginx's",
                                           .figure = Figure::p99}}};
  const auto row = [](const char* subject, double p50, double p99) {
    return Row{.bench_case = "proxy", .subject = subject, .p50_us = p50, .p99_us = p99, .n = 1};
  };

  EXPECT_EQ(format_goals(kTail, {row("hearth", 20, 50), row("nginx", 10, 100)}),
            std::string(kHeading) +
                "  proxy             p99 at most nginx's         0.50 x  reached by 2.00 x\n"
                "  1 of 1 reached\n");
}

TEST(GoalsTest, WithoutAPeerAreAboutTheFigureItself) {
  constexpr std::array<Goal, 1> kAlone = {{{.bench_case = "start",
                                            .subject = "hearth",
                                            .peer = "",
                                            .wanted = 200'000,
                                            .words = "at most 200 ms"}}};

  EXPECT_EQ(format_goals(kAlone, {latency("start", "hearth", 100'000)}),
            std::string(kHeading) +
                "  start             at most 200 ms              100000  reached by 2.00 x\n"
                "  1 of 1 reached\n");
  EXPECT_EQ(format_goals(kAlone, {latency("start", "hearth", 400'000)}),
            std::string(kHeading) +
                "  start             at most 200 ms              400000  missed by 2.00 x\n"
                "  0 of 1 reached\n");
}

}  // namespace
}  // namespace hearth::bench
