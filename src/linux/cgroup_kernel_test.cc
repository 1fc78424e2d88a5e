#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "linux/cgroup.h"
#include "linux/clone.h"
#include "linux/kernel_testing.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

// Joins a child to a leaf as a real user does: born into v2, v1 by writing "0". Returns when it is
// there and about to run `body`.
pid_t start_in(const Cgroup& cgroup, const std::function<int()>& body) {
  Pipe joined = make_pipe();
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (cgroup.v2_dir_fd() >= 0) {
    args.flags = CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup.v2_dir_fd());
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid != 0) {
    joined.write.reset();
    char byte = 0;
    EXPECT_EQ(::read(joined.read.get(), &byte, 1), 0);  // closed by the child
    return static_cast<pid_t>(pid);
  }
  for (const Fd& procs : cgroup.open_join_files()) {
    if (::write(procs.get(), "0", 1) != 1) ::_exit(97);
  }
  joined.write.reset();
  ::_exit(body());
}

int sleep_forever() {
  while (true) ::pause();
}

// The file that says where a process is: one line per hierarchy.
bool is_in(pid_t pid, const std::string& text) {
  return read_file(fmt::format("/proc/{}/cgroup", pid)).find(text) != std::string::npos;
}

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    tree_.emplace(CgroupTree::open(name_));
  }
  void TearDown() override {
    if (!tree_) return;
    for (const std::string& id : tree_->list()) tree_->remove(id);
    tree_->remove_tree();
  }

  const std::string name_ = unique_name("cgroup") + "/corner";
  std::optional<CgroupTree> tree_;
};

TEST_F(CgroupTest, DescribesWhatTheHostCanDo) {
  const std::string text = tree_->describe();

  EXPECT_TRUE(text.starts_with("v1 ") || text.starts_with("v2")) << text;
  EXPECT_EQ(text.find("memory") != std::string::npos, tree_->limits_memory()) << text;
}

TEST_F(CgroupTest, ALeafIsThereUntilRemovedNotUntilForgotten) {
  {
    const Cgroup cgroup = tree_->create("one", {});
  }

  EXPECT_EQ(tree_->list(), std::vector<std::string>{"one"});
  EXPECT_TRUE(CgroupTree::open(name_).find("one"));
  EXPECT_FALSE(tree_->find("two"));
  EXPECT_THROW(tree_->create("one", {}), Error);

  tree_->remove("one");
  EXPECT_TRUE(tree_->list().empty());
  tree_->remove("one");
}

TEST_F(CgroupTest, RefusesNamesThatLeaveTheCorner) {
  for (const char* id : {"", ".", "..", "a/b", "../x", "a\nb"}) {
    EXPECT_THROW(tree_->create(id, {}), Error) << id;
    EXPECT_THROW(tree_->remove(id), Error) << id;
  }
  EXPECT_THROW(CgroupTree::open("/sys"), Error);
  EXPECT_THROW(CgroupTree::open("a/../b"), Error);
  EXPECT_THROW(CgroupTree::open(""), Error);
}

TEST_F(CgroupTest, CreateIsAllOrNothing) {
  // The last hierarchy already has such a folder, made by nobody.
  const auto present = find_cgroup_hierarchies(read_file("/proc/self/mountinfo"));
  const std::string stray = fmt::format("{}/{}/stray", present.back().mount_point, name_);
  if (::mkdir(stray.c_str(), 0755) != 0) GTEST_SKIP() << "needs the last hierarchy to be in use";

  EXPECT_THROW(tree_->create("stray", {}), Error);

  EXPECT_FALSE(tree_->find("stray") && present.size() > 1);
  EXPECT_EQ(tree_->list(), std::vector<std::string>{"stray"});
  tree_->remove("stray");
  EXPECT_TRUE(tree_->list().empty());
}

