#include "network/shelves.h"

#include <gtest/gtest.h>

namespace hearth::network {
namespace {

const auto kTwin = [] { return true; };
const auto kNoTwin = [] { return false; };

Policy without(const char* cidr) {
  return {.mode = Mode::world, .deny = {parse_rule(cidr)}};
}

constexpr Place on(unsigned shelf) {
  return {.kind = Place::Kind::shelf, .shelf = shelf};
}
constexpr Place kOwn{.kind = Place::Kind::own_chain};

TEST(Shelves, ThePlainPolicyIsOnTheFirstAndNothingIsNowhere) {
  const Shelves shelves;
  EXPECT_EQ(shelves.find({.mode = Mode::world}, kNoTwin), on(0));
  EXPECT_EQ(shelves.find({}, kTwin), Place());
}

TEST(Shelves, WhatTwoHaveIsShared) {
  Shelves shelves;
  const Policy common = without("10.0.0.0/8");
  EXPECT_EQ(shelves.find(common, kNoTwin), kOwn);
  EXPECT_EQ(shelves.find(common, kTwin), on(1));
  shelves.enter(on(1), common);
  EXPECT_EQ(shelves.find(common, kNoTwin), on(1));
  EXPECT_EQ(shelves.find(without("10.1.0.0/16"), kTwin), on(2));
  shelves.leave(on(1));
  EXPECT_TRUE(shelves.is_free(1));
  EXPECT_EQ(shelves.find(common, kNoTwin), kOwn) << "nobody has it any more";
}

TEST(Shelves, OfNeighboursEverybodyHasHisOwn) {
  Policy open = without("10.0.0.0/8");
  open.open = {parse_rule("10.77.0.9")};
  EXPECT_EQ(Shelves().find(open, kTwin), kOwn);
}

TEST(Shelves, WhenAllAreTakenThereAreChains) {
  Shelves shelves;
  for (unsigned i = 1; i < kShelves; ++i) {
    const Policy policy = without(("10.0.0." + std::to_string(i)).c_str());
    const Place place = shelves.find(policy, kTwin);
    EXPECT_EQ(place, on(i));
    shelves.enter(place, policy);
  }
  EXPECT_EQ(shelves.find(without("10.0.1.1"), kTwin), kOwn);
}

}  // namespace
}  // namespace hearth::network
