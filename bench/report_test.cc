#include "bench/report.h"

#include <gtest/gtest.h>

namespace hearth::bench {
namespace {

Row latency(const std::string& bench_case, const std::string& subject, double p50, double p99) {
  return {.bench_case = bench_case, .subject = subject, .p50_us = p50, .p99_us = p99, .n = 40};
}

TEST(JsonTest, HasTheMembersThatApplyAndNoOthers) {
  const Row rate{.bench_case = "cycle", .subject = "crun", .per_s = 98.04, .workers = 2, .n = 300};
  const Row memory{.bench_case = "idle", .subject = "a\"b", .kib = 325, .n = 3};

  EXPECT_EQ(
      to_json({latency("cold", "hearth", 1234.56, 2000), rate, memory}),
      "[\n"
      " {\"case\": \"cold\", \"subject\": \"hearth\", \"p50_us\": 1234.6, \"p99_us\": 2000.0, "
      "\"n\": 40},\n"
      " {\"case\": \"cycle\", \"subject\": \"crun\", \"per_s\": 98.0, \"workers\": 2, \"n\": "
      "300},\n"
      " {\"case\": \"idle\", \"subject\": \"a\\\"b\", \"kib\": 325.0, \"n\": 3}\n"
      "]\n");
}

TEST(JsonTest, OfNothingIsAnEmptyArray) {
  EXPECT_EQ(to_json({}), "[]\n");
}

TEST(TablesTest, ShowEachCaseWithRatiosToTheReference) {
  const std::vector<Row> rows = {latency("cold", "crun", 8000, 9000),
                                 latency("cold", "hearth", 1000, 1500),
                                 {.bench_case = "cycle", .subject = "hearth", .per_s = 500, .n = 9},
                                 {.bench_case = "cycle", .subject = "crun", .per_s = 20, .n = 9}};

  EXPECT_EQ(format_tables(rows, "hearth"),
            "cold                           p50 us     p99 us         / hearth       n\n"
            "  crun                         8000.0     9000.0             8.00      40\n"
            "  hearth                       1000.0     1500.0             1.00      40\n"
            "\n"
            "cycle                           per s         / hearth       n\n"
            "  hearth                        500.0             1.00       9\n"
            "  crun                           20.0           0.0400       9\n");
}

TEST(TablesTest, TakeWhoeverOfOursIsThereForReference) {
  EXPECT_EQ(format_tables(
                {latency("cold", "hearth_pooled", 500, 600), latency("cold", "crun", 8000, 9000)},
                "hearth"),
            "cold                           p50 us     p99 us  / hearth_pooled       n\n"
            "  hearth_pooled                 500.0      600.0             1.00      40\n"
            "  crun                         8000.0     9000.0            16.00      40\n");
}

TEST(TablesTest, WithoutTheReferenceThereAreNoRatios) {
  EXPECT_EQ(format_tables({latency("cold", "crun", 8000, 9000)}, "hearth"),
            "cold                           p50 us     p99 us         / hearth       n\n"
            "  crun                         8000.0     9000.0                       40\n");
}

TEST(SkipsTest, SayWhatIsMissingAndWhy) {
  EXPECT_EQ(format_skips({{.bench_case = "", .subject = "runc", .reason = "not installed"},
                          {.bench_case = "exec", .subject = "crun", .reason = "it hung"}}),
            "skipped: runc: not installed\n"
            "skipped: crun in exec: it hung\n");
}

}  // namespace
}  // namespace hearth::bench
