// Writable layers on a disk: as large as they are said to be, and gone without a trace.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "kernel/testing.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Loop devices with files of Hearth's: sandboxes' or volumes' disks.
std::size_t disks_in_use() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/sys/block")) {
    std::ifstream file(entry.path() / "loop/backing_file");
    std::string text;
    // The file has lost its name, which was in such a folder.
    if (std::getline(file, text) && text.find("/runtime/disks/") != std::string::npos) ++count;
  }
  return count;
}

// The kernel lets go of a device behind our back.
void expect_disks_in_use(std::size_t wanted) {
  const Deadline deadline = Deadline::after(60s);
  while (disks_in_use() != wanted && !deadline.passed()) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(disks_in_use(), wanted);
}

#define HEARTH_NEED_LOOP_DEVICES()                                                            \
  do {                                                                                        \
    if (::access("/dev/loop-control", R_OK | W_OK) != 0 || ::access("/dev/loop0", R_OK) != 0) \
      GTEST_SKIP() << "needs loop devices (/dev/loop-control)";                               \
    if (::access("/usr/sbin/mkfs.ext4", X_OK) != 0) GTEST_SKIP() << "needs mkfs.ext4";        \
  } while (false)

class Disk : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEED_ROOT();
    HEARTH_NEED_LOOP_DEVICES();
    before_ = disks_in_use();
    engine_ = std::make_unique<TestEngine>();
  }
  void TearDown() override {
    if (!engine_) return;
    engine_.reset();
    expect_disks_in_use(before_);
  }

  RuntimeClient& runtime() { return engine_->runtime(); }
  static SandboxSpec spec_of(const std::string& id, std::uint64_t bytes = 64 << 20) {
    SandboxSpec spec{.id = id};
    spec.limits.disk_bytes = bytes;
    spec.disk_on = DiskPlace::disk;
    return spec;
  }
  std::string sh(const std::string& id, const std::string& script) {
    const Outcome outcome = run_shell(runtime(), id, script);
    return outcome.output + outcome.error;
  }
  // Blocks that are free where the engine keeps its files.
  std::uintmax_t free_bytes() { return fs::space(engine_->state_dir()).free; }

  std::size_t before_ = 0;
  std::unique_ptr<TestEngine> engine_;
};

TEST_F(Disk, WhatIsWrittenIsOnADiskOfItsOwnAndHasAnEnd) {
  SandboxSpec spec = spec_of("box");
  spec.limits.memory_bytes = 32 << 20;
  runtime().create(spec);

  // More than it has memory.
  EXPECT_EQ(sh("box", "head -c 48000000 /dev/zero > /big && stat -c %s /big"), "48000000\n");
  EXPECT_NE(sh("box", "head -c 48000000 /dev/zero > /more").find("No space left"),
            std::string::npos);
  EXPECT_EQ(sh("box", "rm /big /more; head -c 40000000 /dev/zero > /big && echo room"), "room\n");
  // Like any other: owners, links, what an image has taken away, programs.
  EXPECT_EQ(
      sh("box",
         "cd /workspace; echo x > a; chown user a; ln a b; ln -s a c; rm /etc/debian_version; "
         "mkdir /usr/share/mine; cp /bin/true t; ./t; stat -c '%U %h' a; readlink c; "
         "ls /etc/debian_version 2>/dev/null; ls -d /usr/share/mine; ls -d /lost+found "
         "2>/dev/null"),
      "user 2\na\n/usr/share/mine\n");
  expect_disks_in_use(before_ + 1);
  EXPECT_TRUE(fs::is_empty(engine_->state_dir() + "/runtime/disks"));

  runtime().destroy("box");
  expect_disks_in_use(before_);
}

