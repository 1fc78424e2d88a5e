#include "inside/confined_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "inside/variables.h"

namespace hearth::inside {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using Kind = Place::Kind;

std::optional<Code> code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

class ConfinedPath : public testing::Test {
 protected:
  ConfinedPath() {
    char path[] = "/tmp/hearth-confined-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path), nullptr);
    top_ = path;
    root_path_ = top_ / "root";
    fs::create_directories(root_path_ / "a" / "b");
    write(root_path_ / "a" / "file", "inside");
    write(top_ / "secret", "outside");
    fs::create_directory(top_ / "rooted");
    owner_.uid = ::geteuid();
    owner_.gid = ::getegid();
    root_.emplace(root_path_.string(), owner_);
  }
  void TearDown() override { fs::remove_all(top_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string read(const linux::Fd& fd) {
    char text[100];
    const ssize_t got = ::read(fd.get(), text, sizeof text);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  void link(const std::string& target, const fs::path& name) {
    fs::create_symlink(target, root_path_ / name);
  }
  Kind kind_of(std::string_view path) { return root_->locate(path).kind; }
  std::optional<Code> failure_of(std::string_view path) {
    return code_of([&] { root_->locate(path); });
  }

  fs::path top_;
  fs::path root_path_;
  guest::User owner_;
  std::optional<ConfinedRoot> root_;
};

TEST_F(ConfinedPath, FindsWhatIsThereAndWhatIsNot) {
  EXPECT_EQ(kind_of("a"), Kind::folder);
  EXPECT_EQ(kind_of("a/file"), Kind::file);
  EXPECT_EQ(kind_of("a/none"), Kind::nothing);
  EXPECT_EQ(kind_of("x/y/z"), Kind::nothing);
  EXPECT_EQ(kind_of("a/file/below"), Kind::nothing);
  EXPECT_EQ(kind_of(std::string(300, 'n')), Kind::nothing);
  for (const char* root : {"", ".", "/", "//", "./", "a/..", "/a/../."})
    EXPECT_TRUE(root_->locate(root).is_root()) << root;
}

TEST_F(ConfinedPath, PassesOverSlashesAndDots) {
  EXPECT_EQ(root_->locate("//a/./b/../file").names, (Names{"a", "file"}));
  EXPECT_EQ(root_->locate("x/../a/file").names, (Names{"a", "file"}));
  EXPECT_EQ(root_->locate("a/file/").names, (Names{"a", "file"}));
  EXPECT_EQ(root_->locate("...").names, (Names{"..."}));
}

TEST_F(ConfinedPath, StaysInside) {
  for (const char* path : {"..", "../", "/..", "../secret", "a/../../secret", "a/b/../../../root",
                           "none/../../secret", "a/file/../../../secret", "./.././root/a"}) {
    EXPECT_EQ(failure_of(path), Code::forbidden) << path;
  }
}

TEST_F(ConfinedPath, RefusesWhatIsNoPath) {
  EXPECT_EQ(failure_of(std::string_view("a\0b", 3)), Code::invalid);
  EXPECT_EQ(failure_of(std::string(5000, 'x')), Code::invalid);
}

TEST_F(ConfinedPath, FollowsLinksThatStayInside) {
  link("file", "a/near");
  link("../near", "a/b/twice");
  link((root_path_ / "a" / "file").string(), "absolute");
  link(root_path_.string(), "self");
  link("a", "folder");
  link("not/there", "dangling");
  for (const char* path : {"a/near", "a/b/twice", "absolute", "self/a/file", "folder/file",
                           "self/self/self/folder/near"}) {
    EXPECT_EQ(root_->locate(path).names, (Names{"a", "file"})) << path;
  }
  EXPECT_EQ(root_->locate("dangling").names, (Names{"not", "there"}));
  EXPECT_EQ(kind_of("dangling"), Kind::nothing);
}

TEST_F(ConfinedPath, KnowsItselfByBothNames) {
  fs::create_directory_symlink(root_path_, top_ / "alias");
  root_.emplace((top_ / "alias").string() + "/", owner_);
  link((top_ / "alias" / "a").string(), "by_alias");
  link((root_path_ / "a").string(), "by_name");
  EXPECT_EQ(root_->locate("by_alias/file").names, (Names{"a", "file"}));
  EXPECT_EQ(root_->locate("by_name/file").names, (Names{"a", "file"}));
}

TEST_F(ConfinedPath, FollowsNoLinkOutside) {
  link("../secret", "relative");
  link((top_ / "secret").string(), "absolute");
  link("/", "top");
  link("..", "up");
  link("relative", "twice");
  link(root_path_.string() + "/../secret", "through");
  link(top_.string() + "/rooted", "similar");  // begins like the root's name
  for (const char* path : {"relative", "absolute", "top/etc/passwd", "up/secret", "twice",
                           "through", "similar", "a/../up", "up/root/a/file"}) {
    EXPECT_EQ(failure_of(path), Code::forbidden) << path;
  }
}

TEST_F(ConfinedPath, GivesUpOnCircles) {
  link("two", "one");
  link("one", "two");
  link("own/x", "own");
  EXPECT_EQ(failure_of("one"), Code::not_found);
  EXPECT_EQ(failure_of("own"), Code::not_found);
}

TEST_F(ConfinedPath, OpensFilesOnly) {
  ASSERT_EQ(::mkfifo((root_path_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read(open_for_reading(root_->locate("a/file"))), "inside");
  EXPECT_EQ(kind_of("pipe"), Kind::other);
  EXPECT_EQ(code_of([&] { open_for_reading(root_->locate("pipe")); }), Code::invalid);
  EXPECT_EQ(code_of([&] { open_for_reading(root_->locate("a")); }), Code::invalid);
  EXPECT_EQ(code_of([&] { open_for_reading(root_->locate("none")); }), Code::not_found);
}

// Races, by construction: the world changes between the look and the use.

TEST_F(ConfinedPath, DoesNotReadALinkThatTookTheFilesPlace) {
  const Place place = root_->locate("a/file");
  fs::remove(root_path_ / "a" / "file");
  link("../../secret", "a/file");
  EXPECT_EQ(code_of([&] { open_for_reading(place); }), Code::conflict);
}

TEST_F(ConfinedPath, DoesNotWaitForAPipeThatTookTheFilesPlace) {
  const Place place = root_->locate("a/file");
  fs::remove(root_path_ / "a" / "file");
  ASSERT_EQ(::mkfifo((root_path_ / "a" / "file").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { open_for_reading(place); }), Code::conflict);
}

TEST_F(ConfinedPath, DoesNotMakeFoldersThroughALinkThatAppeared) {
  const Place place = root_->locate("new/folder/file");
  link("..", "new");
  EXPECT_EQ(code_of([&] { root_->make_parent(place, owner_); }), Code::invalid);
  EXPECT_FALSE(fs::exists(top_ / "folder"));
}

TEST_F(ConfinedPath, DoesNotRemoveThroughALinkThatTookAFoldersPlace) {
  const Place place = root_->locate("a/b");
  fs::rename(root_path_ / "a", root_path_ / "old");
  fs::create_directory(top_ / "b");
  link("..", "a");
  EXPECT_EQ(code_of([&] { root_->remove(place, true); }), Code::conflict);
  EXPECT_TRUE(fs::exists(top_ / "b"));
}

TEST_F(ConfinedPath, NeverLeavesWhileLinksAreSwapped) {
  std::atomic<bool> done = false;
  fs::create_directory(top_ / "bad");
  write(top_ / "bad" / "file", "outside");
  const std::string spot = (root_path_ / "spot").string();
  std::thread swapper([&] {
    while (!done) {
      fs::create_directory_symlink(top_ / "bad", spot + ".new");
      fs::rename(spot + ".new", spot);
      fs::remove(spot);
      fs::create_directory_symlink("a", spot);
      fs::remove(spot);
    }
  });
  int read_inside = 0;
  for (int i = 0; i < 20'000; ++i) {
    try {
      const Place place = root_->locate("spot/../spot/file");
      if (place.kind != Kind::file) continue;
      ASSERT_EQ(read(open_for_reading(place)), "inside");
      ++read_inside;
    } catch (const Error&) {
      // Forbidden, or changed in between.
    }
  }
  done = true;
  swapper.join();
  EXPECT_GT(read_inside, 0);
}

TEST_F(ConfinedPath, WritesWholeFilesOrNone) {
  const Place place = root_->locate("new/folder/file");
  {
    const linux::Fd parent = root_->make_parent(place, owner_);
    {
      NewFile abandoned(parent.get(), ".tmp-", 0644, owner_);
      abandoned.write("half");
    }
    EXPECT_TRUE(fs::is_empty(root_path_ / "new" / "folder"));
    NewFile file(parent.get(), ".tmp-", 0640, owner_);
    file.write("who");
    file.write("le");
    EXPECT_FALSE(fs::exists(root_path_ / "new" / "folder" / "file"));
    file.finish("file");
  }
  EXPECT_EQ(read(root_path_ / "new" / "folder" / "file"), "whole");
  EXPECT_EQ(root_->locate("new/folder/file").status.st_mode & 07777, 0640U);
  EXPECT_EQ(root_->locate("new").status.st_mode & 07777, 0755U);
}

TEST_F(ConfinedPath, WritesNoFileOverAFolder) {
  const linux::Fd parent = root_->make_parent(root_->locate("a"), owner_);
  NewFile file(parent.get(), ".tmp-", 0644, owner_);
  EXPECT_EQ(code_of([&] { file.finish("a"); }), Code::invalid);
}

TEST_F(ConfinedPath, MakesNoFolderBelowAFile) {
  EXPECT_EQ(code_of([&] { root_->make_parent(root_->locate("a/file/x"), owner_); }), Code::invalid);
}

TEST_F(ConfinedPath, Removes) {
  link("a/file", "to_file");
  EXPECT_EQ(code_of([&] { root_->remove(root_->locate("none"), false); }), Code::not_found);
  EXPECT_EQ(code_of([&] { root_->remove(root_->locate("a"), false); }), Code::conflict);
  root_->remove(root_->locate("a/b"), false);
  EXPECT_FALSE(fs::exists(root_path_ / "a" / "b"));
  root_->remove(root_->locate("to_file"), false);  // what a link leads to
  EXPECT_FALSE(fs::exists(root_path_ / "a" / "file"));
  root_->remove(root_->locate("a"), true);
  EXPECT_FALSE(fs::exists(root_path_ / "a"));
}

TEST_F(ConfinedPath, EmptiesTheRootAndKeepsIt) {
  link("../rooted", "out");
  EXPECT_EQ(code_of([&] { root_->remove(root_->locate("."), false); }), Code::conflict);
  root_->remove(root_->locate("/"), true);
  EXPECT_TRUE(fs::is_empty(root_path_));
  EXPECT_TRUE(fs::exists(top_ / "rooted"));
}

TEST_F(ConfinedPath, MakesARootThatIsMissing) {
  const fs::path path = top_ / "x" / "y";
  const ConfinedRoot root(path.string() + "/", owner_);
  EXPECT_TRUE(fs::is_directory(path));
  EXPECT_TRUE(root.locate("").is_root());
  EXPECT_EQ(code_of([&] { ConfinedRoot("relative", owner_); }), Code::invalid);
  EXPECT_TRUE(code_of([&] { ConfinedRoot((top_ / "secret").string(), owner_); }));
}

TEST(VariableOr, TakesTheLastThatIsNotBlank) {
  EXPECT_EQ(variable_or({"A=1", "AB=2", "A=3"}, "A", "x"), "3");
  EXPECT_EQ(variable_or({"A=1"}, "B", "x"), "x");
  EXPECT_EQ(variable_or({"A= "}, "A", "x"), "x");
  EXPECT_EQ(variable_or({"A"}, "A", "x"), "x");
}

}  // namespace
}  // namespace hearth::inside
