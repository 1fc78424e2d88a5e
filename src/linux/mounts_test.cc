#include "linux/mounts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

TEST(MountTable, ReadsEveryField) {
  const auto entries = parse_mountinfo(
      "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root "
      "rw,errors=continue\n"
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n");

  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].id, 36);
  EXPECT_EQ(entries[0].parent_id, 35);
  EXPECT_EQ(entries[0].root, "/mnt1");
  EXPECT_EQ(entries[0].mount_point, "/mnt2");
  EXPECT_EQ(entries[0].options, "rw,noatime");
  EXPECT_EQ(entries[0].type, "ext3");
  EXPECT_EQ(entries[0].source, "/dev/root");
  EXPECT_EQ(entries[0].super_options, "rw,errors=continue");
  EXPECT_EQ(entries[1].mount_point, "/");
}

TEST(MountTable, UndoesOctalEscapes) {
  const auto entries =
      parse_mountinfo("1 0 0:1 / /with\\040space\\011tab\\134back\\0123 rw - tmpfs a\\040b rw\n");

  EXPECT_EQ(entries[0].mount_point, "/with space\ttab\\back\n3");
  EXPECT_EQ(entries[0].source, "a b");
}

TEST(MountTable, KeepsBackslashesThatEscapeNothing) {
  EXPECT_EQ(parse_mountinfo("1 0 0:1 / /a\\9\\04 rw - tmpfs x rw\n")[0].mount_point, "/a\\9\\04");
}

TEST(MountTable, RefusesLinesThatAreNone) {
  for (const char* line : {"x", "1 2", "1 2 0:1 / /a rw shared:1", "a b c d e f - g h i",
                           "1 2 0:1 / /a rw -", "1 2x 0:1 / /a rw - tmpfs x rw"}) {
    EXPECT_THROW(parse_mountinfo(line), Error) << line;
  }
  EXPECT_TRUE(parse_mountinfo("").empty());
  EXPECT_TRUE(parse_mountinfo("\n\n").empty());
}

TEST(MountTable, ReadsTheRealOne) {
  EXPECT_FALSE(mount_table().empty());
}

TEST(MountTable, OptionsAreWholeWords) {
  EXPECT_TRUE(has_mount_option("rw,ro", "ro"));
  EXPECT_TRUE(has_mount_option("ro", "ro"));
  EXPECT_FALSE(has_mount_option("rw,errors=remount-ro", "ro"));
  EXPECT_FALSE(has_mount_option("", "ro"));
}

TEST(OverlayOptions, NamesLayersTopmostFirst) {
  EXPECT_EQ(overlay_options({.lowers = {"/top", "/bottom"}}), "lowerdir=/top:/bottom");
  EXPECT_EQ(overlay_options({.lowers = {"/l"},
                             .upper = "/u",
                             .work = "/w",
                             .userxattr = true,
                             .volatile_upper = true,
                             .extra = {"metacopy=off"}}),
            "lowerdir=/l,upperdir=/u,workdir=/w,userxattr,volatile,metacopy=off");
}

TEST(OverlayOptions, EscapesWhatSeparates) {
  EXPECT_EQ(overlay_options({.lowers = {"/a:b", "/c,d", "/e\\f"}, .upper = "/u:,", .work = "/w\\"}),
            "lowerdir=/a\\:b:/c\\,d:/e\\\\f,upperdir=/u\\:\\,,workdir=/w\\\\");
}

TEST(MakeMount, RefusesOptionsThatTheKernelWouldCutOff) {
  EXPECT_THROW(
      make_mount({.type = "overlay", .path = "/nowhere", .options = std::string(4096, 'x')}),
      Error);
}

}  // namespace
}  // namespace hearth::linux
