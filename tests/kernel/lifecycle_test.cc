// Births, deaths and lives after death: nothing is lost, nothing is left.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "kernel/testing.h"
#include "linux/mounts.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override { HEARTH_NEED_ROOT(); }

  // Namespaces and mounts die behind the answer, in the kernel's own time.
  static void expect_host_as(const HostState& before) {
    const Deadline deadline = Deadline::after(60s);
    HostState now = look_at_host();
    while (!(now == before) && !deadline.passed()) {
      std::this_thread::sleep_for(10ms);
      now = look_at_host();
    }
    EXPECT_EQ(now.mounts, before.mounts);
    EXPECT_EQ(now.cgroups, before.cgroups);
    EXPECT_EQ(now.namespaces, before.namespaces);
    EXPECT_EQ(now.links, before.links);
    EXPECT_EQ(now.guests, before.guests);
    EXPECT_EQ(now.folders, before.folders);
  }

  // One for each engine and hierarchy.
  static std::vector<std::string> cgroup_corners() {
    std::vector<std::string> corners;
    for (const linux::MountEntry& mount : linux::mount_table()) {
      std::error_code none;
      for (const auto& entry :
           std::filesystem::directory_iterator(mount.mount_point + "/hearth", none)) {
        if (entry.is_directory()) corners.push_back(entry.path());
      }
    }
    return corners;
  }

  // Those of namespaces that ended close together a moment later (runtime/partings.h).
  static bool wait_for_open_files(int pid, std::size_t most) {
    const Deadline deadline = Deadline::after(10s);
    while (open_files(pid) > most && !deadline.passed()) std::this_thread::sleep_for(10ms);
    return open_files(pid) <= most;
  }

  static rlimit limit_of(int pid) {
    rlimit limit{};
    EXPECT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
    return limit;
  }

  // Of what it throws.
  template <typename F>
  static std::optional<Code> code_of(F act) {
    try {
      act();
      return std::nullopt;
    } catch (const Error& error) {
      return error.code();
    }
  }

  static rlim_t first_free_file(int pid) {
    rlim_t number = 0;
    while (std::filesystem::is_symlink(fmt::format("/proc/{}/fd/{}", pid, number))) ++number;
    return number;
  }

  static std::size_t open_files(int pid) {
    const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", pid));
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
};

// As the runtime of an engine that has more sandboxes than it may have files open.
TEST_F(Lifecycle, ARuntimeWithoutDescriptorsStillEndsSandboxes) {
  TestEngine engine;
  const auto set_limit = [&](rlim_t most) {
    const rlimit limit{.rlim_cur = most, .rlim_max = limit_of(engine.pid()).rlim_max};
    ASSERT_EQ(::prlimit(engine.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  };
  const std::size_t before = open_files(engine.pid());
  const rlim_t usual = limit_of(engine.pid()).rlim_cur;
  // Of which an eighth is left for others: enough for the shells that are being made ahead, too.
  set_limit(before + 600);
  std::vector<std::string> ids;
  const auto fill = [&] {
    while (ids.size() < 100) ids.push_back(engine.runtime().create({}).sandbox.id);
  };

  EXPECT_EQ(code_of(fill), Code::exhausted);
  ASSERT_GT(ids.size(), 2U);
  RuntimeClient another(engine.state_dir());
  EXPECT_EQ(another.list().size(), ids.size()) << "some are left for those who ask";

  engine.runtime().destroy(ids.back());

  // And where none is left at all, whoever comes hears of it, or that nobody listens.
  set_limit(first_free_file(engine.pid()));
  EXPECT_TRUE(code_of([&] { RuntimeClient(engine.state_dir()).list(); }));
  set_limit(usual);
  EXPECT_EQ(RuntimeClient(engine.state_dir()).list().size(), ids.size() - 1);
  engine.runtime().create({});
}

TEST_F(Lifecycle, TwoHundredCyclesLeaveTheHostAsItWas) {
  TestEngine engine;
  // What the runtime keeps for itself (the id mapping of a slot, a thread) is made once.
  engine.runtime().destroy(engine.runtime().create({}).sandbox.id);
  const HostState before = look_at_host();
  const std::size_t files_before = open_files(engine.pid());

  for (int i = 0; i < 200; ++i) {
    Runtime::Created created = engine.runtime().create({});
    guest::Connection guest(std::move(created.guest));
    guest::ExecRequest request;
    request.command = {"true"};
    EXPECT_EQ(guest.run(request, {}).status.code, 0);
    engine.runtime().destroy(created.sandbox.id);
  }

  expect_host_as(before);
  EXPECT_TRUE(wait_for_open_files(engine.pid(), files_before));
  EXPECT_TRUE(engine.runtime().list().empty());
}

TEST_F(Lifecycle, ParallelCyclesDoNotMeet) {
  TestEngine engine;
  engine.runtime().destroy(engine.runtime().create({}).sandbox.id);
  const HostState before = look_at_host();
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < 4; ++worker) {
      workers.emplace_back([&engine, worker] {
        RuntimeClient runtime(engine.state_dir());
        for (int i = 0; i < 15; ++i) {
          const std::string id = fmt::format("w{}-{}", worker, i);
          const Runtime::Created created = runtime.create({.id = id});
          EXPECT_EQ(run_shell(runtime, id, "hostname").output, id + "\n");
          runtime.destroy(id);
        }
      });
    }
  }
  expect_host_as(before);
}