TEST_F(Disk, TheDeviceIsOutOfReach) {
  const int pid = runtime().create(spec_of("box")).sandbox.pid;
  EXPECT_EQ(sh("box", "grep -c ext4 /proc/self/mountinfo"), "0\n");
  EXPECT_EQ(sh("box", "ls /dev | grep -c loop"), "0\n");
  EXPECT_NE(sh("box", "mknod /loop b 7 0").find("not permitted"), std::string::npos);
  // Root inside is nobody outside, on this disk too.
  sh("box", "touch /mine");
  struct stat status{};
  ASSERT_EQ(::stat(fmt::format("/proc/{}/root/mine", pid).c_str(), &status), 0);
  EXPECT_GE(status.st_uid, 0x1000'0000u);
}

TEST_F(Disk, OutlivesTheRuntimeAndIsSweptWithItsSandbox) {
  const int living = runtime().create(spec_of("living")).sandbox.pid;
  const int dying = runtime().create(spec_of("dying")).sandbox.pid;
  sh("living", "echo kept > /workspace/x");
  engine_->kill();
  ::kill(dying, SIGKILL);
  expect_disks_in_use(before_ + 1);
  engine_->start();

  EXPECT_EQ(runtime().list().size(), 1u);
  EXPECT_EQ(runtime().get("living").pid, living);
  EXPECT_EQ(sh("living", "cat /workspace/x; echo more > /workspace/y && echo written"),
            "kept\nwritten\n");
  const std::vector<Sandbox> forks = runtime().fork("living", 1);
  EXPECT_EQ(sh(forks.front().id, "cat /workspace/x /workspace/y"), "kept\nmore\n");
  runtime().destroy("living");
  runtime().destroy(forks.front().id);
  expect_disks_in_use(before_);
}

TEST_F(Disk, ForksAndCommitsAndPausesLikeAnyOther) {
  runtime().create(spec_of("box"));
  sh("box", "echo one > /workspace/a; chown user /workspace/a; rm /etc/debian_version");
  runtime().pause("box");
  const std::vector<Sandbox> forks = runtime().fork("box", 2);
  runtime().commit("box", "mine:1");
  runtime().resume("box");
  for (const Sandbox& fork : forks) {
    EXPECT_EQ(sh(fork.id,
                 "cat /workspace/a; stat -c %U /workspace/a; ls /etc/debian_version "
                 "2>/dev/null; echo two > /workspace/a"),
              "one\nuser\n");
  }
  expect_disks_in_use(before_ + 3);
  EXPECT_EQ(sh("box", "cat /workspace/a"), "one\n");
  runtime().create({.id = "next", .image = "mine:1"});
  EXPECT_EQ(sh("next", "cat /workspace/a"), "one\n");
}

TEST_F(Disk, TakesUpWhatIsWrittenAndGivesItBack) {
  const std::uintmax_t before = free_bytes();
  runtime().create(spec_of("box", std::uint64_t{16} << 30));
  EXPECT_LT(before - std::min(before, free_bytes()), std::uintmax_t{64} << 20);
  // Neither waits for what it has not written yet.
  sh("box", "head -c 300000000 /dev/zero > /big");
  const auto start = std::chrono::steady_clock::now();
  runtime().destroy("box");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  expect_disks_in_use(before_);
}

SandboxSpec with_volume(const std::string& id, const std::string& volume) {
  SandboxSpec spec{.id = id};
  spec.mounts = {{.kind = MountKind::volume, .source = volume, .target = "/data"}};
  return spec;
}

TEST_F(Disk, AVolumeWithASizeIsFullWhenItIsFull) {
  runtime().create_volume("small", 16 << 20);
  runtime().create_volume("plain", 0);
  EXPECT_THROW(runtime().create_volume("small", 16 << 20), Error);
  EXPECT_THROW(runtime().create_volume("plain", 16 << 20), Error);
  EXPECT_THROW(runtime().create_volume("../x", 16 << 20), Error);
  EXPECT_THROW(runtime().create_volume("tiny", 1), Error);

  runtime().create(with_volume("box", "small"));
  EXPECT_EQ(sh("box", "ls -A /data; head -c 8000000 /dev/zero > /data/x; chown user /data/x; sync"),
            "");
  EXPECT_NE(sh("box", "head -c 16000000 /dev/zero > /data/y").find("No space left"),
            std::string::npos);
  EXPECT_THROW(runtime().remove_volume("small"), Error);
  const std::vector<Volume> volumes = runtime().list_volumes();
  ASSERT_EQ(volumes.size(), 2u);
  EXPECT_EQ(volumes[0].size_bytes, 0u);
  EXPECT_EQ(volumes[1].name, "small");
  EXPECT_EQ(volumes[1].size_bytes, 16u << 20);
  EXPECT_GT(volumes[1].taken_bytes, 8'000'000u);
  EXPECT_LE(volumes[1].taken_bytes, 16u << 20);
  EXPECT_TRUE(volumes[1].used);

  runtime().destroy("box");
  runtime().create(with_volume("next", "small"));
  EXPECT_EQ(sh("next",
               "stat -c '%s %U' /data/x; rm /data/x /data/y; "
               "head -c 8000000 /dev/zero > /data/z && echo room"),
            "8000000 user\nroom\n");
  runtime().destroy("next");
  runtime().remove_volume("small");
  EXPECT_EQ(runtime().list_volumes().size(), 1u);
}

TEST_F(Disk, AVolumeWithASizeIsOneFileSystemForAllWhoUseIt) {
  runtime().create_volume("shared", 16 << 20);
  runtime().create(with_volume("one", "shared"));
  runtime().create(with_volume("two", "shared"));
  sh("one", "echo 1 > /data/one");
  sh("two", "echo 2 > /data/two");
  engine_->kill();
  engine_->start();
  runtime().create(with_volume("three", "shared"));
  sh("three", "echo 3 > /data/three");

  for (const char* id : {"one", "two", "three"})
    EXPECT_EQ(sh(id, "cat /data/one /data/two /data/three"), "1\n2\n3\n") << id;
  for (const char* id : {"one", "two", "three"}) runtime().destroy(id);
  runtime().create(with_volume("last", "shared"));
  EXPECT_EQ(sh("last", "cat /data/one /data/two /data/three"), "1\n2\n3\n");
}

TEST_F(Disk, ASizeThatCannotBeIsRefused) {
  EXPECT_THROW(runtime().create(spec_of("box", 0)), Error);
  EXPECT_THROW(runtime().create(spec_of("box", 4096)), Error);
  EXPECT_THROW(runtime().create(spec_of("box", std::uint64_t{1} << 50)), Error);
  EXPECT_TRUE(runtime().list().empty());
}

}  // namespace
}  // namespace hearth::runtime
