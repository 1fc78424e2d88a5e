// Sandboxes that share a network, a host name and message queues, and nothing else.
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/testing.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// What the kernel decides about packets by, if there is a program here that tells.
std::string firewall() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      ::popen("nft list ruleset 2>/dev/null", "r"), ::pclose);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
  return text;
}

class Joined : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEED_ROOT();
    engine_ = std::make_unique<TestEngine>();
  }

  RuntimeClient& runtime() { return engine_->runtime(); }
  std::string sh(const std::string& id, const std::string& script) {
    const Outcome outcome = run_shell(runtime(), id, script);
    return outcome.output + outcome.error;
  }
  Sandbox create(const std::string& id, const std::string& joins = "") {
    SandboxSpec spec{.id = id, .hostname = joins.empty() ? "pod" : "", .joins = joins};
    if (joins.empty()) spec.network = network::Policy{.mode = network::Mode::world};
    return runtime().create(spec).sandbox;
  }
  // Answers "here" to whoever connects, for as long as the sandbox lives.
  void serve(const std::string& id, int port) {
    const std::string script = fmt::format(
        "import socket, sys\n"
        "s = socket.create_server(('0.0.0.0', {}))\n"
        "open('/tmp/serving', 'w')\n"
        "while True:\n"
        "  c, _ = s.accept(); c.sendall(b'here'); c.close()\n",
        port);
    guest::ExecRequest request;
    request.command = {"python3", "-c", script};
    request.detached = true;
    guest::Connection(runtime().connect(id)).start(request, {});
    EXPECT_EQ(sh(id,
                 "for i in $(seq 500); do test -e /tmp/serving && echo up && break; "
                 "sleep 0.02; done"),
              "up\n");
  }
  std::string ask(const std::string& id, const std::string& address, int port) {
    return sh(id, fmt::format("python3 -c \"import socket; print(socket.create_connection(('{}', "
                              "{}), 5).recv(9).decode())\" 2>&1 | tail -1",
                              address, port));
  }
  static std::string inode(const Sandbox& sandbox, const char* type) {
    return std::filesystem::read_symlink(fmt::format("/proc/{}/ns/{}", sandbox.pid, type));
  }
  void die(const std::string& id) {
    linux::Pidfd::find(runtime().get(id).pid)->send_signal(SIGKILL);
    const Deadline deadline = Deadline::after(10s);
    while (runtime().get(id).state != State::exited && !deadline.passed()) ::usleep(2000);
    ASSERT_EQ(runtime().get(id).state, State::exited);
  }

  std::unique_ptr<TestEngine> engine_;
};

TEST_F(Joined, ShareNetworkNameAndQueuesAndNothingElse) {
  const Sandbox first = create("first");
  const Sandbox second = create("second", "first");
  EXPECT_EQ(second.address, first.address);
  EXPECT_FALSE(second.address.empty());
  for (const char* type : {"net", "ipc", "uts"})
    EXPECT_EQ(inode(first, type), inode(second, type)) << type;
  for (const char* type : {"user", "mnt", "pid", "cgroup"})
    EXPECT_NE(inode(first, type), inode(second, type)) << type;

  EXPECT_EQ(sh("second", "hostname; grep -c ' pod$' /etc/hosts"), "pod\n1\n");
  EXPECT_EQ(sh("second", "ls /sys/class/net | tr '\\n' ' '"), "eth0 lo ");
  serve("first", 80);
  EXPECT_EQ(ask("second", "127.0.0.1", 80), "here\n");
  EXPECT_EQ(ask("second", first.address, 80), "here\n");
  // What the first could bind to, the second can.
  serve("second", 81);
  EXPECT_EQ(ask("first", "127.0.0.1", 81), "here\n");
}

