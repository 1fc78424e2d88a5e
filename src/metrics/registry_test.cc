#include "metrics/registry.h"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace hearth::metrics {
namespace {

TEST(Registry, SameNameAndLabelsAreTheSameNumber) {
  Registry registry;
  registry.counter("a_total", "As.", {{"x", "1"}}).add();
  registry.counter("a_total", "As.", {{"x", "1"}}).add(2);
  registry.counter("a_total", "As.", {{"x", "2"}}).add();
  EXPECT_EQ(registry.render(),
            "# HELP a_total As.\n"
            "# TYPE a_total counter\n"
            "a_total{x=\"1\"} 3\n"
            "a_total{x=\"2\"} 1\n");
}

TEST(Registry, GaugesGoUpAndDown) {
  Registry registry;
  Gauge& gauge = registry.gauge("g", "G.");
  gauge.set(2.5);
  gauge.add(-4);
  EXPECT_NE(registry.render().find("\ng -1.5\n"), std::string::npos);
  gauge.set(std::numeric_limits<double>::infinity());
  EXPECT_NE(registry.render().find("\ng +Inf\n"), std::string::npos);
}

TEST(Registry, BucketsHoldWhatIsAtMostTheirEnd) {
  Registry registry;
  Histogram& histogram = registry.histogram("h", "H.", {0.1, 1}, {{"x", "y"}});
  for (const double value : {0.05, 0.1, 0.5, 7.0}) histogram.observe(value);
  histogram.observe(std::chrono::milliseconds(500));
  EXPECT_EQ(registry.render(),
            "# HELP h H.\n"
            "# TYPE h histogram\n"
            "h_bucket{x=\"y\",le=\"0.1\"} 2\n"
            "h_bucket{x=\"y\",le=\"1\"} 4\n"
            "h_bucket{x=\"y\",le=\"+Inf\"} 5\n"
            "h_sum{x=\"y\"} 8.15\n"
            "h_count{x=\"y\"} 5\n");
}

TEST(Registry, TextFromOutsideCannotBreakOutOfItsLabel) {
  Registry registry;
  registry.counter("a_total", "one\ntwo \\", {{"x", "\"} 1\nb{y=\"\\"}}).add();
  EXPECT_EQ(registry.render(),
            "# HELP a_total one\\ntwo \\\\\n"
            "# TYPE a_total counter\n"
            "a_total{x=\"\\\"} 1\\nb{y=\\\"\\\\\"} 1\n");
}

TEST(Registry, SomeNumbersAreKnownOnlyWhenAsked) {
  Registry registry;
  int asked = 0;
  registry.collect("depth", "Depth.", Kind::gauge, [&] {
    return std::vector<Sample>{{{{"name", "q"}}, static_cast<double>(++asked)}};
  });
  EXPECT_EQ(asked, 0);
  EXPECT_NE(registry.render().find("depth{name=\"q\"} 1\n"), std::string::npos);
  EXPECT_NE(registry.render().find("depth{name=\"q\"} 2\n"), std::string::npos);
}

TEST(Registry, NothingIsLostBetweenThreads) {
  Registry registry;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) {
          registry.counter("a_total", "As.").add();
          registry.histogram("h", "H.", latency_buckets()).observe(1.0);
        }
      });
    }
  }
  EXPECT_EQ(registry.counter("a_total", "As.").value(), 4000U);
  EXPECT_EQ(registry.histogram("h", "H.", {}).count(), 4000U);
  EXPECT_EQ(registry.histogram("h", "H.", {}).sum(), 4000.0);
}

TEST(Buckets, GrowByTheirFactor) {
  EXPECT_EQ(exponential_buckets(1, 2, 4), (std::vector<double>{1, 2, 4, 8}));
}

TEST(RegistryDeathTest, ANameIsOfOneKind) {
  Registry registry;
  registry.counter("a", "A.");
  EXPECT_DEATH(registry.gauge("a", "A."), "kind");
  EXPECT_DEATH(registry.counter("a b", "A."), "is_name");
}

}  // namespace
}  // namespace hearth::metrics