TEST_F(Lifecycle, OneIdIsGivenOnce) {
  TestEngine engine;
  std::atomic<int> winners = 0;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < 8; ++worker) {
      workers.emplace_back([&] {
        RuntimeClient runtime(engine.state_dir());
        try {
          runtime.create({.id = "wanted"});
          ++winners;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::already_exists);
        }
      });
    }
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(Lifecycle, SandboxesOutliveAKilledRuntime) {
  TestEngine engine;
  const std::string id = engine.runtime().create({.environment = {"KEPT=yes"}}).sandbox.id;
  run_shell(engine.runtime(), id, "echo state > /tmp/file");
  const int pid = engine.runtime().get(id).pid;

  engine.kill();
  EXPECT_EQ(::kill(pid, 0), 0);
  engine.start();

  EXPECT_EQ(engine.runtime().hello().adopted, 1u);
  EXPECT_EQ(engine.runtime().get(id).pid, pid);
  EXPECT_EQ(run_shell(engine.runtime(), id, "cat /tmp/file; echo $KEPT").output, "state\nyes\n");
  engine.runtime().destroy(id);
  EXPECT_TRUE(engine.runtime().list().empty());
}

TEST_F(Lifecycle, SandboxesOutliveAPoliteStop) {
  TestEngine engine;
  const std::string id = engine.runtime().create({}).sandbox.id;

  engine.stop(/*destroy_all=*/false);
  engine.start();

  EXPECT_EQ(run_shell(engine.runtime(), id, "echo here").output, "here\n");
}

TEST_F(Lifecycle, TheLastStopLeavesNothing) {
  const HostState before = look_at_host();
  const std::vector<std::string> corners_before = cgroup_corners();
  {
    TestEngine engine;
    engine.runtime().create({});
    engine.runtime().create({});
    EXPECT_GT(cgroup_corners().size(), corners_before.size());
  }
  expect_host_as(before);
  EXPECT_EQ(cgroup_corners(), corners_before);
}

