#include "controllers/pool_status_writer.h"

#include <gtest/gtest.h>

#include "controllers/warm_pool_testing.h"

namespace hearth::controllers {
namespace {

const model::Key kPool{"default", "pool"};

Json replicas(int count) {
  return {{"replicas", count}};
}

class StatusWriter : public testing::Test {
 protected:
  StatusWriter() { server_.client().create(client::kSandboxWarmPools, pool_named("pool", 1)); }

  std::int64_t written() {
    const Json pool = server_.client().get(client::kSandboxWarmPools, "default", "pool");
    return model::number_at(pool, {"status", "replicas"}).value_or(-1);
  }

  apiserver::TestServer server_;
};

constexpr StatusPauses kLong{.between_writes = std::chrono::hours(1),
                             .before_echo = std::chrono::hours(1),
                             .after_failure = std::chrono::milliseconds(1)};

TEST_F(StatusWriter, TheFirstAtOnceTheRestTogetherTheLastAlways) {
  PoolStatusWriter writer{server_.client(), kLong};
  writer.want(kPool, replicas(1));
  ASSERT_TRUE(eventually([&] { return written() == 1; }));
  for (int count = 2; count <= 100; ++count) writer.want(kPool, replicas(count));
  EXPECT_EQ(written(), 1);
  writer.flush();
  EXPECT_EQ(written(), 100);
  EXPECT_EQ(writer.writes(), 2U);
}

TEST_F(StatusWriter, QuickChangesAreWrittenAfterAPause) {
  PoolStatusWriter writer{server_.client(), {.between_writes = std::chrono::milliseconds(20)}};
  for (int count = 1; count <= 50; ++count) writer.want(kPool, replicas(count));
  EXPECT_TRUE(eventually([&] { return written() == 50; }));
  EXPECT_LE(writer.writes(), 25U);
}

TEST_F(StatusWriter, WhatWasJustWrittenIsNotWrittenAgain) {
  PoolStatusWriter writer{server_.client(), {.before_echo = std::chrono::hours(1)}};
  writer.want(kPool, replicas(1));
  ASSERT_TRUE(eventually([&] { return written() == 1; }));
  writer.want(kPool, replicas(1));
  writer.settled(kPool);
  writer.flush();
  EXPECT_EQ(writer.writes(), 1U);
}

TEST_F(StatusWriter, PoolsDoNotWaitForEachOther) {
  server_.client().create(client::kSandboxWarmPools, pool_named("other", 1));
  PoolStatusWriter writer{server_.client(), kLong};
  writer.want(kPool, replicas(1));
  ASSERT_TRUE(eventually([&] { return written() == 1; }));
  writer.want(kPool, replicas(2));
  writer.want({"default", "other"}, replicas(5));
  EXPECT_TRUE(eventually([&] {
    const Json other = server_.client().get(client::kSandboxWarmPools, "default", "other");
    return model::number_at(other, {"status", "replicas"}) == 5;
  }));
  EXPECT_EQ(written(), 1);
}

TEST_F(StatusWriter, APoolThatIsGoneIsNoTrouble) {
  PoolStatusWriter writer{server_.client(), kLong};
  writer.want({"default", "nobody"}, replicas(1));
  writer.flush();
  EXPECT_EQ(writer.writes(), 1U);
  writer.want(kPool, replicas(1));
  writer.forget(kPool);
  writer.flush();
}

TEST_F(StatusWriter, FailuresAreTriedAgain) {
  WatchedClient client{server_.client()};
  std::atomic<int> failures = 3;
  client.before_patch = [&] {
    if (failures-- > 0) fail(Code::unavailable, "not now");
  };
  PoolStatusWriter writer{client, kLong};
  writer.want(kPool, replicas(4));
  EXPECT_TRUE(eventually([&] { return written() == 4; }));
  EXPECT_EQ(writer.writes(), 4U);
}

TEST_F(StatusWriter, EndsWithoutItsPauses) {
  PoolStatusWriter writer{server_.client(), kLong};
  writer.want(kPool, replicas(1));
  writer.want(kPool, replicas(2));
}

}  // namespace
}  // namespace hearth::controllers
