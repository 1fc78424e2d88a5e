// Archives applied to a real folder, as root: owners, links, marks, and everything that tries to
// get out.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "linux/files.h"
#include "linux/kernel_testing.h"
#include "unpack/tree_writer.h"
#include "unpack/unpack_testing.h"

namespace hearth::unpack {
namespace {

namespace fs = std::filesystem;
using image::tar_of;

class TreeWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_CHOWN);
    char name[] = "/tmp/hearth-tree-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw_errno("make a scratch folder");
    outer_ = name;
    root_ = outer_ + "/root";
    fs::create_directory(root_);
    std::ofstream(outer_ + "/canary") << "alive";
  }
  void TearDown() override {
    if (outer_.empty()) return;
    EXPECT_EQ(linux::read_file(outer_ + "/canary"), "alive");
    EXPECT_EQ(fs::hard_link_count(outer_ + "/canary"), 1U);
    EXPECT_EQ(std::distance(fs::directory_iterator(outer_), fs::directory_iterator()), 2);
    fs::remove_all(outer_);
  }

  std::uint64_t apply_bytes(const std::string& archive, std::uint64_t max_bytes = 1 << 20,
                            std::uint64_t max_entries = 1000) {
    const linux::Fd file = file_of(archive);
    const linux::Fd root = linux::open_file(root_, O_RDONLY | O_DIRECTORY);
    ByteInput input(file.get());
    return apply_archive(input, root.get(), max_bytes, max_entries);
  }
  void apply(const std::vector<TarPart>& parts) { apply_bytes(tar_of(parts)); }

  void expect_invalid(const std::vector<TarPart>& parts, const std::string& why) {
    const auto error = error_of([&] { apply(parts); });
    ASSERT_TRUE(error) << why;
    EXPECT_EQ(error->code(), Code::invalid) << error->what();
    EXPECT_NE(std::string(error->what()).find(why), std::string::npos) << error->what();
  }

  struct stat status(const std::string& path) {
    struct stat status{};
    if (::lstat((root_ + "/" + path).c_str(), &status) != 0) throw_errno("stat '{}'", path);
    return status;
  }
  std::string text(const std::string& path) { return linux::read_file(root_ + "/" + path); }
  bool exists(const std::string& path) {
    return fs::exists(fs::symlink_status(root_ + "/" + path));
  }
  bool is_opaque(const std::string& path) {
    char value = 0;
    return ::lgetxattr((root_ + "/" + path).c_str(), "user.overlay.opaque", &value, 1) == 1 &&
           value == 'y';
  }
  bool is_whiteout(const std::string& path) {
    return S_ISCHR(status(path).st_mode) && status(path).st_rdev == makedev(0, 0);
  }

  std::string outer_;
  std::string root_;
};

TEST_F(TreeWriterTest, SetsEverythingThatAnEntrySays) {
  apply({{.path = "d", .type = '5', .mode = 01777, .uid = 5, .mtime = 1000},
         {.path = "d/f", .data = "data", .mode = 06755, .uid = 1000, .gid = 2000, .mtime = 2000},
         {.path = "d/l", .type = '2', .link = "/etc/passwd", .uid = 3, .mtime = 3000},
         {.path = "d/p", .type = '6', .mode = 0622, .gid = 4}});
  EXPECT_EQ(status("d").st_mode, S_IFDIR | 01777U);
  EXPECT_EQ(status("d").st_mtime, 1000);
  EXPECT_EQ(status("d/f").st_mode, S_IFREG | 06755U);
  EXPECT_EQ(status("d/f").st_uid, 1000U);
  EXPECT_EQ(status("d/f").st_gid, 2000U);
  EXPECT_EQ(status("d/f").st_mtime, 2000);
  EXPECT_EQ(fs::read_symlink(root_ + "/d/l"), "/etc/passwd");
  EXPECT_EQ(status("d/l").st_uid, 3U);
  EXPECT_EQ(status("d/l").st_mtime, 3000);
  EXPECT_EQ(status("d/p").st_mode, S_IFIFO | 0622U);
}

TEST_F(TreeWriterTest, MakesParentsThatNobodyNames) {
  apply({{.path = "/a/b/c", .data = "c"}});
  EXPECT_EQ(text("a/b/c"), "c");
  EXPECT_EQ(status("a/b").st_mode & 07777, 0755U);
}

TEST_F(TreeWriterTest, LaterEntriesReplaceEarlierOnes) {
  apply({{.path = "f", .data = "first, and longer"},
         {.path = "f", .data = "second"},
         {.path = "d", .type = '5', .mode = 0700},
         {.path = "d/kept", .data = "kept"},
         {.path = "d", .type = '5', .mode = 0711},
         {.path = "was_file", .data = "x"},
         {.path = "was_file", .type = '5'},
         {.path = "was_folder/x", .data = "x"},
         {.path = "was_folder", .data = "file"},
         {.path = "was_link", .type = '2', .link = "../canary"},
         {.path = "was_link", .data = "not the canary"}});
  EXPECT_EQ(text("f"), "second");
  EXPECT_EQ(text("d/kept"), "kept");
  EXPECT_EQ(status("d").st_mode & 07777, 0711U);
  EXPECT_TRUE(S_ISDIR(status("was_file").st_mode));
  EXPECT_EQ(text("was_folder"), "file");
  EXPECT_EQ(text("was_link"), "not the canary");
}

