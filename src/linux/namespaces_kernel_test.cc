#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "linux/kernel_testing.h"
#include "linux/namespaces.h"

namespace hearth::linux {
namespace {

constexpr IdRange kRange{.first = 500'000, .count = 65'536};

TEST(UserNamespace, MapsUsersAndGroupsAndAllowsGroups) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  HEARTH_NEEDS(CAP_SETUID);
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "needs a process with one thread: ThreadSanitizer runs one of its own";
#endif
  const Fd userns = make_user_namespace(kRange);

  const int code = run_in_child([&] {
    enter_namespace(userns.get(), CLONE_NEWUSER);
    if (::setgid(7) != 0 || ::setuid(0) != 0) return 1;
    const gid_t groups[] = {1, 2};
    if (::setgroups(2, groups) != 0) return 2;
    const std::string map = read_file("/proc/self/uid_map");
    if (map.find("500000") == std::string::npos || map.find("65536") == std::string::npos) return 3;
    if (read_file("/proc/self/gid_map") != map) return 4;
    return read_file("/proc/self/setgroups") == "allow\n" ? 0 : 5;
  });

  EXPECT_EQ(code, 0);
}

TEST(UserNamespace, LeavesNoProcessBehind) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  for (int i = 0; i < 20; ++i) make_user_namespace(kRange);

  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(UserNamespace, CanBeMadeByManyThreadsAtOnce) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::vector<Fd> made(4);
  for (Fd& fd : made) threads.emplace_back([&fd] { fd = make_user_namespace(kRange); });
  for (std::thread& thread : threads) thread.join();

  EXPECT_NE(namespace_inode(made[0].get()), namespace_inode(made[3].get()));
}

TEST(UserNamespace, RefusesARangeThatIsNone) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);

  EXPECT_THROW(make_user_namespace({.first = 1, .count = 0}), Error);
  EXPECT_THROW(make_user_namespace({.first = 4'000'000'000, .count = 1'000'000'000}), Error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
}

TEST(NetNamespace, IsNotTheCallersAndDoesNotMoveIt) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  const Fd before = open_namespace(::getpid(), "net");

  const Fd made = make_net_namespace();

  const Fd after = open_file("/proc/thread-self/ns/net", O_RDONLY);
  EXPECT_EQ(namespace_inode(before.get()), namespace_inode(after.get()));
  EXPECT_NE(namespace_inode(before.get()), namespace_inode(made.get()));
}

TEST(NetNamespace, CanBeEntered) {
  HEARTH_NEEDS(CAP_SYS_ADMIN);
  const Fd made = make_net_namespace();

  EXPECT_EQ(run_in_child([&] {
              enter_namespace(made.get(), CLONE_NEWNET);
              const Fd now = open_namespace(::getpid(), "net");
              if (namespace_inode(now.get()) != namespace_inode(made.get())) return 1;
              return ::if_nametoindex("lo") == 1 && ::if_nametoindex("eth0") == 0 ? 0 : 2;
            }),
            0);
  EXPECT_THROW(enter_namespace(made.get(), CLONE_NEWUSER), Error);
}

TEST(OpenNamespace, ThrowsForAProcessThatIsNotThere) {
  try {
    open_namespace(0x7fffffff, "net");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
  }
}

}  // namespace
}  // namespace hearth::linux
