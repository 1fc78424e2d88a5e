// The helper between the store and strangers' archives: where it lives, what it can do, and what is
// left when it, or whoever asked for it, goes away.
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <functional>
#include <future>

#include "image/store_testing.h"
#include "linux/capabilities.h"
#include "linux/channel.h"
#include "linux/files.h"
#include "linux/mounts.h"

namespace hearth::image {
namespace {

using namespace std::chrono_literals;

// All children of this process, whichever thread made them.
std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  }
  return pids;
}

std::string proc(pid_t pid, const std::string& file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

// The value of "Name:\tvalue" in /proc/PID/status.
std::string status_line(pid_t pid, const std::string& name) {
  std::ifstream file(proc(pid, "status"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

bool wait_until(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(10s);
  while (!condition()) {
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

bool is_confined(pid_t pid) {
  return status_line(pid, "Seccomp") == "2";
}

class HelperTest : public StoreTest {
 protected:
  // An archive that stops in the middle of a file, and goes on only if somebody writes.
  void begin_stalled(int caller_fd = -1) {
    pipe_ = linux::make_pipe();
    linux::write_all(pipe_.write.get(),
                     tar_header({.path = "big"}, 1 << 30) + std::string(4096, 'x'));
    added_ = std::async(std::launch::async, [this, caller_fd] {
      return error_of([&] { store_->add_layer(pipe_.read.get(), {}, caller_fd); });
    });
    ASSERT_TRUE(wait_until([&] {
      const auto pids = children();
      return pids.size() == 2 && is_confined(pids[0]) && is_confined(pids[1]);
    })) << "no two confined helpers";
    for (const pid_t pid : children()) {
      // The one that has the folder to fill.
      if (status_line(pid, "CapEff") != "0000000000000000") applier_ = pid;
      if (status_line(pid, "CapEff") == "0000000000000000") decompressor_ = pid;
    }
    ASSERT_NE(applier_, 0);
    ASSERT_NE(decompressor_, 0);
    // All that came has been written, both wait for more.
    ASSERT_TRUE(wait_until([&] {
      struct stat big{};
      return ::stat(proc(applier_, "root/big").c_str(), &big) == 0 && big.st_size == 4096 &&
             status_line(applier_, "State").starts_with("S") &&
             status_line(decompressor_, "State").starts_with("S");
    }));
  }

  void expect_failure_without_a_trace(Code code) {
    ASSERT_EQ(added_.wait_for(10s), std::future_status::ready);
    const auto error = added_.get();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), code) << error->what();
    EXPECT_EQ(count("layers") + count("tmp"), 0U);
    EXPECT_TRUE(children().empty());
  }

  linux::Pipe pipe_;
  std::future<std::optional<Error>> added_;
  pid_t applier_ = 0;
  pid_t decompressor_ = 0;
};

TEST_F(HelperTest, AKilledUnpackerLeavesNothing) {
  begin_stalled();
  ASSERT_TRUE(wait_until([&] { return count("tmp") == 1; }));
  ASSERT_EQ(::kill(applier_, SIGKILL), 0);
  expect_failure_without_a_trace(Code::internal);
}

TEST_F(HelperTest, AKilledDecompressorLeavesNothing) {
  begin_stalled();
  ASSERT_EQ(::kill(decompressor_, SIGKILL), 0);
  expect_failure_without_a_trace(Code::internal);
}

TEST_F(HelperTest, AnArchiveThatEndsTooEarlyIsInvalid) {
  begin_stalled();
  pipe_.write.reset();
  expect_failure_without_a_trace(Code::invalid);
}

TEST_F(HelperTest, WorkStopsWhenTheCallerHangsUp) {
  auto [ours, theirs] = linux::Channel::make_pair();
  begin_stalled(theirs.fd());
  ours = linux::Channel();
  expect_failure_without_a_trace(Code::unavailable);
}

TEST_F(HelperTest, HelpersSeeNothingOfTheHost) {
  begin_stalled();
  for (const pid_t pid : {applier_, decompressor_}) {
    for (const char* type : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
      EXPECT_NE(linux::namespace_inode(linux::open_namespace(pid, type).get()),
                linux::namespace_inode(linux::open_namespace(::getpid(), type).get()))
          << type;
    }
    // One mount, the root; nothing of ours below it.
    const auto mounts = linux::parse_mountinfo(linux::read_file(proc(pid, "mountinfo")));
    EXPECT_EQ(mounts.size(), 1U);
    EXPECT_FALSE(std::filesystem::exists(proc(pid, "root/etc")));
    EXPECT_FALSE(std::filesystem::exists(proc(pid, "root/proc")));
    EXPECT_EQ(status_line(pid, "NoNewPrivs"), "1");
    EXPECT_EQ(status_line(pid, "Seccomp"), "2");
    for (const char* set : {"CapInh", "CapAmb"})
      EXPECT_EQ(status_line(pid, set), std::string(16, '0'));
    // An ordinary user outside.
    EXPECT_TRUE(status_line(pid, "Uid").starts_with(fmt::format("{}\t", kTestIds.first)));
    EXPECT_TRUE(status_line(pid, "Groups").empty() || status_line(pid, "Groups") == " ");
    const std::string limits = linux::read_file(proc(pid, "limits"));
    EXPECT_NE(limits.find("Max core file size        0                    0"), std::string::npos);
    EXPECT_NE(limits.find("Max processes             0                    0"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::exists(proc(applier_, "root/big")));
  EXPECT_FALSE(std::filesystem::exists(proc(decompressor_, "root/big")));
  const linux::CapabilitySet kept{CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP};
  for (const char* set : {"CapEff", "CapPrm", "CapBnd"})
    EXPECT_EQ(status_line(applier_, set), fmt::format("{:016x}", kept.bits()));
  EXPECT_EQ(status_line(decompressor_, "CapBnd"), std::string(16, '0'));
  pipe_.write.reset();
  expect_failure_without_a_trace(Code::invalid);
}

TEST_F(HelperTest, HelpersHoldOnlyTheDescriptorsTheyNeed) {
  begin_stalled();
  const auto targets = [](pid_t pid) {
    std::vector<std::string> all;
    for (const auto& fd : std::filesystem::directory_iterator(proc(pid, "fd")))
      all.push_back(std::filesystem::read_symlink(fd.path()));
    return all;
  };
  for (const pid_t pid : {applier_, decompressor_}) {
    for (const std::string& target : targets(pid)) {
      const bool expected = target.starts_with("pipe:") || target.starts_with("socket:") ||
                            target.ends_with("/dev/null") || target.starts_with("/");
      EXPECT_TRUE(expected) << target;
      EXPECT_FALSE(target.starts_with("/tmp")) << target;
    }
    // Standard streams, channel, input; output, or the root, its parent folder and the file.
    EXPECT_LE(targets(pid).size(), 9U);
  }
  pipe_.write.reset();
  expect_failure_without_a_trace(Code::invalid);
}

// What a sandbox sees of a layer: ids of its own, by way of an idmapped mount and an overlay that
// is mounted inside its user namespace.
TEST_F(StoreTest, ASandboxSeesItsOwnIdsAndNoWhiteouts) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "needs a child with one thread, which the thread sanitizer does not have";
#endif
  constexpr linux::IdRange kSandbox{.first = 1'800'000'000, .count = 65536};
  const Lease bottom = add({{.path = "kept", .data = "kept", .uid = 7},
                            {.path = "gone", .data = "gone"},
                            {.path = "folder/old", .data = "old"}});
  const Lease top = add({{.path = ".wh.gone"},
                         {.path = "folder/.wh..wh..opq"},
                         {.path = "folder/new", .data = "new", .uid = 1000}});
  const linux::Fd mapping = linux::make_user_namespace(kSandbox);
  std::vector<linux::Fd> layers;
  for (const Lease* lease : {&top, &bottom}) {
    layers.push_back(linux::clone_mount(store_->layer_path(lease->layers().front())));
    linux::set_mount_idmap(layers.back().get(), mapping.get());
  }
  const int code = linux::run_in_child([&] {
    linux::enter_namespace(mapping.get(), CLONE_NEWUSER);
    if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return 1;
    if (::unshare(CLONE_NEWNS) != 0) return 2;
    linux::make_mount({.type = "tmpfs", .source = "x", .path = "/tmp"}).release();
    for (const char* name : {"/tmp/top", "/tmp/bottom", "/tmp/up", "/tmp/work", "/tmp/root"})
      ::mkdir(name, 0755);
    linux::attach_mount(layers[0].get(), "/tmp/top");
    linux::attach_mount(layers[1].get(), "/tmp/bottom");
    linux::make_mount({.type = "overlay",
                       .source = "overlay",
                       .path = "/tmp/root",
                       .options = linux::overlay_options({.lowers = {"/tmp/top", "/tmp/bottom"},
                                                          .upper = "/tmp/up",
                                                          .work = "/tmp/work",
                                                          .userxattr = true})})
        .release();
    if (status_of("/tmp/root/kept").st_uid != 7) return 3;
    if (status_of("/tmp/root/folder/new").st_uid != 1000) return 4;
    if (std::filesystem::exists("/tmp/root/gone")) return 5;
    if (std::filesystem::exists("/tmp/root/folder/old")) return 6;
    return linux::read_file("/tmp/root/kept") == "kept" ? 0 : 7;
  });
  EXPECT_EQ(code, 0);
}

// The way of a snapshot: what a sandbox wrote, with its own ids, becomes a layer.
TEST_F(StoreTest, AnUpperLayerBecomesALayerWithItsMarks) {
  constexpr linux::IdRange kSandbox{.first = 1'800'000'000, .count = 65536};
  const std::string upper = path_ + "/upper";
  std::filesystem::create_directories(upper + "/opaque");
  std::filesystem::create_directories(upper + "/plain");
  const linux::Fd folder = linux::open_file(upper, O_RDONLY | O_DIRECTORY);
  linux::Fd file = linux::open_at(folder.get(), "sparse", O_CREAT | O_WRONLY, 0640);
  ASSERT_EQ(::ftruncate(file.get(), std::int64_t{64} << 20), 0);
  ASSERT_EQ(::pwrite(file.get(), "end", 3, (std::int64_t{32} << 20)), 3);
  ASSERT_EQ(::fsetxattr(file.get(), "user.mine", "1", 1, 0), 0);
  ASSERT_EQ(::fsetxattr(file.get(), "user.overlay.origin", "1", 1, 0), 0);
  ASSERT_EQ(::link((upper + "/sparse").c_str(), (upper + "/plain/link").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (upper + "/symlink").c_str()), 0);
  ASSERT_EQ(::mknod((upper + "/gone").c_str(), S_IFCHR, makedev(0, 0)), 0);
  ASSERT_EQ(::setxattr((upper + "/opaque").c_str(), "user.overlay.opaque", "y", 1, 0), 0);
  ASSERT_EQ(::setxattr((upper + "/plain").c_str(), "user.overlay.impure", "y", 1, 0), 0);
  const auto own = [&](const std::string& name, unsigned id) {
    ASSERT_EQ(::lchown((upper + name).c_str(), kSandbox.first + id, kSandbox.first + id), 0);
  };
  for (const char* name : {"", "/opaque", "/plain", "/gone"}) own(name, 0);
  own("/sparse", 1000);
  own("/symlink", 1001);
  ASSERT_EQ(::chmod((upper + "/sparse").c_str(), 06640), 0);
  linux::replace_file_at(folder.get(), "foreign", "somebody else's");
  ASSERT_EQ(::chmod((upper + "/foreign").c_str(), 0644), 0);

  const Lease lease = store_->add_upper(folder.get(), kSandbox);
  const std::string root = files(lease);
  EXPECT_EQ(status_of(root + "sparse").st_uid, 1000U);
  EXPECT_EQ(status_of(root + "sparse").st_mode & 07777, 06640U);
  EXPECT_EQ(status_of(root + "sparse").st_size, std::int64_t{64} << 20);
  EXPECT_LT(status_of(root + "sparse").st_blocks * 512, 1 << 20);
  EXPECT_EQ(status_of(root + "plain/link").st_ino, status_of(root + "sparse").st_ino);
  EXPECT_EQ(xattr_of(root + "sparse", "user.mine"), "1");
  EXPECT_EQ(xattr_of(root + "sparse", "user.overlay.origin"), "(none)");
  EXPECT_EQ(xattr_of(root + "opaque", "user.overlay.opaque"), "y");
  EXPECT_EQ(xattr_of(root + "plain", "user.overlay.impure"), "(none)");
  EXPECT_TRUE(S_ISCHR(status_of(root + "gone").st_mode));
  EXPECT_EQ(status_of(root + "gone").st_rdev, makedev(0, 0));
  EXPECT_EQ(std::filesystem::read_symlink(root + "symlink"), "/etc/passwd");
  EXPECT_EQ(status_of(root + "symlink").st_uid, 1001U);
  EXPECT_EQ(status_of(root + "foreign").st_uid, 65534U);
  EXPECT_EQ(status_of(root + "foreign").st_mtim.tv_nsec,
            status_of(upper + "/foreign").st_mtim.tv_nsec);
  EXPECT_LT(store_->layer_bytes(lease.layers().front()), std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace hearth::image
