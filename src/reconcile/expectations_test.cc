#include "reconcile/expectations.h"

#include <gtest/gtest.h>

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;

const model::Key kPool{"team", "pool"};

TEST(Expectations, NoMoreIsAskedForBeforeAllWasSeen) {
  const ManualClock clock;
  Expectations expectations(clock);
  EXPECT_TRUE(expectations.expect_creations(kPool, 2));
  EXPECT_FALSE(expectations.expect_creations(kPool, 1));
  expectations.creation_seen(kPool);
  EXPECT_FALSE(expectations.are_met(kPool));
  expectations.creation_seen(kPool);
  EXPECT_TRUE(expectations.are_met(kPool));
  expectations.creation_seen(kPool);  // one that nobody expected
  EXPECT_TRUE(expectations.are_met(kPool));
}

TEST(Expectations, DeletionsAreKnownByTheirUid) {
  const ManualClock clock;
  Expectations expectations(clock);
  expectations.expect_deletion(kPool, "u1");
  EXPECT_TRUE(expectations.expects_deletion_of(kPool, "u1"));
  EXPECT_FALSE(expectations.expects_deletion_of(kPool, "u2"));
  expectations.deletion_seen(kPool, "u2");
  EXPECT_FALSE(expectations.are_met(kPool));
  expectations.deletion_seen(kPool, "u1");
  EXPECT_TRUE(expectations.are_met(kPool));
}

TEST(Expectations, WhatNeverComesIsGivenUp) {
  ManualClock clock;
  Expectations expectations(clock, 5min);
  EXPECT_TRUE(expectations.expect_creations(kPool, 1));
  clock.advance(5min + 1s);
  EXPECT_TRUE(expectations.are_met(kPool));
  EXPECT_TRUE(expectations.expect_creations(kPool, 1));
  expectations.forget(kPool);
  EXPECT_TRUE(expectations.are_met(kPool));
}

}  // namespace
}  // namespace hearth::reconcile