TEST_F(Joined, ShareSystemVAndPosixQueues) {
  create("first");
  create("second", "first");
  EXPECT_NE(sh("first", "ipcmk -Q -p 0666").find("Message queue id"), std::string::npos);
  EXPECT_EQ(sh("second", "ipcs -q | grep -c 666"), "1\n");
  const std::string use =
      "import ctypes as c, os\n"
      "l = c.CDLL(None, use_errno=True)\n"
      "q = l.mq_open(b'/news', {}, 0o666, None)\n"
      "assert q >= 0, os.strerror(c.get_errno())\n";
  const auto python = [&](const std::string& id, const std::string& flags,
                          const std::string& what) {
    return sh(id, "umask 0; python3 -c \"" + fmt::format(fmt::runtime(use), flags) + what + "\"");
  };
  EXPECT_EQ(python("first", "os.O_CREAT | os.O_RDWR", "assert l.mq_send(q, b'hi', 2, 1) == 0"), "");
  EXPECT_EQ(python("second", "os.O_RDWR",
                   "b = c.create_string_buffer(65536)\n"
                   "assert l.mq_receive(q, b, 65536, None) == 2\nprint(b.value.decode())"),
            "hi\n");
  EXPECT_EQ(sh("second", "ls /dev/mqueue"), "news\n");
}

