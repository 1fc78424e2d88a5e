#include "guest/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace hearth::guest {
namespace {

bool is_readable(int fd) {
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waited, 1, 0) > 0;
}

std::vector<linux::Fd> nothing() {
  std::vector<linux::Fd> stdio;
  for (int i = 0; i < 3; ++i) stdio.push_back(linux::open_file("/dev/null", O_RDWR));
  return stdio;
}

SpawnPlan plan_of(const char* program) {
  SpawnPlan plan;
  plan.command = {program};
  plan.directory = "/";
  plan.uid = ::getuid();
  plan.gid = ::getgid();
  return plan;
}

// The end of a short command brings whoever serves to look before he is told. What tells him comes
// later then, and must not stay: he would be told for ever.
TEST(SpawnerTest, WhoLooksBeforeHeIsToldIsNotToldForEver) {
  Spawner spawner({});
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> crowd;  // so that the spawner loses its turn at any point
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
    crowd.emplace_back([&] {
      while (!is_over) std::this_thread::yield();
    });
  for (int i = 0; i < 200; ++i) {
    spawner.begin(plan_of("/"), nothing(), /*tell=*/true);
    std::optional<SpawnResult> result;
    while (!result) result = spawner.take_result();
    EXPECT_EQ(result->failed, SpawnStep::program);
    EXPECT_EQ(::waitpid(result->pid, nullptr, 0), result->pid);
    if (!is_readable(spawner.fd())) continue;
    EXPECT_FALSE(spawner.take_result());
    EXPECT_FALSE(is_readable(spawner.fd()));
  }
  is_over = true;
}

}  // namespace
}  // namespace hearth::guest
