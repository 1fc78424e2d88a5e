#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "linux/kernel_testing.h"
#include "linux/loop_device.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

class LoopDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    if (::access("/dev/loop-control", R_OK | W_OK) != 0)
      GTEST_SKIP() << "needs loop devices (/dev/loop-control)";
    file_ = Fd(::memfd_create("disk", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file_.get(), 1 << 20), 0);
  }

  Fd file_;
  const std::string label_ = unique_name("loop");
};

TEST_F(LoopDeviceTest, ShowsItsFileAndIsFoundByItsLabel) {
  const LoopDevice device = attach_loop_device(file_.get(), label_);
  write_all(device.fd.get(), std::string(4096, 'a'));
  ASSERT_EQ(::fsync(device.fd.get()), 0);

  char byte = 0;
  ASSERT_EQ(::pread(file_.get(), &byte, 1, 4095), 1);
  EXPECT_EQ(byte, 'a');
  const auto found = find_loop_device(label_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, device.path);
  EXPECT_FALSE(find_loop_device(label_.substr(1)));
  EXPECT_FALSE(find_loop_device(label_ + "x"));
}

TEST_F(LoopDeviceTest, GoesWithItsLastUser) {
  auto device = std::optional(attach_loop_device(file_.get(), label_));
  auto again = find_loop_device(label_);
  device.reset();
  EXPECT_TRUE(find_loop_device(label_));
  again.reset();

  const Deadline deadline = Deadline::after(60s);
  while (find_loop_device(label_) && !deadline.passed()) std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(find_loop_device(label_));
}

TEST_F(LoopDeviceTest, WhatIsNoFileIsRefused) {
  const Pipe pipe = make_pipe();
  EXPECT_THROW(attach_loop_device(pipe.read.get(), label_), Error);
}

}  // namespace
}  // namespace hearth::linux
