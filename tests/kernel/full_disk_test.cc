// A full disk: everything that needs room says what failed and why, leaves nothing behind, and
// works again when there is room.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <set>

#include "base/error.h"
#include "kernel/testing.h"
#include "linux/fd.h"
#include "linux/mounts.h"

namespace hearth::runtime {
namespace {

namespace fs = std::filesystem;

// The state folder is on a small file system of its own.
class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEED_ROOT();
    char path[] = "/tmp/hearth-full-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
    disk_ = linux::make_mount({.type = "tmpfs",
                               .source = "full",
                               .path = folder_,
                               .flags = MS_NOSUID | MS_NODEV,
                               .options = "size=64m"});
    engine_ = std::make_unique<TestEngine>(0, folder_);
  }
  void TearDown() override {
    engine_.reset();
    disk_ = linux::Mount();
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }

  RuntimeClient& runtime() { return engine_->runtime(); }

  void fill() {
    const linux::Fd filler = linux::open_file(folder_ + "/filler", O_WRONLY | O_CREAT, 0600);
    const std::string piece(1 << 16, 'x');
    while (::write(filler.get(), piece.data(), piece.size()) > 0) {
    }
    EXPECT_EQ(fs::space(folder_).available, 0u);
  }
  void free() { fs::remove(folder_ + "/filler"); }

  // Everything that the engine keeps.
  std::set<std::string> files() {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(engine_->state_dir() + "/runtime"))
      files.insert(entry.path());
    return files;
  }

  // What `act` complains of; it has failed for lack of room, and nothing of it is left.
  template <typename F>
  std::string complaint(F&& act) {
    const std::set<std::string> before = files();
    std::string text = "nothing failed";
    try {
      std::forward<F>(act)();
    } catch (const Error& error) {
      text = error.what();
      EXPECT_EQ(error.code(), Code::exhausted) << text;
    }
    EXPECT_EQ(files(), before) << text;
    return text;
  }

  std::string folder_;
  linux::Mount disk_;
  std::unique_ptr<TestEngine> engine_;
};

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Of one file, outside the small file system.
linux::Fd make_archive() {
  const linux::Fd content(::memfd_create("content", MFD_CLOEXEC));
  linux::write_all(content.get(), std::string(4 << 20, 'x'));
  linux::Fd archive(::memfd_create("archive", 0));
  const std::string command = fmt::format(
      "tar --transform 's,.*,file,' -chf - -C /proc/{}/fd {} > /proc/{}/fd/{} 2>/dev/null",
      ::getpid(), content.get(), ::getpid(), archive.get());
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT
  ::lseek(archive.get(), 0, SEEK_SET);
  return archive;
}

TEST_F(FullDisk, SandboxesInMemoryGoOn) {
  fill();
  const std::string id = runtime().create({}).sandbox.id;
  EXPECT_EQ(run_shell(runtime(), id, "echo x > /workspace/a; cat /workspace/a").output, "x\n");

  // An engine that starts makes an image of this machine, which takes some room; what it left
  // behind without any is none.
  engine_->kill();
  EXPECT_THROW(engine_->start(), Error);
  const fs::directory_iterator images(engine_->state_dir() + "/runtime/images");
  EXPECT_EQ(std::distance(begin(images), end(images)), 1);
  free();
  engine_->start();
  EXPECT_EQ(run_shell(runtime(), id, "cat /workspace/a").output, "x\n");
}

TEST_F(FullDisk, WhatNeedsRoomSaysSoAndLeavesNothing) {
  const std::string id = runtime().create({.id = "box"}).sandbox.id;
  run_shell(runtime(), id, "head -c 4000000 /dev/zero > /workspace/a");
  const auto import = [&] {
    const linux::Fd archive = make_archive();
    runtime().add_layer(archive.get(), {});
  };
  SandboxSpec on_disk{.id = "on-disk"};
  on_disk.disk_on = DiskPlace::disk;
  on_disk.limits.disk_bytes = 16 << 20;
  const bool loop_devices = ::access("/dev/loop-control", R_OK | W_OK) == 0;
  fill();

  std::string text = complaint([&] { runtime().commit(id, "mine:1"); });
  EXPECT_TRUE(mentions(text, "ENOSPC")) << text;
  text = complaint([&] { runtime().fork(id, 2); });
  EXPECT_TRUE(mentions(text, "ENOSPC")) << text;
  text = complaint(import);
  EXPECT_TRUE(mentions(text, "ENOSPC")) << text;
  if (loop_devices) {
    text = complaint([&] { runtime().create(on_disk); });
    EXPECT_TRUE(mentions(text, "make a disk of")) << text;
    text = complaint([&] { runtime().create_volume("data", 16 << 20); });
    EXPECT_TRUE(mentions(text, "make volume 'data'")) << text;
  }
  EXPECT_EQ(runtime().list().size(), 1u);
  EXPECT_TRUE(runtime().list_images().empty());
  EXPECT_TRUE(runtime().list_volumes().empty());

  free();
  import();
  EXPECT_EQ(runtime().commit(id, "mine:1").name, "mine:1");
  EXPECT_EQ(runtime().fork(id, 1).size(), 1u);
  if (!loop_devices) GTEST_SKIP() << "needs loop devices for the rest";
  runtime().create(on_disk);
  EXPECT_EQ(run_shell(runtime(), "on-disk", "echo x > /a; cat /a").output, "x\n");
  runtime().create_volume("data", 16 << 20);
  EXPECT_EQ(runtime().list_volumes().size(), 1u);
}

TEST_F(FullDisk, ADiskThatFillsUpUnderASandboxDoesNotTakeTheEngineWithIt) {
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) GTEST_SKIP() << "needs loop devices";
  SandboxSpec spec{.id = "box"};
  spec.disk_on = DiskPlace::disk;
  spec.limits.disk_bytes = std::uint64_t{1} << 30;
  runtime().create(spec);
  fill();
  run_shell(runtime(), "box", "head -c 50000000 /dev/zero > /big; sync");
  runtime().destroy("box");
  free();
  runtime().create(spec);
  EXPECT_EQ(run_shell(runtime(), "box", "echo x > /a; sync; cat /a").output, "x\n");
}

TEST_F(FullDisk, WithoutADiskBelowItReadingAndWritingCannotBeLimited) {
  SandboxSpec spec;
  spec.limits.io.read_bytes = 1 << 20;
  try {
    runtime().create(spec);
    FAIL() << "was created";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_TRUE(mentions(error.what(), "no one disk")) << error.what();
  }
}

}  // namespace
}  // namespace hearth::runtime