TEST_F(CgroupTest, AChildIsBornIntoTheLeafAndKilledWithIt) {
  const Cgroup cgroup = tree_->create("life", {});
  const pid_t pid = start_in(cgroup, sleep_forever);
  ASSERT_GT(pid, 0);
  if (cgroup.v2_dir_fd() >= 0) EXPECT_TRUE(is_in(pid, "0::/" + name_ + "/life"));

  tree_->remove("life");

  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
  EXPECT_TRUE(tree_->list().empty());
}

TEST_F(CgroupTest, RemoveKillsWhatLivesInHierarchiesWithoutKill) {
  const Cgroup cgroup = tree_->create("v1only", {});
  if (cgroup.open_join_files().empty()) GTEST_SKIP() << "needs a cgroup v1 hierarchy";
  const pid_t pid = start_child([&] {
    if (::write(cgroup.open_join_files()[0].get(), "0", 1) != 1) return 1;
    for (int i = 0; i < 5; ++i) start_child(sleep_forever);
    return sleep_forever();
  });
  while (!is_in(pid, name_ + "/v1only")) std::this_thread::sleep_for(1ms);

  tree_->remove("v1only");

  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
}

// Whether a new unit gets v1 leaves that another one had, and which of them. Inodes tell.
class CgroupSpareTest : public CgroupTest {
 protected:
  const CgroupLimits some_{.memory_bytes = std::uint64_t{64} << 20, .cpu_millis = 1000, .pids = 32};

  void SetUp() override {
    CgroupTest::SetUp();
    if (IsSkipped()) return;
    if (tree_->v2_limits() || tree_->create("look", some_).v2_dir_fd() < 0 || !has_v1())
      GTEST_SKIP() << "needs v1 controllers beside cgroup v2";
    tree_->remove("look");
  }

  // Of its memory leaf.
  ino_t inode_of(const std::string& id) const {
    struct stat status{};
    EXPECT_EQ(::stat(fmt::format("{}/{}/{}", memory_mount(), name_, id).c_str(), &status), 0);
    return status.st_ino;
  }
  static std::string memory_mount() {
    for (const CgroupHierarchy& hierarchy :
         find_cgroup_hierarchies(read_file("/proc/thread-self/mountinfo", 16 << 20)))
      if (!hierarchy.v2 && std::ranges::count(hierarchy.controllers, "memory") != 0)
        return hierarchy.mount_point;
    return {};
  }
  static bool has_v1() { return !memory_mount().empty(); }
  std::string read(const std::string& id, const char* file) const {
    return read_file(fmt::format("{}/{}/{}/{}", memory_mount(), name_, id, file));
  }
};

TEST_F(CgroupSpareTest, ACleanLeafServesAgainWithTheLimitsOfTheNext) {
  Cgroup first = tree_->create("first", some_);
  const ino_t inode = inode_of("first");
  const pid_t pid = start_in(first, [] { return 0; });
  EXPECT_EQ(wait_for_child(pid), 0);
  tree_->remove("first");
  EXPECT_TRUE(tree_->list().empty());

  CgroupLimits more = some_;
  more.memory_bytes *= 2;
  more.pids = 7;
  const Cgroup second = tree_->create("second", more);
  EXPECT_EQ(inode_of("second"), inode);
  EXPECT_EQ(read("second", "memory.limit_in_bytes"), fmt::format("{}\n", more.memory_bytes));
  EXPECT_EQ(second.usage().pids, 0U);
  EXPECT_LT(second.usage().memory_peak_bytes, std::uint64_t{1} << 20);
  EXPECT_LT(second.usage().cpu_usec, 1000U) << "what the one before used is not its";
  // And less again.
  tree_->remove("second");
  tree_->create("third", some_);
  EXPECT_EQ(inode_of("third"), inode);
  EXPECT_EQ(read("third", "memory.limit_in_bytes"), fmt::format("{}\n", some_.memory_bytes));
}

TEST_F(CgroupSpareTest, WhoLeavesALimitAsItIsGetsANewLeaf) {
  tree_->create("first", some_);
  const ino_t inode = inode_of("first");
  tree_->remove("first");
  tree_->create("second", {.pids = 5});
  EXPECT_NE(inode_of("second"), inode);
}