// Whoever is being born when the end comes goes with the others; whoever comes later is refused.
TEST_F(Lifecycle, TheLastStopLeavesNothingOfThoseBeingBornEither) {
  const HostState before = look_at_host();
  const std::vector<std::string> corners_before = cgroup_corners();
  for (int round = 0; round < 5; ++round) {
    TestEngine engine(/*warm=*/2);
    std::atomic<int> born = 0;
    std::vector<std::jthread> parents;
    for (int i = 0; i < 4; ++i) {
      parents.emplace_back([&] {
        RuntimeClient runtime(engine.state_dir());
        try {
          for (;; ++born) runtime.create({});
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::unavailable) << error.what();
        }
      });
    }
    while (born < 4 + round) std::this_thread::yield();
    EXPECT_NO_THROW(engine.stop(/*destroy_all=*/true));
  }
  expect_host_as(before);
  EXPECT_EQ(cgroup_corners(), corners_before);
}

TEST_F(Lifecycle, WhatDiedMeanwhileIsSwept) {
  TestEngine engine;
  const HostState before = look_at_host();
  const std::string dead = engine.runtime().create({}).sandbox.id;
  const std::string alive = engine.runtime().create({}).sandbox.id;
  const int pid = engine.runtime().get(dead).pid;

  engine.kill();
  ::kill(pid, SIGKILL);
  engine.start();

  EXPECT_EQ(engine.runtime().hello().adopted, 1u);
  EXPECT_EQ(engine.runtime().hello().swept, 1u);
  ASSERT_EQ(engine.runtime().list().size(), 1u);
  EXPECT_EQ(engine.runtime().list().front().id, alive);
  engine.runtime().destroy(alive);
  HostState now = before;
  now.namespaces = look_at_host().namespaces;  // the runtime's own mount namespace is a new one
  expect_host_as(now);
}

