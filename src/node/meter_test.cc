#include "node/meter.h"

#include <gtest/gtest.h>

#include "node/fake_runtime_internal.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;

class MeterTest : public testing::Test {
 protected:
  std::uint64_t nanocores() { return meter_.measure().sandboxes.at("a").cpu_nanocores; }
  void work(Duration duration, double processors) {
    clock_.advance(duration);
    sandbox().usage.cpu_microseconds += static_cast<std::uint64_t>(
        processors * std::chrono::duration<double, std::micro>(duration).count());
  }
  runtime::Sandbox& sandbox() { return runtime_.sandboxes.front(); }

  class Sandboxes final : public FakeRuntime {
   public:
    std::vector<runtime::Sandbox> list() override { return sandboxes; }
    std::vector<runtime::Sandbox> sandboxes;
  };
  ManualClock clock_;
  Sandboxes runtime_;
  Meter meter_{runtime_, clock_, "here"};

  MeterTest() {
    runtime::Sandbox made;
    made.id = "a";
    made.created = clock_.now();
    made.usage.memory_bytes = 4096;
    runtime_.sandboxes.push_back(made);
  }
};

TEST_F(MeterTest, WhoIsAskedForTheFirstTimeTellsOfItsWholeLife) {
  work(100s, 0.5);
  const remote::UsageReport report = meter_.measure();
  EXPECT_EQ(report.node, "here");
  EXPECT_EQ(report.at, clock_.now());
  EXPECT_EQ(report.sandboxes.at("a").cpu_nanocores, 500'000'000U);
  EXPECT_EQ(report.sandboxes.at("a").window, 100s);
  EXPECT_EQ(report.sandboxes.at("a").memory_bytes, 4096U);
  EXPECT_GT(report.all.memory_bytes, 0U);
}

TEST_F(MeterTest, FromThenOnOfTheTimeSince) {
  work(100s, 0.5);
  nanocores();
  work(20s, 2);
  nanocores();
  work(20s, 0);
  EXPECT_EQ(nanocores(), 0U);
}

TEST_F(MeterTest, AWindowIsNeverTooSmallToTell) {
  work(100s, 0.5);
  nanocores();
  work(20s, 1);
  nanocores();
  work(2s, 4);  // (20 + 8) / 22
  EXPECT_EQ(meter_.measure().sandboxes.at("a").window, 22s);
  EXPECT_EQ(nanocores(), 28'000'000'000U / 22);
}

TEST_F(MeterTest, WhoAsksAtOnceGetsTheSameAnswer) {
  work(10s, 1);
  const std::uint64_t before = nanocores();
  sandbox().usage.cpu_microseconds *= 2;
  EXPECT_EQ(nanocores(), before);
}

TEST_F(MeterTest, WhatHasEndedUsesNothing) {
  work(10s, 1);
  sandbox().state = runtime::State::exited;
  EXPECT_TRUE(meter_.measure().sandboxes.empty());
}

TEST(Meter, ProcessorsAreBusyUnlessTheyWait) {
  EXPECT_EQ(busy_microseconds("cpu  100 10 50 9999 77 3 2 500 0 0\ncpu0 1 2 3\n", 100), 1'650'000U);
  EXPECT_EQ(busy_microseconds("nonsense", 100), 0U);
  EXPECT_GT(read_busy_microseconds(), 0U);
}

}  // namespace
}  // namespace hearth::node
