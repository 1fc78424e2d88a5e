// Shells made ahead, what becomes of them, and what happens to sandboxes while they live.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <thread>

#include "kernel/testing.h"
#include "linux/capabilities.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

class Warm : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    engine_ = std::make_unique<TestEngine>(4);
    wait_for_shells(4);
  }

  RuntimeClient& runtime() { return engine_->runtime(); }

  void wait_for_shells(std::uint64_t count) {
    const Deadline deadline = Deadline::after(20s);
    while (runtime().hello().warm < count && !deadline.passed()) ::usleep(5000);
    ASSERT_GE(runtime().hello().warm, count);
  }

  std::string sh(const std::string& id, const std::string& script) {
    return run_shell(runtime(), id, script).output;
  }

  std::unique_ptr<TestEngine> engine_;
};

TEST_F(Warm, AShellBecomesASandboxAndIsReplaced) {
  const auto created = runtime().create({.id = "warm"});
  EXPECT_EQ(runtime().hello().warm_hits, 1u);
  EXPECT_EQ(sh("warm", "hostname"), "warm\n");
  runtime().create({.id = "named", .hostname = "web-0.web"});
  EXPECT_EQ(sh("named", "hostname; grep -c web-0.web /etc/hosts"), "web-0.web\n1\n");
  EXPECT_THROW(runtime().create({.id = "misnamed", .hostname = "a\nb"}), Error);
  wait_for_shells(4);
}

TEST_F(Warm, AnEmptyPoolOnlyTakesLonger) {
  {
    // All at once: one after the other, a slow machine makes new shells as fast as we take them.
    std::vector<std::jthread> clients;
    for (int i = 0; i < 12; ++i) {
      clients.emplace_back(
          [this, i] { RuntimeClient(engine_->state_dir()).create({.id = fmt::format("s{}", i)}); });
    }
  }
  EXPECT_GT(runtime().hello().warm_misses, 0u);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(sh(fmt::format("s{}", i), "echo here"), "here\n");
}

TEST_F(Warm, LimitsAreThoseAskedForNotThoseOfTheShell) {
  SandboxSpec spec{.id = "small"};
  spec.limits = {.memory_bytes = 64 << 20, .cpu_millis = 500, .pids = 20, .disk_bytes = 1 << 20};
  runtime().create(spec);

  EXPECT_EQ(sh("small", "grep MemTotal /proc/meminfo | tr -s ' '"), "MemTotal: 65536 kB\n");
  EXPECT_EQ(sh("small", "nproc"), "1\n");
  EXPECT_EQ(sh("small", "grep -c ^processor /proc/cpuinfo"), "1\n");
  EXPECT_NE(sh("small", "head -c 2000000 /dev/zero > /tmp/big 2>&1; stat -c %s /tmp/big"),
            "2000000\n");
  const Outcome hog =
      run_shell(runtime(), "small", "head -c 200000000 /dev/zero | tail >/dev/null");
  EXPECT_NE(hog.exited.status.code, 0);
}

TEST_F(Warm, NothingOfASandboxIsInTheNext) {
  std::set<std::string> boots;
  for (int i = 0; i < 10; ++i) {
    const std::string id = runtime().create({}).sandbox.id;
    EXPECT_EQ(sh(id, "ls /tmp /dev/shm /dev/mqueue /root; set -- /proc/[0-9]*; echo $#"),
              "/dev/mqueue:\n\n/dev/shm:\n\n/root:\n\n/tmp:\n2\n");  // PID 1, sh
    sh(id, "echo x > /tmp/x; echo x > /dev/shm/x; echo x > /root/x; sleep 100 >/dev/null 2>&1 &");
    EXPECT_TRUE(boots.insert(sh(id, "cat /proc/sys/kernel/random/boot_id")).second);
    runtime().destroy(id);
  }
}

TEST_F(Warm, ShellsThatNobodyTookGoWithTheRuntime) {
  engine_->kill();
  engine_->start();
  EXPECT_EQ(runtime().hello().adopted, 0u);
  EXPECT_EQ(runtime().list().size(), 0u);
}

class Life : public SandboxTest {};