TEST_F(CgroupSpareTest, WhatRanOutOfMemoryDoesNotServeAgain) {
  const Cgroup first = tree_->create("first", some_);
  const ino_t inode = inode_of("first");
  const pid_t pid = start_in(first, [] {
    std::vector<char> much(std::size_t{256} << 20, 'x');
    return much[much.size() / 2] == 'x' ? 0 : 1;
  });
  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
  tree_->remove("first");
  const Cgroup second = tree_->create("second", some_);
  EXPECT_NE(inode_of("second"), inode);
  EXPECT_EQ(second.usage().oom_kills, 0U);
}

TEST_F(CgroupSpareTest, WhatHasChargesLeftDoesNotServeAgain) {
  const std::string path = testing::TempDir() + unique_name("charged");
  const Cgroup first = tree_->create("first", some_);
  const ino_t inode = inode_of("first");
  const pid_t pid = start_in(first, [&] {
    const Fd file = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
    write_all(file.get(), std::string(std::size_t{8} << 20, 'x'));
    return 0;
  });
  wait_for_child(pid);
  tree_->remove("first");
  tree_->create("second", some_);
  EXPECT_NE(inode_of("second"), inode) << "the pages of that file are charged to it";
  ::unlink(path.c_str());
}

TEST_F(CgroupSpareTest, NothingIsLeftOfThem) {
  tree_->create("first", some_);
  tree_->remove("first");
  {
    const CgroupTree another_life = CgroupTree::open(name_);
  }
  for (const auto& entry : std::filesystem::directory_iterator(memory_mount() + "/" + name_))
    EXPECT_FALSE(entry.is_directory()) << entry.path();
  // Its name may be gone meanwhile.
  const Cgroup second = tree_->create("second", some_);
  EXPECT_EQ(tree_->list(), std::vector<std::string>{"second"});
}

TEST_F(CgroupTest, RemoveTakesFoldersMadeInsideWithIt) {
  const Cgroup cgroup = tree_->create("nest", {});
  if (cgroup.v2_dir_fd() < 0) GTEST_SKIP() << "needs cgroup v2";
  ASSERT_EQ(::mkdirat(cgroup.v2_dir_fd(), "a", 0755), 0);
  ASSERT_EQ(::mkdirat(cgroup.v2_dir_fd(), "a/b", 0755), 0);
  const pid_t pid = start_child(sleep_forever);
  write_file_at(cgroup.v2_dir_fd(), "a/b/cgroup.procs", fmt::to_string(pid));

  tree_->remove("nest");

  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
  EXPECT_TRUE(tree_->list().empty());
}

TEST_F(CgroupTest, ForksStopAtThePidsLimit) {
  if (!tree_->limits_pids()) GTEST_SKIP() << "needs the cgroup controller pids";
  const Cgroup cgroup = tree_->create("pids", {.pids = 4});

  const pid_t pid = start_in(cgroup, [] {
    int made = 0;
    for (int i = 0; i < 10; ++i) {
      // Not fork(): under ThreadSanitizer it would start a thread, which counts.
      const long child = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      if (child == 0) sleep_forever();
      if (child > 0) ++made;
      if (child < 0 && errno != EAGAIN) return 50;
    }
    return made;
  });

  EXPECT_EQ(wait_for_child(pid), 3);  // and itself
  EXPECT_EQ(cgroup.usage().pids, 3U);
}

TEST_F(CgroupTest, MemoryBeyondTheLimitIsDeathAndIsCounted) {
  if (!tree_->limits_memory()) GTEST_SKIP() << "needs the cgroup controller memory";
  const Cgroup cgroup = tree_->create("memory", {.memory_bytes = 32 << 20});

  const pid_t pid = start_in(cgroup, [] {
    constexpr std::size_t kSize = std::size_t{128} << 20;
    void* memory =
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t at = 0; at < kSize; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
    return 0;
  });

  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
  const CgroupUsage usage = cgroup.usage();
  EXPECT_EQ(usage.oom_kills, 1U);
  EXPECT_GT(usage.memory_peak_bytes, std::uint64_t{16} << 20);
  EXPECT_LE(usage.memory_peak_bytes, std::uint64_t{32} << 20);
}

