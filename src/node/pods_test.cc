// Which pods a node starts first.
#include "node/pods.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "model/agent_sandbox.h"

namespace hearth::node {
namespace {

using reconcile::Rank;

Json pod_that_waits() {
  return apiserver::json(
      R"({"metadata":{"name":"p","namespace":"default"},"status":{"phase":"Pending"}})");
}

Json member_that_waits() {
  Json pod = pod_that_waits();
  pod.at("metadata").as_object()["labels"] = model::JsonObject{{model::kPoolLabel, "91dd7983"}};
  return pod;
}

TEST(RankOf, WhatSomebodyWaitsForGoesBeforeMembersOfPools) {
  const Json wanted = pod_that_waits();
  const Json member = member_that_waits();
  EXPECT_EQ(rank_of(&wanted), Rank::urgent);
  EXPECT_EQ(rank_of(&member), Rank::idle);
}

TEST(RankOf, WhatEndsTakesTurns) {
  for (Json pod : {pod_that_waits(), member_that_waits()}) {
    pod.at("metadata").as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    EXPECT_EQ(rank_of(&pod), Rank::usual);
  }
  EXPECT_EQ(rank_of(nullptr), Rank::usual);
}

TEST(RankOf, WhatHasBegunIsNoRefillAnyMore) {
  Json member = member_that_waits();
  member.at("status").as_object()["containerStatuses"] = model::JsonArray{model::JsonObject{}};
  EXPECT_EQ(rank_of(&member), Rank::usual);
}

}  // namespace
}  // namespace hearth::node