TEST_F(TreeWriterTest, NothingGetsOutByPath) {
  for (const char* path : {"../canary", "a/../../canary", "/../canary", "..", "a/.."})
    expect_invalid({{.path = path, .data = "dead"}}, "'..'");
}

TEST_F(TreeWriterTest, NothingGetsOutByLinksAmongParents) {
  // As in a chroot: they lead to places inside, or nowhere.
  apply({{.path = "real", .type = '5'},
         {.path = "inside", .type = '2', .link = "/real"},
         {.path = "inside/f", .data = "f"}});
  EXPECT_EQ(text("real/f"), "f");
  apply(
      {{.path = "up", .type = '2', .link = "../../../../.."}, {.path = "up/canary", .data = "in"}});
  EXPECT_EQ(text("canary"), "in");
  apply({{.path = "abs", .type = '2', .link = outer_}});
  expect_invalid({{.path = "abs/canary", .data = "dead"}}, "no folder");
  apply({{.path = "loop", .type = '2', .link = "loop"}});
  expect_invalid({{.path = "loop/x", .data = "dead"}}, "no folder");
  expect_invalid({{.path = "file", .data = "x"}, {.path = "file/x", .data = "x"}}, "no folder");
}

TEST_F(TreeWriterTest, FoldersReachedByLinksAreNoDeeperThanOthers) {
  std::vector<TarPart> parts;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "d/";
  parts.push_back({.path = deep, .type = '5'});
  parts.push_back({.path = "link", .type = '2', .link = deep});
  parts.push_back({.path = "link/" + deep, .type = '5'});
  // Long paths need an extended header.
  for (TarPart& part : parts) part.pax = {{"path", part.path}, {"linkpath", part.link}};
  parts[0].pax.pop_back();
  parts[2].pax.pop_back();
  expect_invalid(parts, "folders deep");
}

TEST_F(TreeWriterTest, HardLinksStayInside) {
  apply({{.path = "a", .data = "a"}, {.path = "d/b", .type = '1', .link = "./a"}});
  EXPECT_EQ(status("a").st_ino, status("d/b").st_ino);
  // To itself: nothing to do, above all nothing to remove.
  apply({{.path = "c", .data = "c"}, {.path = "c", .type = '1', .link = "c"}});
  EXPECT_EQ(text("c"), "c");
  expect_invalid({{.path = "x", .type = '1', .link = "../canary"}}, "'..'");
  expect_invalid({{.path = "x", .type = '1', .link = outer_ + "/canary"}}, "not in this layer");
  expect_invalid({{.path = "out", .type = '2', .link = outer_},
                  {.path = "x", .type = '1', .link = "out/canary"}},
                 "not in this layer");
  expect_invalid({{.path = "x", .type = '1', .link = "d"}}, "no file");
  expect_invalid({{.path = "x", .type = '1', .link = "/"}}, "root");
  // Of a link: the link itself, not what it points to.
  apply({{.path = "sym", .type = '2', .link = "../canary"},
         {.path = "h", .type = '1', .link = "sym"}});
  EXPECT_TRUE(S_ISLNK(status("h").st_mode));
}

TEST_F(TreeWriterTest, WhiteoutsBecomeWhatOverlayfsKnows) {
  apply({{.path = "d/.wh.gone"}, {.path = "o/.wh..wh..opq"}});
  EXPECT_TRUE(is_whiteout("d/gone"));
  EXPECT_FALSE(exists("d/.wh.gone"));
  EXPECT_TRUE(is_opaque("o"));
  EXPECT_FALSE(exists("o/.wh..wh..opq"));
  for (const char* path : {".wh.", "a/.wh...", ".wh..", ".wh..wh.x", ".wh.a/b"})
    expect_invalid({{.path = path}}, "whiteout");
  expect_invalid({{.path = ".wh.x", .type = '5'}}, "no file");
}

TEST_F(TreeWriterTest, WhiteoutsSpeakOfTheLayersBelow) {
  apply({{.path = "f1", .data = "mine"},
         {.path = ".wh.f1"},
         {.path = ".wh.f2"},
         {.path = "f2", .data = "mine"},
         {.path = "d1/x", .data = "mine"},
         {.path = ".wh.d1"},
         {.path = ".wh.d2"},
         {.path = "d2", .type = '5'},
         {.path = ".wh.d3"},
         {.path = "d3/x", .data = "mine"}});
  EXPECT_EQ(text("f1"), "mine");
  EXPECT_EQ(text("f2"), "mine");
  EXPECT_EQ(text("d1/x"), "mine");
  EXPECT_EQ(text("d3/x"), "mine");
  for (const char* folder : {"d1", "d2", "d3"}) EXPECT_TRUE(is_opaque(folder)) << folder;
}

