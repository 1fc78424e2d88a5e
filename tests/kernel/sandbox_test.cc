// What a sandbox is, seen from inside and outside: real runtime, real kernel.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "kernel/testing.h"
#include "linux/capabilities.h"

namespace hearth::runtime {
namespace {

using Sandbox = SandboxTest;

TEST_F(Sandbox, RunsAPythonProgram) {
  guest::ExecRequest request;
  request.command = {"python3", "-c", "print(6*7)"};

  const Outcome outcome = run_in(runtime().connect(id_), request);

  EXPECT_EQ(outcome.output, "42\n");
  EXPECT_EQ(outcome.exited.status, linux::ExitStatus{});
}

TEST_F(Sandbox, IsRootOfItsOwnHostOnly) {
  EXPECT_EQ(sh("id -u; id -g").output, "0\n0\n");
  EXPECT_EQ(sh("hostname").output, id_ + "\n");
  // Its root is somebody without rights out here.
  const std::string map = sh("cat /proc/self/uid_map").output;
  EXPECT_EQ(map.find(" 0          0 "), std::string::npos) << map;
  const int pid = runtime().get(id_).pid;
  struct stat status{};
  ASSERT_EQ(::stat(fmt::format("/proc/{}/root", pid).c_str(), &status), 0);
  EXPECT_GE(status.st_uid, 0x1000'0000u);
}

TEST_F(Sandbox, HasNamespacesOfItsOwn) {
  const int pid = runtime().get(id_).pid;
  for (const char* kind : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
    const auto theirs = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/{}", pid, kind));
    EXPECT_NE(theirs, std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind))) << kind;
  }
}

TEST_F(Sandbox, DoesNotSeeWhichCgroupsItIsIn) {
  EXPECT_EQ(sh("cut -d: -f3 /proc/self/cgroup | sort -u").output, "/\n");
}

TEST_F(Sandbox, SeesItsOwnProcessesOnly) {
  EXPECT_EQ(sh("cat /proc/1/comm").output, "hearth-guest\n");
  const std::string processes = sh("ls -d /proc/[0-9]* | wc -l").output;
  EXPECT_LE(std::stoi(processes), 6) << processes;
}

TEST_F(Sandbox, SeesNothingOfTheHostButUsr) {
  EXPECT_EQ(sh("ls /root /home").output, "/home:\nuser\n\n/root:\n");
  EXPECT_NE(sh("cat /etc/shadow").exited.status.code, 0);
  EXPECT_EQ(
      sh("ls / | grep -v '^lib' | tr '\\n' ' '").output,
      "bin code dev etc home media mnt opt proc root run sbin srv sys tmp usr var workspace ");
  EXPECT_EQ(sh("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '").output, "lo\n");
  // The layers it stands on, and the folder it was built in, are out of sight.
  EXPECT_EQ(sh("grep -c hearth-test /proc/self/mountinfo").output, "0\n");
}

TEST_F(Sandbox, HidesWhatNotEverybodyMayRead) {
  const std::string secret = fmt::format("/usr/local/hearth-secret-{}", ::getpid());
  {
    std::ofstream file(secret);
    file << "secret";
  }
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  TestEngine other;  // images are made at start
  const std::string id = other.runtime().create({}).sandbox.id;

  const Outcome outcome = run_shell(other.runtime(), id, "cat " + secret);

  std::filesystem::remove(secret);
  EXPECT_NE(outcome.exited.status.code, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST_F(Sandbox, CallsPythonAsProgramsDoAndLetsPipInstall) {
  if (sh("command -v python3").exited.status.code != 0)
    GTEST_SKIP() << "there is no python3 on this machine";
  EXPECT_EQ(sh("python -c 'print(1)'").output, "1\n");
  EXPECT_EQ(sh("find /usr/lib -maxdepth 2 -name EXTERNALLY-MANAGED").output, "");
}

TEST_F(Sandbox, LetsItsUserInstallProgramsWhereEverybodyFindsThem) {
  const Outcome outcome =
      sh("printf '#!/bin/sh\\necho here' > /usr/local/bin/mine && chmod +x /usr/local/bin/mine && "
         "mine; cd /usr/local && find . -maxdepth 3 -type d ! -writable; "
         "echo x > /usr/bin/other || echo no",
         "user");
  EXPECT_EQ(outcome.output, "here\nno\n") << outcome.error;
}

TEST_F(Sandbox, LetsItsUserInstallPackagesOfNpm) {
  if (sh("test -e /usr/lib/node_modules/npm").exited.status.code != 0)
    GTEST_SKIP() << "there is no npm of NodeSource on this machine";
  const Outcome outcome =
      sh("cd /tmp && echo '{\"name\":\"mine\",\"version\":\"1.0.0\",\"bin\":\"mine.js\"}' > "
         "package.json && printf '#!/bin/sh\necho here' > mine.js && chmod +x mine.js && "
         "npm install --silent --global --offline . && mine",
         "user");
  EXPECT_TRUE(outcome.output.ends_with("here\n")) << outcome.output << outcome.error;
}

TEST_F(Sandbox, LetsRootBecomeAnybodyAndNobodyElse) {
  EXPECT_EQ(sh("su user -c 'id -un'; su - user -c 'pwd'").output, "user\n/home/user\n");
  EXPECT_NE(sh("su -c 'id -un'", "user").exited.status.code, 0);
}

TEST_F(Sandbox, WritesWithoutTouchingTheHost) {
  EXPECT_EQ(
      sh("echo x > /usr/bin/hearth-new && chmod 755 /usr/bin/hearth-new && rm /usr/bin/env && "
         "echo y >> /etc/passwd && touch /root/a /tmp/b /workspace/c && cat /usr/bin/hearth-new")
          .output,
      "x\n");
  EXPECT_FALSE(std::filesystem::exists("/usr/bin/hearth-new"));
  EXPECT_TRUE(std::filesystem::exists("/usr/bin/env"));
  // And it stays: the next command finds it.
  EXPECT_EQ(sh("cat /usr/bin/hearth-new").output, "x\n");
}

TEST_F(Sandbox, KeepsItsImageAsItIsIfAskedTo) {
  SandboxSpec spec{.id = "read-only", .read_only_root = true};
  spec.mounts = {{.kind = MountKind::memory, .target = "/tmp", .bytes = 1 << 20},
                 {.kind = MountKind::volume, .source = "data", .target = "/srv/new/data"}};
  runtime().create(spec);
  const auto sh = [&](const std::string& script) {
    const Outcome outcome = run_shell(runtime(), spec.id, script);
    return outcome.output + outcome.error;
  };
  for (const char* folder : {"/", "/etc", "/usr", "/usr/bin", "/var", "/root", "/srv/new", "/dev"})
    EXPECT_NE(sh(fmt::format("touch {}/x", folder)).find("Read-only file system"),
              std::string::npos)
        << folder;
  EXPECT_EQ(sh("for f in /tmp /srv/new/data /dev/shm; do echo $f > $f/x; cat $f/x; done"),
            "/tmp\n/srv/new/data\n/dev/shm\n");
  // What a sandbox has anyway is there all the same.
  EXPECT_EQ(sh("hostname; grep -c read-only /etc/hosts; cat /dev/null; ls /proc/1 > /dev/null"),
            "read-only\n1\n");
  EXPECT_NE(sh("mount -o remount,rw / 2>&1; mount -o remount,bind,rw /usr 2>&1; touch /usr/x")
                .find("Read-only file system"),
            std::string::npos);
  // A fork is as its original.
  const std::string fork = runtime().fork(spec.id, 1).at(0).id;
  EXPECT_NE(run_shell(runtime(), fork, "touch /x").exited.status.code, 0);
  runtime().destroy(fork);
  runtime().destroy(spec.id);
  runtime().remove_volume("data");
}

TEST_F(Sandbox, LeavesAVolumeOnUsrWritableOnAReadOnlyRoot) {
  SandboxSpec spec{.id = "hidden-usr", .read_only_root = true};
  spec.mounts = {{.kind = MountKind::memory, .target = "/usr", .bytes = 1 << 20}};
  runtime().create(spec);
  runtime().destroy(spec.id);
}

TEST_F(Sandbox, CannotGainPrivileges) {
  EXPECT_EQ(sh("grep NoNewPrivs /proc/self/status | tr -d '\\t'").output, "NoNewPrivs:1\n");
  EXPECT_EQ(sh("grep Seccomp: /proc/self/status | tr -d '\\t'").output, "Seccomp:2\n");
  EXPECT_EQ(sh("grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status | cut -f2 | sort -u").output,
            fmt::format("{:016x}\n", linux::default_capabilities().bits()));
  EXPECT_NE(sh("mount -t tmpfs none /mnt").exited.status.code, 0);
  EXPECT_NE(sh("unshare -U true").exited.status.code, 0);
  EXPECT_NE(sh("mknod /tmp/sda b 8 0").exited.status.code, 0);
  EXPECT_NE(sh("echo 1 > /proc/sys/kernel/panic").exited.status.code, 0);
  EXPECT_NE(sh("echo b > /proc/sysrq-trigger").exited.status.code, 0);
  EXPECT_NE(sh("readlink /proc/1/fd/3").exited.status.code, 0);
  EXPECT_NE(sh("cat /proc/1/mem").exited.status.code, 0);
  EXPECT_NE(sh("cat /proc/1/environ").exited.status.code, 0);
}

TEST_F(Sandbox, GoesBeforeTheEngineWhenTheMachineHasNoMemory) {
  const int score = std::stoi(sh("cat /proc/self/oom_score_adj").output);
  EXPECT_EQ(score, std::max(100, std::stoi(linux::read_file("/proc/self/oom_score_adj"))));
}

TEST_F(Sandbox, HasTheDevicesProgramsExpect) {
  EXPECT_EQ(sh("echo x > /dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; "
               "ls -l /dev/fd | grep -c proc; touch /dev/shm/x && echo shm")
                .output,
            "4\n4\n1\nshm\n");
}

TEST_F(Sandbox, RunsAsTheUserAskedFor) {
  const Outcome outcome =
      sh("id -un; pwd; touch mine && stat -c %U mine; cat /etc/shadow 2>&1 | head -c 3", "user");

  EXPECT_EQ(outcome.output.substr(0, outcome.output.rfind("cat")), "user\n/home/user\nuser\n");
}

TEST_F(Sandbox, LoginShellsFindWhatAUserInstalledForHimself) {
  guest::ExecRequest request;
  request.command = {
      "/bin/bash", "-l", "-c",
      "stat -c '%U %a' ~/.profile ~/.bashrc; mkdir -p ~/.local/bin ~/bin; "
      "for name in .local/bin/mine bin/own; do printf '#!/bin/sh\\necho found\\n' > ~/$name; "
      "chmod +x ~/$name; done; mine; own; bash -l -c 'echo $PATH' | tr : '\\n' | grep -c $HOME; "
      "sed -i '1i export SET=there' ~/.bashrc; bash -l -c 'echo $SET'; "
      "echo 'echo seen' >> ~/.bashrc; bash -l -c true; bash -i -c true 2>/dev/null"};
  for (const char* user : {"user", "root"}) {
    request.user = user;
    EXPECT_EQ(run_in(runtime().connect(id_), request).output,
              fmt::format("{0} 644\n{0} 644\nfound\nfound\n2\nthere\nseen\n", user));
  }
}

TEST_F(Sandbox, StreamsInOrder) {
  const Outcome outcome = sh("i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done");
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += fmt::format("{}\n", i);
  EXPECT_EQ(outcome.output, expected);
}

TEST_F(Sandbox, StreamsWhileTheCommandRuns) {
  guest::Connection connection(runtime().connect(id_));
  linux::Pipe in = linux::make_pipe();
  linux::Pipe out = linux::make_pipe();
  guest::ExecRequest request;
  request.command = {"cat"};
  connection.start(request, {.input = in.read.get(), .output = out.write.get(), .error = -1});

  for (const char* word : {"one", "two", "three"}) {
    linux::write_all(in.write.get(), word);
    char buffer[16];
    const ssize_t got = ::read(out.read.get(), buffer, sizeof buffer);  // it is still running
    EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(got)), word);
  }
}

TEST_F(Sandbox, GivesAHundredMebibytesWithoutGrowing) {
  const int guest_pid = runtime().get(id_).pid;
  const auto resident = [](int pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
    }
    return 0L;
  };
  sh("true");
  const long guest_before = resident(guest_pid);
  const long runtime_before = resident(engine_->pid());

