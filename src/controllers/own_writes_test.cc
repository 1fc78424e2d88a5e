#include "controllers/own_writes.h"

#include <gtest/gtest.h>

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;
using client::Object;
using model::Json;

const model::Key kKey{"a", "x"};

Json version(std::string_view text) {
  return model::JsonObject{
      {"metadata",
       model::JsonObject{{"namespace", "a"}, {"name", "x"}, {"resourceVersion", text}}}};
}

Object shared(std::string_view text) {
  return std::make_shared<const Json>(version(text));
}

class OwnWritesTest : public testing::Test {
 protected:
  std::string newest(const Object& cached) {
    const Object found = writes_.newest(kKey, cached);
    return found ? std::string(model::resource_version_of(*found)) : "none";
  }

  ManualClock clock_;
  OwnWrites writes_{clock_};
};

TEST_F(OwnWritesTest, TheNewerOfBothCounts) {
  EXPECT_EQ(newest(nullptr), "none");
  EXPECT_EQ(newest(shared("5")), "5");

  writes_.remember(version("10"));

  EXPECT_EQ(newest(nullptr), "10");
  EXPECT_EQ(newest(shared("9")), "10");  // as numbers
  EXPECT_EQ(newest(shared("11")), "11");
  EXPECT_EQ(writes_.size(), 0u);
}

TEST_F(OwnWritesTest, WhatNeverShowsIsGivenUp) {
  writes_.remember(version("10"));
  clock_.advance(1s);
  EXPECT_EQ(newest(nullptr), "10");
  clock_.advance(1ms);
  EXPECT_EQ(newest(nullptr), "none");
  EXPECT_EQ(writes_.size(), 0u);
}

TEST_F(OwnWritesTest, VersionsThatAreNoNumbersLeaveItToTheCache) {
  writes_.remember(version("abc"));
  EXPECT_EQ(newest(shared("xyz")), "xyz");
  EXPECT_EQ(newest(shared("")), "");
}

TEST_F(OwnWritesTest, KnowsItsOwnAndNotWhatCameBetween) {
  writes_.remember(version("10"));
  writes_.remember(version("12"));

  EXPECT_TRUE(writes_.is_own(version("10")));
  EXPECT_FALSE(writes_.is_own(version("11")));
  EXPECT_TRUE(writes_.is_own(version("12")));

  writes_.seen(version("10"));
  EXPECT_FALSE(writes_.is_own(version("10")));
  EXPECT_EQ(newest(shared("10")), "12");
  writes_.seen(version("12"));
  EXPECT_EQ(writes_.size(), 0u);
}

TEST_F(OwnWritesTest, TheEndOfAnObjectIsSeenToo) {
  writes_.remember(version("10"));
  writes_.seen(version("15"));  // what a deletion shows
  EXPECT_EQ(newest(nullptr), "none");
}

}  // namespace
}  // namespace hearth::controllers
