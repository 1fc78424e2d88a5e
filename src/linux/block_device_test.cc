#include "linux/block_device.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::linux {
namespace {

namespace fs = std::filesystem;

// As the kernel lays it out: names are links into the tree of devices.
class DiskTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hearth-disk-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    root_ = path;
    fs::create_directories(root_ / "devices/sda/sda1");
    fs::create_directories(root_ / "block");
    std::ofstream(root_ / "devices/sda/dev") << "8:0\n";
    std::ofstream(root_ / "devices/sda/sda1/dev") << "8:1\n";
    std::ofstream(root_ / "devices/sda/sda1/partition") << "1\n";
    fs::create_symlink("../devices/sda", root_ / "block/8:0");
    fs::create_symlink("../devices/sda/sda1", root_ / "block/8:1");
    sys_ = open_file(root_ / "block", O_PATH | O_DIRECTORY);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
  Fd sys_;
};

TEST_F(DiskTest, APartitionsIsTheWholeDisk) {
  EXPECT_EQ(find_disk(sys_.get(), makedev(8, 0)), "8:0");
  EXPECT_EQ(find_disk(sys_.get(), makedev(8, 1)), "8:0");
}

TEST_F(DiskTest, AFileSystemWithoutADiskIsRefused) {
  try {
    find_disk(sys_.get(), makedev(0, 45));
    FAIL() << "has a disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_NE(std::string(error.what()).find("device 0:45"), std::string::npos) << error.what();
  }
  const Fd proc = open_file("/proc", O_PATH | O_DIRECTORY);
  EXPECT_THROW(find_disk(proc.get()), Error);
}

}  // namespace
}  // namespace hearth::linux