  guest::Connection connection(runtime().connect(id_));
  linux::Pipe out = linux::make_pipe();
  guest::ExecRequest request;
  request.command = {"head", "-c", "104857600", "/dev/zero"};
  connection.start(request, {.input = -1, .output = out.write.get(), .error = -1});
  out.write.reset();
  std::size_t total = 0;
  std::vector<char> buffer(1 << 16);
  ssize_t got = 0;
  while ((got = ::read(out.read.get(), buffer.data(), buffer.size())) > 0)
    total += static_cast<std::size_t>(got);

  EXPECT_EQ(total, 104857600u);
  EXPECT_EQ(connection.wait()->status.code, 0);
  EXPECT_LT(resident(guest_pid) - guest_before, 256);  // KiB
  EXPECT_LT(resident(engine_->pid()) - runtime_before, 256);
}

TEST_F(Sandbox, RefusesNonsense) {
  const auto code_of = [&](const SandboxSpec& spec) {
    try {
      runtime().create(spec);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  };
  EXPECT_EQ(code_of({.id = "../etc"}), Code::invalid);
  EXPECT_EQ(code_of({.id = id_}), Code::already_exists);
  EXPECT_EQ(code_of({.image = "no-such-image"}), Code::not_found);
  EXPECT_EQ(code_of({.environment = {"no-value"}}), Code::invalid);
  EXPECT_EQ(code_of({.limits = {.memory_bytes = 1}}), Code::invalid);
  EXPECT_THROW(runtime().connect("nobody"), Error);
  EXPECT_THROW(runtime().get("nobody"), Error);
  EXPECT_NO_THROW(runtime().destroy("nobody"));
}

}  // namespace
}  // namespace hearth::runtime
