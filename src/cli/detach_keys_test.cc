#include "cli/detach_keys.h"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(DetachKeysTest, PassesEverythingElse) {
  DetachKeys keys;
  EXPECT_EQ(keys.pass("ls\r\x11\x03"), "ls\r\x11\x03");
  EXPECT_EQ(keys.pass("a\x10"), "a") << "it waits for what comes next";
  EXPECT_EQ(keys.pass("b"),
            "\x10"
            "b");
  EXPECT_EQ(keys.pass("\x10\x10\x10x"), "\x10\x10\x10x");
  EXPECT_FALSE(keys.detached());
}

TEST(DetachKeysTest, SeesThemTogetherAndApart) {
  DetachKeys together;
  EXPECT_EQ(together.pass("ls\x10\x11rm"), "ls");
  EXPECT_TRUE(together.detached());

  DetachKeys apart;
  EXPECT_EQ(apart.pass("\x10"), "");
  EXPECT_EQ(apart.pass("\x10"), "\x10");
  EXPECT_FALSE(apart.detached());
  EXPECT_EQ(apart.pass("\x11"), "");
  EXPECT_TRUE(apart.detached());
}

}  // namespace
}  // namespace hearth::cli