TEST_F(Lifecycle, ACrashInTheMiddleOfBirthsLeavesNothingBehind) {
  TestEngine engine;
  const HostState before = look_at_host();
  for (int round = 0; round < 5; ++round) {
    std::jthread births([&] {
      try {
        RuntimeClient runtime(engine.state_dir());
        for (int i = 0; i < 100; ++i) runtime.create({});
      } catch (const Error&) {
        // The runtime went away: that is the test.
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * round));
    engine.kill();
    births.join();
    engine.start();

    // Everything acknowledged is there and works; everything else is gone.
    const auto sandboxes = engine.runtime().list();
    for (const auto& sandbox : sandboxes) {
      EXPECT_EQ(run_shell(engine.runtime(), sandbox.id, "echo ok").output, "ok\n");
      engine.runtime().destroy(sandbox.id);
    }
  }
  HostState now = before;
  now.namespaces = look_at_host().namespaces;
  expect_host_as(now);
}

TEST_F(Lifecycle, ASandboxThatDiesIsNoticed) {
  TestEngine engine;
  const auto sandbox = engine.runtime().create({}).sandbox;

  ::kill(sandbox.pid, SIGKILL);
  const Deadline deadline = Deadline::after(60s);
  while (engine.runtime().get(sandbox.id).state == State::running && !deadline.passed())
    ::usleep(1000);

  EXPECT_EQ(engine.runtime().get(sandbox.id).state, State::exited);
  EXPECT_THROW(engine.runtime().connect(sandbox.id), Error);
  engine.runtime().destroy(sandbox.id);
  EXPECT_TRUE(engine.runtime().list().empty());
}

TEST_F(Lifecycle, AKilledClientLeaksNothing) {
  TestEngine engine;
  const std::string id = engine.runtime().create({}).sandbox.id;
  const std::size_t files_before = open_files(engine.pid());
  linux::Pipe started = linux::make_pipe();
  const pid_t client = ::fork();
  if (client == 0) {
    guest::Connection guest(RuntimeClient(engine.state_dir()).connect(id));
    guest::ExecRequest request;
    request.command = {"/bin/sh", "-c", "setsid sleep 1000 & echo x; sleep 1000"};
    guest.start(request, {.input = -1, .output = started.write.get(), .error = -1});
    ::pause();
    ::_exit(0);
  }
  started.write.reset();
  char byte = 0;
  ASSERT_EQ(::read(started.read.get(), &byte, 1), 1);

  ::kill(client, SIGKILL);
  ::waitpid(client, nullptr, 0);

  // All that held the pipe is dead when it ends.
  while (::read(started.read.get(), &byte, 1) > 0) {
  }
  // They are reaped, and the client is missed, a moment later.
  const auto is_clean = [&] {
    return run_shell(engine.runtime(), id, "ps -e | grep -c sleep").output == "0\n" &&
           open_files(engine.pid()) <= files_before;
  };
  const Deadline deadline = Deadline::after(60s);
  while (!is_clean() && !deadline.passed()) ::usleep(1000);
  EXPECT_TRUE(is_clean());
}

TEST_F(Lifecycle, ASandboxTiedToItsClientGoesWithIt) {
  TestEngine engine;
  const std::string stays = engine.runtime().create({}).sandbox.id;
  {
    RuntimeClient client(engine.state_dir());
    client.create({.id = "tied", .ends_with_client = true});
    client.create({.id = "free"});
    EXPECT_EQ(engine.runtime().list().size(), 3u);
  }

  const Deadline deadline = Deadline::after(60s);
  while (engine.runtime().list().size() > 2 && !deadline.passed()) ::usleep(1000);

  EXPECT_EQ(engine.runtime().get("free").state, State::running);
  EXPECT_THROW(engine.runtime().get("tied"), Error);
  EXPECT_EQ(engine.runtime().get(stays).state, State::running);
}

// Processes of the runtime itself that sandboxes are born from.
std::vector<int> nurseries_of(int runtime_pid) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    try {
      stat = linux::read_file(entry.path().string() + "/stat");
    } catch (const Error&) {
      continue;  // it has just ended
    }
    // "PID (hearth-guest) STATE PARENT ..."
    if (stat.find(fmt::format("(hearth-guest) S {} ", runtime_pid)) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

TEST_F(Lifecycle, ANurseryThatDiesIsReplaced) {
  TestEngine engine;
  const std::string before = engine.runtime().create({}).sandbox.id;
  const std::vector<int> nurseries = nurseries_of(engine.pid());
  ASSERT_FALSE(nurseries.empty());
  for (const int pid : nurseries) ASSERT_EQ(::kill(pid, SIGKILL), 0);
  for (const int pid : nurseries) {
    const auto pidfd = linux::Pidfd::find(pid);
    ASSERT_TRUE(!pidfd || pidfd->wait_for_end(Deadline::after(60s)));
  }

  for (std::size_t i = 0; i < nurseries.size() + 1; ++i) {
    const std::string id = engine.runtime().create({}).sandbox.id;
    EXPECT_EQ(run_shell(engine.runtime(), id, "echo born").output, "born\n");
    engine.runtime().destroy(id);
  }
  EXPECT_EQ(run_shell(engine.runtime(), before, "echo alive").output, "alive\n");
  EXPECT_FALSE(nurseries_of(engine.pid()).empty());
}

TEST_F(Lifecycle, ARuntimeThatEndsWithoutSandboxesLeavesNothing) {
  const HostState before = look_at_host();
  const std::vector<std::string> corners = cgroup_corners();
  TestEngine engine(/*warm=*/2);
  engine.runtime().destroy(engine.runtime().create({}).sandbox.id);
  EXPECT_NE(cgroup_corners(), corners);
  engine.stop(/*destroy_all=*/false);

  expect_host_as(before);
  EXPECT_EQ(cgroup_corners(), corners);

  // With one left it keeps what that one stands on.
  engine.start();
  const std::string id = engine.runtime().create({}).sandbox.id;
  engine.stop(/*destroy_all=*/false);
  EXPECT_NE(cgroup_corners(), corners);
  engine.start();
  EXPECT_EQ(run_shell(engine.runtime(), id, "echo alive").output, "alive\n");
}

}  // namespace
}  // namespace hearth::runtime
