// What is inside stays inside: storms, hogs and murder.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/testing.h"
#include "linux/block_device.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

class Limit : public SandboxTest {
 protected:
  // In place of the one that every test gets.
  void recreate(const Limits& limits) {
    runtime().destroy(id_);
    id_ = runtime().create({.limits = limits}).sandbox.id;
  }
};

TEST_F(Limit, AForkStormStaysInsideAndTheSandboxIsReachable) {
  recreate({.memory_bytes = 256 << 20, .cpu_millis = 1000, .pids = 32});
  guest::Connection storm(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", "bomb() { sleep 1000 & bomb & bomb; }; bomb"};
  storm.start(request, {});

  // The limit is reached...
  const Deadline deadline = Deadline::after(60s);
  while (runtime().get(id_).usage.pids < 30 && !deadline.passed()) ::usleep(1000);
  EXPECT_GE(runtime().get(id_).usage.pids, 30u);
  EXPECT_LE(runtime().get(id_).usage.pids, 32u);

  // ...and the guest answers, if only to say so.
  EXPECT_EQ(guest::Connection(runtime().connect(id_)).hello(Deadline::after(60s)).hello.protocol,
            guest::kProtocolVersion);
  runtime().destroy(id_);
}

TEST_F(Limit, AMemoryHogIsKilledAndNobodyElse) {
  recreate({.memory_bytes = 64 << 20, .cpu_millis = 2000, .pids = 64});
  guest::ExecRequest request;
  request.command = {"python3", "-c", "x = bytearray(300 << 20); print('never')"};

  const Outcome outcome = run_in(runtime().connect(id_), request);

  EXPECT_EQ(outcome.exited.status.signal, SIGKILL);
  EXPECT_EQ(outcome.output, "");
  EXPECT_GE(runtime().get(id_).usage.oom_kills, 1u);
  EXPECT_EQ(sh("echo alive").output, "alive\n");
}

TEST_F(Limit, FilesCountAsMemoryAndTheDiskHasAnEnd) {
  recreate({.memory_bytes = 256 << 20, .cpu_millis = 2000, .pids = 64, .disk_bytes = 16 << 20});
  const Outcome outcome = sh("head -c 100000000 /dev/zero > /tmp/large");

  EXPECT_NE(outcome.exited.status.code, 0);
  EXPECT_NE(outcome.error.find("No space left"), std::string::npos) << outcome.error;
  EXPECT_EQ(sh("rm /tmp/large; echo alive").output, "alive\n");
}

// A layer as large as the memory that it counts against would have its writers killed.
TEST_F(Limit, AFullLayerIsSaidBeforeTheMemoryIsGone) {
  for (const std::uint64_t disk : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
    recreate({.memory_bytes = 64 << 20, .cpu_millis = 2000, .pids = 64, .disk_bytes = disk});
    const Outcome outcome = sh("head -c 200000000 /dev/zero > /tmp/large");
    EXPECT_EQ(outcome.exited.status.signal, 0);
    EXPECT_NE(outcome.error.find("No space left"), std::string::npos) << outcome.error;
    EXPECT_EQ(runtime().get(id_).usage.oom_kills, 0U);
    EXPECT_EQ(sh("wc -c < /tmp/large | cut -c1; rm /tmp/large; echo alive").output, "5\nalive\n");
  }
}

TEST_F(Limit, CpuIsThrottled) {
  recreate({.memory_bytes = 256 << 20, .cpu_millis = 100, .pids = 64});
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", "while :; do :; done"};
  request.timeout_milliseconds = 1000;

  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_in(runtime().connect(id_), request);
  const std::uint64_t used = runtime().get(id_).usage.cpu_microseconds;
  const auto spent = std::chrono::steady_clock::now() - begin;

  EXPECT_TRUE(outcome.exited.timed_out);
  // A tenth was due, and something for the periods at both ends.
  EXPECT_LT(used, static_cast<std::uint64_t>(spent / 10us) + 300'000u);
}

TEST_F(Limit, RootInsideKillsEverythingButTheGuest) {
  guest::Connection victim(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"sleep", "1000"};
  victim.start(request, {});

  sh("kill -9 -1");  // spares only the one who calls it
  EXPECT_EQ(victim.wait(Deadline::after(60s))->status.signal, SIGKILL);
  EXPECT_EQ(sh("echo alive").output, "alive\n");

  // Whatever starts commands is under the limits as before.
  const std::uint64_t before = runtime().get(id_).usage.pids;
  sh("sleep 100 >/dev/null 2>&1 &");
  EXPECT_GT(runtime().get(id_).usage.pids, before);
}

TEST_F(Limit, TimeoutEndsTheWholeTree) {
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c",
                     "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000"};
  request.timeout_milliseconds = 300;

  const Outcome outcome = run_in(runtime().connect(id_), request);

  EXPECT_TRUE(outcome.exited.timed_out);
  EXPECT_EQ(sh("ps -e | grep -c sleep").output, "0\n");
}

class IoLimit : public Limit {
 protected:
  void SetUp() override {
    Limit::SetUp();
    if (IsSkipped()) return;
    try {
      const linux::Fd state = linux::open_file(engine_->state_dir(), O_PATH | O_DIRECTORY);
      linux::find_disk(state.get());
    } catch (const Error& error) {
      GTEST_SKIP() << "needs a state folder on a disk: " << error.what();
    }
    const std::string cgroups = runtime().hello().cgroups;
    if (cgroups.find("io") == std::string::npos)
      GTEST_SKIP() << "needs the cgroup controller io or blkio; there is " << cgroups;
  }

  // With a volume, which is on the disk.
  void recreate_with(const IoLimits& io) {
    runtime().destroy(id_);
    SandboxSpec spec;
    spec.limits.io = io;
    spec.mounts = {{.source = "disk", .target = "/disk"}};
    id_ = runtime().create(spec).sandbox.id;
  }
  void TearDown() override {
    Limit::TearDown();
    if (!engine_) return;
    for (const Volume& volume : runtime().list_volumes()) runtime().remove_volume(volume.name);
  }
  double seconds_of(const std::string& script) {
    const auto before = std::chrono::steady_clock::now();
    const Outcome outcome = sh(script);
    EXPECT_EQ(outcome.exited.status.code, 0) << outcome.error;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
};

TEST_F(IoLimit, WritingAndReadingAreSlowedDown) {
  recreate_with({});
  const std::string write = "dd if=/dev/zero of=/disk/x bs=64k count=48 oflag=direct";  // 3 MiB
  const std::string read = "dd if=/disk/x of=/dev/null bs=64k iflag=direct";
  // A disk that others keep busy is quick now and then.
  const auto is_quick = [&](const std::string& script, double seconds) {
    for (int i = 0; i < 20; ++i) {
      if (seconds_of(script) < seconds) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_quick(write, 2.0));
  EXPECT_TRUE(is_quick(read, 1.0));

  recreate_with({.read_bytes = 2 << 20, .write_bytes = 1 << 20});
  EXPECT_GT(seconds_of(write), 2.0);
  EXPECT_GT(seconds_of(read), 1.0);
  EXPECT_EQ(runtime().get(id_).limits.io.read_bytes, 2u << 20);
}

TEST_F(IoLimit, OperationsAreCounted) {
  recreate_with({.write_ops = 20});
  EXPECT_GT(seconds_of("dd if=/dev/zero of=/disk/x bs=4k count=40 oflag=direct"), 1.0);
}

TEST_F(IoLimit, WhatWaitsForADiskDiesWithItsSandbox) {
  recreate_with({.write_bytes = 64 << 10});
  guest::Connection writer(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"dd", "if=/dev/zero", "of=/disk/x", "bs=16M", "count=4", "oflag=direct"};
  writer.start(request, {});
  ::usleep(200'000);  // for the first request to be on its way

  const auto before = std::chrono::steady_clock::now();
  runtime().destroy(id_);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);  // of the four minutes for one request
}

// Its own disk is a file on the engine's: what passes between the two is on the sandbox's account.
TEST_F(IoLimit, AWritableLayerOnTheDiskIsNoWayRound) {
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) GTEST_SKIP() << "needs loop devices";
  runtime().destroy(id_);
  SandboxSpec spec;
  spec.disk_on = DiskPlace::disk;
  spec.limits.io.write_bytes = 1 << 20;
  id_ = runtime().create(spec).sandbox.id;

  EXPECT_GT(seconds_of("dd if=/dev/zero of=/x bs=64k count=48 oflag=direct"), 2.0);
}

TEST_F(IoLimit, TooLittleIsRefused) {
  EXPECT_THROW(recreate_with({.read_bytes = 1}), Error);
  EXPECT_THROW(recreate_with({.write_ops = 1}), Error);
}

TEST_F(Limit, UlimitsHoldForEveryCommandAndRootCannotRaiseThem) {
  runtime().destroy(id_);
  SandboxSpec spec;
  spec.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 128, .hard = 256},
                  {.resource = RLIMIT_CPU, .soft = 60, .hard = linux::kUnlimited}};
  id_ = runtime().create(spec).sandbox.id;

  EXPECT_EQ(sh("ulimit -Sn; ulimit -Hn; ulimit -St; ulimit -Ht; ulimit -Hc").output,
            "128\n256\n60\nunlimited\n0\n");
  EXPECT_EQ(sh("ulimit -Sn 256 && ulimit -Sn").output, "256\n");
  EXPECT_NE(sh("ulimit -Hn 257").exited.status.code, 0);
  EXPECT_NE(sh("python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (257, 257))'")
                .exited.status.code,
            0);
  // The guest's own are not theirs.
  EXPECT_NE(sh("prlimit --pid 1 --nofile=1:1").exited.status.code, 0);

  const std::vector<Sandbox> forks = runtime().fork(id_, 1);
  EXPECT_EQ(run_shell(runtime(), forks.front().id, "ulimit -Hn").output, "256\n");
  runtime().destroy(forks.front().id);
}

TEST_F(Limit, UlimitsThatCannotBeGivenAreRefusedBeforeThereIsASandbox) {
  const std::size_t before = runtime().list().size();
  SandboxSpec spec;
  spec.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 1, .hard = linux::kUnlimited}};
  try {
    runtime().create(spec);
    FAIL() << "was created";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_NE(std::string(error.what()).find("ulimit nofile: unlimited"), std::string::npos)
        << error.what();
  }
  spec.ulimits = {{.resource = 1000, .soft = 1, .hard = 1}};
  EXPECT_THROW(runtime().create(spec), Error);
  EXPECT_EQ(runtime().list().size(), before);
}

}  // namespace
}  // namespace hearth::runtime