TEST_F(Joined, HaveNoPowerOverEachOther) {
  create("first");
  create("second", "first");
  run_shell(runtime(), "first", "sleep 1001 &");
  run_shell(runtime(), "second", "sleep 1002 &");
  for (const auto& [id, others] :
       {std::pair{"first", "[s]leep 1002"}, {"second", "[s]leep 1001"}}) {
    EXPECT_EQ(sh(id, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 100'"), "1\n");
    EXPECT_EQ(sh(id, fmt::format("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '{}'", others)),
              "0\n");
    // Links, addresses and the host's name are nobody's to change.
    EXPECT_NE(sh(id, "ip link set lo down; hostname other; hostname"), "other\n");
    EXPECT_EQ(sh(id, "hostname"), "pod\n");
    EXPECT_NE(sh(id, "echo 1 > /proc/sys/net/ipv4/ip_forward").find("Read-only"),
              std::string::npos);
  }
  // One that is told who is at the other end of a socket cannot reach it by that.
  const std::string listen =
      "import socket, struct, os, signal, ctypes\n"
      "s = socket.socket(socket.AF_UNIX); s.bind('\\0meet'); s.listen(1)\n"
      "open('/tmp/serving', 'w')\n"
      "c, _ = s.accept()\n"
      "pid = struct.unpack('3i', c.getsockopt(1, 17, 12))[0]\n"
      "out = [str(pid)]\n"
      "try:\n"
      "  f = struct.unpack('i', c.getsockopt(1, 77, 4))[0]\n"
      "  l = ctypes.CDLL(None, use_errno=True)\n"
      "  out.append(str(l.syscall(424, f, 9, None, 0)))\n"
      "  out.append(str(l.syscall(438, f, 0, 0)))\n"
      "except OSError: out += ['-1', '-1']\n"
      "c.sendall(' '.join(out).encode())\n"
      "c.close()\n";
  guest::ExecRequest request;
  request.command = {"python3", "-c", listen};
  request.detached = true;
  guest::Connection(runtime().connect("first")).start(request, {});
  sh("first", "for i in $(seq 500); do test -e /tmp/serving && break; sleep 0.02; done");
  EXPECT_EQ(sh("second",
               "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); "
               "s.connect('\\0meet'); print(s.recv(99).decode())\""),
            "0 -1 -1\n");
}

TEST_F(Joined, TheNetworkGoesWithTheLast) {
  const Sandbox first = create("first");
  create("second", "first");
  runtime().destroy("first");
  serve("second", 8080);
  EXPECT_EQ(ask("second", first.address, 8080), "here\n");
  EXPECT_EQ(create("third", "second").address, first.address);
  EXPECT_EQ(ask("third", "127.0.0.1", 8080), "here\n");
  // The address is taken for as long as anybody has it.
  EXPECT_NE(create("stranger").address, first.address);
  EXPECT_THROW(create("fourth", "first"), Error);
}

TEST_F(Joined, OneThatDiedCanBeReplaced) {
  const Sandbox first = create("first");
  die("first");
  const Sandbox again = create("again", "first");
  EXPECT_EQ(again.address, first.address);
  EXPECT_EQ(sh("again", "hostname"), "pod\n");
  runtime().destroy("first");
  serve("again", 80);
  EXPECT_EQ(ask("again", first.address, 80), "here\n");
}

TEST_F(Joined, RulesAreEverybodys) {
  const Sandbox first = create("first");
  create("second", "first");
  if (firewall().find(first.address) == std::string::npos) GTEST_SKIP() << "needs nft to look";
  runtime().set_policy("second", {.mode = network::Mode::none});
  EXPECT_EQ(firewall().find(first.address), std::string::npos);
  runtime().destroy("second");
  engine_->kill();
  engine_->start();
  // The first has come back with the rules that the second was given.
  EXPECT_EQ(runtime().get("first").address, first.address);
  EXPECT_EQ(firewall().find(first.address), std::string::npos);
  runtime().set_policy("first", {.mode = network::Mode::world});
  EXPECT_NE(firewall().find(first.address), std::string::npos);
}

TEST_F(Joined, SurviveARestart) {
  const Sandbox first = create("first");
  create("second", "first");
  serve("first", 80);
  engine_->kill();
  engine_->start();
  EXPECT_EQ(runtime().hello().adopted, 2u);
  EXPECT_EQ(ask("second", "127.0.0.1", 80), "here\n");
  EXPECT_EQ(create("third", "second").address, first.address);
  EXPECT_EQ(ask("third", "127.0.0.1", 80), "here\n");
  runtime().destroy("first");
  runtime().destroy("third");
  EXPECT_NE(create("stranger").address, first.address);
  serve("second", 80);
  EXPECT_EQ(ask("second", first.address, 80), "here\n");

  // One dies while nobody looks: the other brings back what they share.
  create("fourth", "second");
  const int dying = runtime().get("second").pid;
  engine_->kill();
  ::kill(dying, SIGKILL);
  engine_->start();
  EXPECT_EQ(runtime().get("fourth").address, first.address);
}

TEST_F(Joined, StandStillEachByItself) {
  create("first");
  create("second", "first");
  runtime().pause("first");
  EXPECT_EQ(sh("second", "echo on"), "on\n");
  EXPECT_EQ(create("third", "first").state, State::running);
  runtime().resume("first");
  EXPECT_EQ(sh("first", "echo on"), "on\n");
}

TEST_F(Joined, WhatCannotBeIsRefused) {
  const auto complaint = [&](auto what) -> std::string {
    try {
      what();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint([&] { create("second", "nobody"); }), "there is no sandbox 'nobody'");
  EXPECT_EQ(complaint([&] { create("second", "second"); }),
            "'second' is no sandbox that another could join");
  EXPECT_EQ(complaint([&] { create("second", "../x"); }),
            "'../x' is no sandbox that another could join");
  create("first");
  create("second", "first");
  for (const char* id : {"first", "second"}) {
    EXPECT_NE(complaint([&] { runtime().fork(id, 1); }).find("shares its network with another"),
              std::string::npos);
  }
  EXPECT_THROW(create("second", "first"), Error);
  // Two that wait for each other do not wait for ever.
  std::jthread one([&] {
    complaint([&] { RuntimeClient(engine_->state_dir()).create({.id = "a", .joins = "b"}); });
  });
  std::jthread two([&] {
    complaint([&] { RuntimeClient(engine_->state_dir()).create({.id = "b", .joins = "a"}); });
  });
}

TEST_F(Joined, LeaveNothingBehind) {
  const HostState before = look_at_host();
  const std::string rules = firewall();
  for (int round = 0; round < 50; ++round) {
    create("first");
    create("second", "first");
    // Either may be the last; now and then a third comes in the place of a dead one.
    if (round % 10 == 0) {
      die("first");
      create("third", "first");
    }
    runtime().destroy(round % 2 == 0 ? "first" : "second");
    runtime().destroy(round % 2 == 0 ? "second" : "first");
    runtime().destroy("third");
  }
  const Deadline deadline = Deadline::after(60s);
  HostState after = look_at_host();
  while (!(after == before) && !deadline.passed()) {  // the kernel removes links in its own time
    ::usleep(50'000);
    after = look_at_host();
  }
  EXPECT_EQ(after.links, before.links);
  EXPECT_EQ(after.cgroups, before.cgroups);
  EXPECT_EQ(after.namespaces, before.namespaces);
  EXPECT_EQ(after.guests, before.guests);
  EXPECT_EQ(after.mounts, before.mounts);
  EXPECT_EQ(after.folders, before.folders);
  EXPECT_EQ(firewall(), rules);
  const auto open = std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", engine_->pid()));
  EXPECT_LT(std::distance(begin(open), end(open)), 200);  // namespaces that somebody forgot
}

}  // namespace
}  // namespace hearth::runtime
