#include "bench/statistics.h"

#include <numeric>

#include <gtest/gtest.h>

namespace hearth::bench {
namespace {

std::vector<double> one_to(int last) {
  std::vector<double> samples(static_cast<std::size_t>(last));
  std::iota(samples.rbegin(), samples.rend(), 1.0);  // not in order
  return samples;
}

TEST(QuantileTest, IsTheSampleAtItsRank) {
  EXPECT_EQ(quantile(one_to(100), 0.50), 50);
  EXPECT_EQ(quantile(one_to(100), 0.99), 99);
  EXPECT_EQ(quantile(one_to(100), 0.0), 1);
  EXPECT_EQ(quantile(one_to(100), 1.0), 100);
}

TEST(QuantileTest, OfFewSamplesTheTailIsTheWorstOne) {
  EXPECT_EQ(quantile(one_to(40), 0.99), 40);
  EXPECT_EQ(quantile({7}, 0.99), 7);
  EXPECT_EQ(quantile({3, 9}, 0.50), 3);
}

TEST(QuantileTest, OfNothingIsZero) {
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(SummaryTest, CountsWhatItIsMadeOf) {
  const Summary summary = summarize(one_to(200));

  EXPECT_EQ(summary.p50, 100);
  EXPECT_EQ(summary.p99, 198);
  EXPECT_EQ(summary.count, 200U);
}

}  // namespace
}  // namespace hearth::bench
