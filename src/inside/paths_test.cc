#include "inside/paths.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::inside {
namespace {

TEST(Paths, AreCleanedByTheirText) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "."},          {"/", "/"},
      {"//", "/"},        {"a//b/./c/", "a/b/c"},
      {"/a/../b", "/b"},  {"/..", "/"},
      {"/../../x", "/x"}, {"..", ".."},
      {"a/../..", ".."},  {"../../a", "../../a"},
      {"a/..", "."},      {"/a/b/../../..", "/"},
      {"...", "..."},
  };
  for (const auto& [path, clean] : cases) EXPECT_EQ(clean_path(path), clean) << path;
}

TEST(Paths, HaveAFolderAndAName) {
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("/"), "/");
  EXPECT_EQ(folder_of("/a/b"), "/a");
  EXPECT_EQ(folder_of("/a"), "/");
  EXPECT_EQ(folder_of("/"), "/");
}

TEST(Paths, BeginWhereTheRulesSay) {
  const PathRules rules{.home = "/home/user", .working = "/code"};
  EXPECT_EQ(expand_path("", rules), "/code");
  EXPECT_EQ(expand_path("", {.home = "/home/user", .working = ""}), "/home/user");
  EXPECT_EQ(expand_path("~", rules), "/home/user");
  EXPECT_EQ(expand_path("~/x/../y", rules), "/home/user/y");
  EXPECT_EQ(expand_path("a.txt", rules), "/home/user/a.txt");
  EXPECT_EQ(expand_path("../a.txt", rules), "/home/a.txt");
  EXPECT_EQ(expand_path("/etc//x", rules), "/etc/x");
  EXPECT_EQ(expand_path("./~x", rules), "/home/user/~x");
  EXPECT_EQ(expand_path("x", {.home = "/", .working = ""}), "/x");
  EXPECT_THROW(expand_path("~root", rules), Error);
  EXPECT_THROW(expand_path(std::string_view("/a\0b", 4), rules), Error);
}

}  // namespace
}  // namespace hearth::inside