TEST_F(Life, PauseHoldsEverythingAndResumeLetsItGo) {
  guest::Connection guest(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", "while :; do echo x >> /tmp/ticks; sleep 0.01; done"};
  request.detached = true;
  guest.start(request, {});
  const auto ticks = [this] {
    return std::stoi("0" + sh("wc -l < /tmp/ticks 2>/dev/null").output);
  };
  while (ticks() < 3) ::usleep(10'000);

  runtime().pause(id_);
  runtime().pause(id_);
  EXPECT_EQ(runtime().get(id_).state, State::paused);
  EXPECT_THROW(runtime().connect(id_), Error);
  const std::uint64_t used = runtime().get(id_).usage.cpu_microseconds;
  ::usleep(100'000);
  EXPECT_EQ(runtime().get(id_).usage.cpu_microseconds, used);

  runtime().resume(id_);
  const int before = ticks();
  const Deadline deadline = Deadline::after(60s);
  while (ticks() == before && !deadline.passed()) ::usleep(10'000);
  EXPECT_GT(ticks(), before);
}

// As in a machine whose clock stands still.
TEST_F(Life, WhatACommandHasLeftOfItsTimeOutlastsAPause) {
  guest::Connection guest(runtime().connect(id_));
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", "until test -e /tmp/go; do sleep 0.01; done"};
  request.timeout_milliseconds = 10'000;
  guest.start(request, {});
  runtime().pause(id_);
  ::usleep(12'000'000);
  runtime().resume(id_);
  sh("touch /tmp/go");
  const auto exited = guest.wait(Deadline::after(60s));
  ASSERT_TRUE(exited);
  EXPECT_FALSE(exited->timed_out);
  // What is left of it passes.
  request.command = {"/bin/sleep", "600"};
  request.timeout_milliseconds = 100;
  guest.start(request, {});
  EXPECT_TRUE(guest.wait(Deadline::after(60s))->timed_out);
}

TEST_F(Life, APausedSandboxIsFoundAgainAndCanBeDestroyed) {
  sh("echo kept > /tmp/kept");
  runtime().pause(id_);
  engine_->kill();
  engine_->start();
  EXPECT_EQ(runtime().get(id_).state, State::paused);
  runtime().resume(id_);
  EXPECT_EQ(sh("cat /tmp/kept").output, "kept\n");

  runtime().pause(id_);
  runtime().destroy(id_);
  EXPECT_THROW(runtime().get(id_), Error);
}

TEST_F(Life, StopGivesATimeAndThenTakesIt) {
  guest::ExecRequest polite;
  polite.command = {
      "/bin/sh", "-c",
      "trap 'echo bye > /tmp/bye; exit' TERM; touch /tmp/polite; while :; do sleep 0.01; done"};
  polite.detached = true;
  guest::ExecRequest stubborn = polite;
  stubborn.command = {"/bin/sh", "-c",
                      "trap '' TERM; touch /tmp/stubborn; while :; do sleep 0.01; done"};
  guest::Connection(runtime().connect(id_)).start(polite, {});
  guest::Connection(runtime().connect(id_)).start(stubborn, {});
  sh("until test -e /tmp/polite && test -e /tmp/stubborn; do sleep 0.01; done");

  guest::Connection(runtime().connect(id_)).stop(3s);

  EXPECT_EQ(sh("cat /tmp/bye; ls /proc | grep -c '^[0-9]'").output, "bye\n4\n");
}

TEST_F(Life, ACommandIsStartedAgainAsOftenAsAskedFor) {
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", "echo run >> /tmp/runs; exit 3"};
  request.detached = true;
  request.restart = guest::Restart::on_failure;
  request.most_restarts = 2;
  guest::Connection(runtime().connect(id_)).start(request, {});
  const Deadline deadline = Deadline::after(60s);
  while (sh("wc -l < /tmp/runs").output != "3\n" && !deadline.passed()) ::usleep(20'000);
  ::usleep(600'000);  // a third restart would have come
  EXPECT_EQ(sh("wc -l < /tmp/runs").output, "3\n");
}

TEST_F(Life, ForksHaveTheFilesAndGoTheirOwnWays) {
  sh("echo one > /workspace/a; rm /etc/hostname /etc/debian_version; mkdir /usr/share/mine; "
     "ln -s a /workspace/link; chown user /workspace/a");

  const std::vector<Sandbox> forks = runtime().fork(id_, 3);

  ASSERT_EQ(forks.size(), 3u);
  for (const Sandbox& fork : forks) {
    EXPECT_EQ(run_shell(runtime(), fork.id,
                        "cat /workspace/link; stat -c %U /workspace/a; ls -d /usr/share/mine; "
                        "ls /etc/debian_version 2>/dev/null; hostname; echo two > /workspace/a")
                  .output,
              "one\nuser\n/usr/share/mine\n" + fork.id + "\n");
  }
  EXPECT_EQ(sh("cat /workspace/a").output, "one\n");
  const std::vector<Sandbox> again = runtime().fork(forks[0].id, 1);
  EXPECT_EQ(run_shell(runtime(), again[0].id, "cat /workspace/a").output, "two\n");
}

TEST_F(Life, ACommitIsAnImage) {
  sh("echo built > /opt/tool");
  const image::Image image = runtime().commit(id_, "local/tool:1");
  EXPECT_EQ(image.layers.size(), 2u);
  runtime().destroy(id_);

  const std::string id = runtime().create({.image = "local/tool:1"}).sandbox.id;
  EXPECT_EQ(run_shell(runtime(), id, "cat /opt/tool").output, "built\n");
  // What a sandbox stands on stays, whatever becomes of its name.
  EXPECT_TRUE(runtime().remove_image("local/tool:1"));
  EXPECT_EQ(run_shell(runtime(), id, "cat /opt/tool").output, "built\n");
  EXPECT_FALSE(runtime().remove_image("local/tool:1"));
  EXPECT_THROW(runtime().create({.image = "local/tool:1"}), Error);
}

TEST_F(Life, VolumesOutliveSandboxesAndSecretsDoNot) {
  SandboxSpec spec{.id = "first"};
  spec.mounts = {{.kind = MountKind::volume, .source = "data", .target = "/data"},
                 {.kind = MountKind::memory, .target = "/scratch", .bytes = 1 << 20},
                 {.kind = MountKind::file, .target = "/run/secret", .content = "hush"}};
  runtime().create(spec);
  EXPECT_EQ(run_shell(runtime(), "first",
                      "echo kept > /data/x; cat /run/secret; echo no > /run/secret; "
                      "head -c 3000000 /dev/zero > /scratch/big; stat -c %s /scratch/big")
                .output,
            "hush1048576\n");
  EXPECT_THROW(runtime().remove_volume("data"), Error);
  runtime().destroy("first");

  spec.id = "second";
  spec.mounts = {
      {.kind = MountKind::volume, .source = "data", .target = "/a/b/data", .read_only = true}};
  runtime().create(spec);
  EXPECT_EQ(
      run_shell(runtime(), "second", "cat /a/b/data/x; touch /a/b/data/y || echo refused").output,
      "kept\nrefused\n");
  runtime().destroy("second");
  runtime().remove_volume("data");
  EXPECT_TRUE(runtime().list_volumes().empty());
}

TEST_F(Life, FoldersOfFilesHaveTheirModesAndNobodyChangesThem) {
  SandboxSpec spec{.id = "files"};
  spec.mounts = {{.kind = MountKind::tree, .target = "/etc/app"}};
  spec.mounts[0].files = {{"plain", "one", 0644}, {"deep/secret", "two", 0440}};
  spec.mounts[0].group = 7;
  runtime().create(spec);
  EXPECT_EQ(
      run_shell(runtime(), "files",
                "cd /etc/app; cat plain deep/secret; stat -c '%a %u %g' deep/secret; "
                "touch new 2>/dev/null || echo refused; chmod 777 plain 2>/dev/null || echo no")
          .output,
      "onetwo440 0 7\nrefused\nno\n");
  runtime().destroy("files");
  spec.mounts[0].files = {{"../out", "", 0444}};
  EXPECT_THROW(runtime().create(spec), Error);
}

TEST_F(Life, FilesThatChangeDoSoForAllAtOnceAndNobodyInsideHasASay) {
  SandboxSpec spec{.id = "live"};
  spec.mounts = {{.kind = MountKind::file, .target = "/etc/resolv.conf", .content = ""},
                 {.kind = MountKind::tree, .target = "/etc/app"},
                 {.kind = MountKind::tree, .target = "/etc/plain"}};
  MountSpec& tree = spec.mounts[1];
  tree.changes = true;
  tree.files = {{"a", "one", 0644}, {"deep/b", "one", 0440}};
  tree.group = 7;
  runtime().create(spec);
  const auto see = [&] {
    return run_shell(runtime(), "live", "cd /etc/app; cat a deep/b; ls; stat -Lc '%a %u %g' deep/b")
        .output;
  };
  EXPECT_EQ(see(), "oneonea\ndeep\n440 0 7\n");
  EXPECT_EQ(run_shell(runtime(), "live",
                      "cd /etc/app; for it in 'rm ..data' 'ln -sfn /etc ..data' 'mv a b' "
                      "'touch ..data/x' 'chmod 777 .'; do $it 2>/dev/null && echo $it; done")
                .output,
            "");
  tree.files = {{"a", "two", 0644}, {"deep/b", "two", 0440}, {"c", "", 0644}};
  runtime().replace_files("live", tree);
  EXPECT_EQ(see(), "twotwoa\nc\ndeep\n440 0 7\n");
  engine_->kill();
  engine_->start();
  tree.files.pop_back();
  tree.files[0].content = "three";
  runtime().replace_files("live", tree);
  EXPECT_EQ(see(), "threetwoa\ndeep\n440 0 7\n");

  MountSpec other = tree;
  other.target = "/etc/plain";
  EXPECT_THROW(runtime().replace_files("live", other), Error);
  EXPECT_THROW(runtime().replace_files("nobody", tree), Error);
  other = tree;
  other.files = {{"../../out", "", 0444}};
  EXPECT_THROW(runtime().replace_files("live", other), Error);
  runtime().destroy("live");
}

TEST_F(Life, APartOfAVolumeIsNoWayOut) {
  SandboxSpec spec{.id = "part"};
  spec.mounts = {{.kind = MountKind::volume, .source = "whole", .target = "/part"}};
  spec.mounts[0].sub_path = "a/b";
  spec.mounts[0].mode = 0777;
  runtime().create(spec);
  EXPECT_EQ(run_shell(runtime(), "part", "stat -c %a /part; echo kept > /part/x").output, "777\n");
  runtime().destroy("part");
  spec.mounts[0].sub_path.clear();
  runtime().create(spec);
  EXPECT_EQ(run_shell(runtime(), "part", "cat /part/a/b/x; ln -s /etc /part/link").output,
            "kept\n");
  runtime().destroy("part");
  for (const char* path : {"link", "link/ssl", "../x", "/etc"}) {
    spec.mounts[0].sub_path = path;
    EXPECT_THROW(runtime().create(spec), Error) << path;
  }
  runtime().remove_volume("whole");
}

TEST_F(Life, MountsThatMakeNoSenseAreRefusedByName) {
  const auto refused = [](const MountSpec& mount) {
    SandboxSpec spec;
    spec.mounts = {mount};
    try {
      runtime().create(spec);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("it was made");
  };
  EXPECT_NE(refused({.source = "../x", .target = "/x"}).find("'../x'"), std::string::npos);
  EXPECT_NE(refused({.source = "x", .target = "x/../y"}).find("'x/../y'"), std::string::npos);
  EXPECT_NE(refused({.source = "x", .target = "/proc/sys"}).find("'/proc/sys'"), std::string::npos);
  EXPECT_NE(refused({.kind = MountKind::host, .source = "/etc", .target = "/x"}).find("'/etc'"),
            std::string::npos);
  EXPECT_NE(refused({.kind = MountKind::memory, .target = "/x", .bytes = 1}).find("too small"),
            std::string::npos);
}

TEST_F(Life, TheRuntimeItselfIsConfined) {
  std::ifstream file("/proc/" + std::to_string(engine_->pid()) + "/status");
  const std::string status(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(status.find("NoNewPrivs:\t1\n"), std::string::npos) << status;
  EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos) << status;
  const std::size_t at = status.find("CapBnd:\t") + 8;
  const auto bounding =
      linux::CapabilitySet::from_bits(std::stoull(status.substr(at, 16), nullptr, 16));
  for (const int capability : {CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYS_TIME,
                               CAP_NET_RAW, CAP_BPF, CAP_PERFMON, CAP_SYSLOG}) {
    EXPECT_FALSE(bounding.has(capability)) << capability;
  }
}

TEST_F(Life, ANetworkIsOnlyForThoseWhoAskedAndKnowsItsRules) {
  if (runtime().hello().network.empty()) GTEST_SKIP() << "this machine has no nftables";
  EXPECT_EQ(sh("ls /sys/class/net").output, "lo\n");
  EXPECT_THROW(runtime().set_policy(id_, {}), Error);

  SandboxSpec spec{.id = "linked"};
  spec.network = network::Policy{.mode = network::Mode::world};
  const Sandbox sandbox = runtime().create(spec).sandbox;
  EXPECT_FALSE(sandbox.address.empty());
  EXPECT_NE(run_shell(runtime(), "linked", "cat /etc/hosts").output.find(sandbox.address),
            std::string::npos);
  engine_->kill();
  engine_->start();
  EXPECT_EQ(runtime().get("linked").address, sandbox.address);
  runtime().set_policy("linked", {.mode = network::Mode::none});
}

}  // namespace
}  // namespace hearth::runtime
