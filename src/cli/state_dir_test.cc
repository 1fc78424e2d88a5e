#include "cli/state_dir.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

TEST(StateDirTest, TheFlagWinsOverTheVariableOverTheDefault) {
  EXPECT_EQ(choose_state_dir({.flag = "/a", .variable = "/b", .uid = 0}), "/a");
  EXPECT_EQ(choose_state_dir({.variable = "/b", .uid = 0}), "/b");
  EXPECT_EQ(choose_state_dir({.xdg_state_home = "/x", .home = "/root", .uid = 0}),
            "/var/lib/hearth");
}

TEST(StateDirTest, UsersKeepItInTheirOwnStateFolder) {
  EXPECT_EQ(choose_state_dir({.xdg_state_home = "/x", .home = "/home/u", .uid = 1000}),
            "/x/hearth");
  EXPECT_EQ(choose_state_dir({.home = "/home/u", .uid = 1000}), "/home/u/.local/state/hearth");
  EXPECT_EQ(choose_state_dir({.xdg_state_home = "relative", .home = "/home/u", .uid = 1000}),
            "/home/u/.local/state/hearth");
  EXPECT_THROW(choose_state_dir({.uid = 1000}), Error);
}

TEST(StateDirTest, PathsBecomeAbsoluteAndPlain) {
  EXPECT_EQ(choose_state_dir({.flag = "/a//b/../c/"}), "/a/c");
  EXPECT_EQ(choose_state_dir({.flag = "x"}), (std::filesystem::current_path() / "x").string());
}

}  // namespace
}  // namespace hearth::cli