TEST_F(CgroupTest, CpuTimeIsRationedAndCounted) {
  if (!tree_->limits_cpu()) GTEST_SKIP() << "needs the cgroup controller cpu";
  Cgroup cgroup = tree_->create("cpu", {.cpu_millis = 200});

  const pid_t pid = start_in(cgroup, [] {
    const auto end = std::chrono::steady_clock::now() + 600ms;
    while (std::chrono::steady_clock::now() < end) {
    }
    return 0;
  });

  EXPECT_EQ(wait_for_child(pid), 0);
  const CgroupUsage usage = cgroup.usage();
  EXPECT_LT(usage.cpu_usec, 350'000U);  // of 600,000; the share is 120,000 and slices are coarse
  if (cgroup.v2_dir_fd() >= 0) EXPECT_GT(usage.cpu_usec, 1'000U);
}

TEST_F(CgroupTest, FreezeStopsEveryProcessAndThawLetsThemGoOn) {
  Cgroup cgroup = tree_->create("ice", {});
  auto* counter = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t pid = start_in(cgroup, [&]() -> int {
    while (true) counter->fetch_add(1);
  });
  while (counter->load() == 0) std::this_thread::yield();

  cgroup.freeze();
  cgroup.freeze();
  const int frozen_at = counter->load();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(counter->load(), frozen_at);

  cgroup.thaw();
  cgroup.thaw();
  const auto patience = std::chrono::steady_clock::now() + 60s;
  while (counter->load() == frozen_at && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_GT(counter->load(), frozen_at);

  // And what is frozen dies all the same.
  cgroup.freeze();
  tree_->remove("ice");
  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
  ::munmap(counter, 4096);
}

TEST_F(CgroupTest, AProcessCanJoinWhatV1LimitsLater) {
  const Cgroup cgroup = tree_->create("late", {});
  if (cgroup.open_join_files().empty()) GTEST_SKIP() << "needs a cgroup v1 hierarchy";
  const pid_t pid = start_child(sleep_forever);

  for (const Fd& procs : cgroup.open_join_files()) write_all(procs.get(), fmt::to_string(pid));

  EXPECT_TRUE(is_in(pid, name_ + "/late"));
  tree_->remove("late");
  EXPECT_EQ(wait_for_child(pid), -SIGKILL);
}

// A newborn that stands in the serving part and has one child in the limited one. Its user, who has
// no rights, is made the owner.
constexpr uid_t kOwner = 0x1234'5678;

int have_a_child_in(int limited_fd) {
  if (::setresuid(kOwner, kOwner, kOwner) != 0) return 90;
  const Forked child = fork_into(0, limited_fd);
  if (child.pid == 0) sleep_forever();
  ::kill(::getpid(), SIGSTOP);
  return 0;
}

TEST_F(CgroupTest, WhereV2LimitsThoseWhoServeAreOutsideAndTheirChildrenInside) {
  if (!tree_->v2_limits()) GTEST_SKIP() << "needs controllers of cgroup v2";
  const Cgroup cgroup = tree_->create("two", {.memory_bytes = 32 << 20, .pids = 1}, kOwner);
  Forked server = fork_into(0, cgroup.serving_dir_fd());
  if (server.pid == 0) ::_exit(have_a_child_in(cgroup.v2_dir_fd()));
  int status = 0;
  ASSERT_EQ(::waitpid(server.pid, &status, WUNTRACED), server.pid);
  ASSERT_TRUE(WIFSTOPPED(status)) << WEXITSTATUS(status);

  EXPECT_TRUE(is_in(server.pid, "0::/" + name_ + "/two/serving"));
  EXPECT_EQ(cgroup.usage().pids, 1U);

  tree_->remove("two");
  EXPECT_EQ(wait_for_child(server.pid), -SIGKILL);
}

TEST_F(CgroupTest, WhereV2LimitsNobodyButTheOwnerLetsOthersBeBornInside) {
  if (!tree_->v2_limits()) GTEST_SKIP() << "needs controllers of cgroup v2";
  const Cgroup cgroup = tree_->create("other", {}, kOwner + 1);
  Forked server = fork_into(0, cgroup.serving_dir_fd());
  if (server.pid == 0) {
    try {
      ::_exit(have_a_child_in(cgroup.v2_dir_fd()));
    } catch (const Error& error) {
      ::_exit(error.code() == Code::forbidden ? 42 : 43);
    }
  }

  EXPECT_EQ(wait_for_child(server.pid), 42);
}

// The kernel makes the newborn's cgroup the root of a namespace that is born with it. So who serves
// keeps the host's, or could let nobody be born beside himself; his children get their own.
TEST_F(CgroupTest, WhereV2LimitsANamespaceBornWithAProcessHasItsRootThere) {
  if (!tree_->v2_limits()) GTEST_SKIP() << "needs controllers of cgroup v2";
  const Cgroup cgroup = tree_->create("deep", {}, kOwner);
  const auto have_a_child = [&] {
    const Forked child = fork_into(CLONE_NEWCGROUP, cgroup.v2_dir_fd());
    if (child.pid == 0) ::_exit(is_in(::getpid(), "0::/\n") ? 7 : 8);
    return wait_for_child(child.pid);
  };
  const auto code_in = [&](std::uint64_t namespaces) {
    const Forked server = fork_into(namespaces, cgroup.serving_dir_fd());
    if (server.pid != 0) return wait_for_child(server.pid);
    try {
      ::_exit(have_a_child());
    } catch (const Error& error) {
      ::_exit(error.code() == Code::not_found ? 9 : 10);
    }
  };

  EXPECT_EQ(code_in(0), 7);
  const bool is_boundary =
      read_file("/proc/self/mountinfo").find(",nsdelegate") != std::string::npos;
  EXPECT_EQ(code_in(CLONE_NEWCGROUP), is_boundary ? 9 : 7);
}

// What a host without v2 would see: a mount namespace in which it is not mounted.
int without_v2(const std::function<int()>& body) {
  return run_in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0) return 90;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 91;
    for (const CgroupHierarchy& hierarchy :
         find_cgroup_hierarchies(read_file("/proc/self/mountinfo"))) {
      if (hierarchy.v2 && ::umount2(hierarchy.mount_point.c_str(), MNT_DETACH) != 0) return 92;
    }
    return body();
  });
}

TEST(CgroupWithoutV2, FreezesCountsAndKillsByV1Alone) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  const auto present = find_cgroup_hierarchies(read_file("/proc/self/mountinfo"));
  const auto has_freezer = [](const CgroupHierarchy& hierarchy) {
    return hierarchy.controllers == std::vector<std::string>{"freezer"};
  };
  if (std::ranges::none_of(present, has_freezer)) GTEST_SKIP() << "needs the cgroup v1 freezer";

  const int code = without_v2([] {
    const std::string name = unique_name("v1");
    CgroupTree tree = CgroupTree::open(name);
    if (tree.describe().find("v2") != std::string::npos) return 1;
    Cgroup cgroup = tree.create("leaf", {.pids = 10});
    const pid_t pid = start_in(cgroup, sleep_forever);
    if (!is_in(pid, fmt::format("freezer:/{}/leaf", name))) return 4;

    cgroup.freeze();
    const std::string state = read_file(fmt::format("/proc/{}/stat", pid));
    cgroup.thaw();
    cgroup.freeze();
    tree.remove("leaf");
    if (wait_for_child(pid) != -SIGKILL) return 2;
    tree.remove_tree();
    return state.find(") D ") != std::string::npos ? 0 : 3;
  });

  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace hearth::linux