TEST_F(TreeWriterTest, KeepsHarmlessXattrsOnly) {
  // Of /usr/bin/ping: cap_net_raw=ep, as it is stored.
  const std::string capability("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  apply({{.path = "d", .type = '5', .pax = {{"SCHILY.xattr.user.overlay.redirect", "/etc"}}},
         {.path = "f",
          .pax = {{"SCHILY.xattr.user.mine", "1"},
                  {"SCHILY.xattr.user.overlay.opaque", "y"},
                  {"SCHILY.xattr.trusted.overlay.opaque", "y"},
                  {"SCHILY.xattr.security.selinux", "x"},
                  {"SCHILY.xattr.security.capability", capability}}}});
  char list[1024];
  const ssize_t size = ::llistxattr((root_ + "/f").c_str(), list, sizeof list);
  ASSERT_GT(size, 0);
  const std::string names(list, static_cast<std::size_t>(size));
  EXPECT_NE(names.find("user.mine"), std::string::npos);
  EXPECT_NE(names.find("security.capability"), std::string::npos);
  EXPECT_EQ(names.find("overlay"), std::string::npos);
  EXPECT_EQ(names.find("selinux"), std::string::npos);
  EXPECT_EQ(::llistxattr((root_ + "/d").c_str(), nullptr, 0), 0);
}

TEST_F(TreeWriterTest, RefusesDevicesAndForeignOwners) {
  expect_invalid({{.path = "dev/sda", .type = '4'}}, "'dev/sda'");
  expect_invalid({{.path = "dev/null", .type = '3'}}, "device");
  expect_invalid({{.path = "f", .uid = 65536}}, "'f'");
  expect_invalid({{.path = "f", .pax = {{"gid", "100000"}}}}, "100000");
  expect_invalid({{.path = "./", .data = "x"}}, "root");
}

TEST_F(TreeWriterTest, HoldsItsLimits) {
  const auto code = [&](const std::vector<TarPart>& parts) {
    const auto error = error_of([&] { apply(parts); });
    return error ? error->code() : Code::internal;
  };
  EXPECT_EQ(code({{.path = "big", .data = std::string((1 << 20) + 1, 'x')}}), Code::exhausted);
  std::vector<TarPart> many;
  for (int i = 0; i < 1001; ++i) many.push_back({.path = fmt::format("f{}", i)});
  EXPECT_EQ(code(many), Code::exhausted);
  // Parents that are made count too.
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += fmt::format("{}/", i % 10);
  std::vector<TarPart> folders;
  for (int i = 0; i < 20; ++i) {
    const std::string path = fmt::format("x{}/{}f", i, deep);
    folders.push_back({.path = "p", .pax = {{"path", path}}});
  }
  EXPECT_EQ(code(folders), Code::exhausted);
  EXPECT_EQ(apply_bytes(tar_of({{.path = "f", .data = "x"}})), 8192U);
}

// Archives of another author: whatever GNU tar writes of a folder comes out the same.
TEST_F(TreeWriterTest, ReadsWhatGnuTarWrites) {
  if (std::system("tar --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs tar";
  const std::string source = outer_ + "/canary-source";
  const std::string name(150, 'n');
  fs::create_directories(source + "/" + name + "/" + name);
  std::ofstream(source + "/" + name + "/" + name + "/file") << "deep";
  fs::create_symlink(std::string(200, 't'), source + "/link");
  fs::create_hard_link(source + "/" + name + "/" + name + "/file", source + "/hard");
  {
    // Twenty runs of data: GNU's header has room for four.
    const linux::Fd sparse = linux::open_file(source + "/sparse", O_CREAT | O_WRONLY, 0600);
    for (int i = 1; i <= 20; ++i)
      ASSERT_EQ(::pwrite(sparse.get(), "data", 4, std::int64_t{i} << 16), 4);
    ASSERT_EQ(::ftruncate(sparse.get(), std::int64_t{2} << 20), 0);
  }
  for (const char* format :
       {"--format=gnu", "--format=posix --sparse-version=0.0",
        "--format=posix --sparse-version=0.1", "--format=posix --sparse-version=1.0"}) {
    const std::string archive = outer_ + "/canary-source.tar";
    ASSERT_EQ(
        std::system(fmt::format("tar --sparse {} -C {} -cf {} .", format, source, archive).c_str()),
        0);
    apply_bytes(linux::read_file(archive, 10 << 20), 10 << 20);
    EXPECT_EQ(std::system(fmt::format("diff -r --no-dereference {} {}", source, root_).c_str()), 0)
        << format;
    EXPECT_LT(status("sparse").st_blocks * 512, 1 << 20) << format;
    EXPECT_EQ(status("hard").st_nlink, 2U) << format;
    fs::remove(archive);
    fs::remove_all(root_);
    fs::create_directory(root_);
  }
  fs::remove_all(source);
}

}  // namespace
}  // namespace hearth::unpack
