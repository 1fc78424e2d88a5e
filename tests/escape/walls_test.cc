// One attempt for each wall between a sandbox and the host, made by root inside, and by an ordinary
// user where that is another question.
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "escape/testing.h"
#include "linux/capabilities.h"

namespace hearth::escape {
namespace {

using Escape = EscapeTest;

TEST_F(Escape, NothingCanBeMounted) {
  EXPECT_REFUSED(as_root({"mount"}));
  EXPECT_REFUSED(as_user({"mount"}));
}

TEST_F(Escape, NoMountCanBeChangedOrTakenAway) {
  EXPECT_REFUSED(as_root({"change-mounts"}));
}

TEST_F(Escape, ControlGroupsAreOutOfReach) {
  EXPECT_REFUSED(as_root({"control-groups"}));
}

TEST_F(Escape, TheRootCannotBeLeft) {
  EXPECT_REFUSED(as_root({"leave-root"}));
  EXPECT_REFUSED(as_user({"leave-root"}));
}

TEST_F(Escape, WhatTheRootCoversCannotBeSeen) {
  EXPECT_REFUSED(as_root({"covered-root"}));
  EXPECT_REFUSED(as_user({"covered-root"}));
}

std::string names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, " "));
}

// What somebody would find who could do everything in there: the host takes the root away, and
// looks.
TEST_F(Escape, WhatTheRootCoversIsNothingOfTheHost) {
  const auto process = linux::Pidfd::find(runtime().get(id_).pid);
  ASSERT_TRUE(process);
  linux::Pipe told = linux::make_pipe();
  const pid_t looker = ::fork();
  if (looker == 0) {
    const bool looks = ::setns(process->fd(), CLONE_NEWNS) == 0 &&
                       ::umount2("/", MNT_DETACH) == 0 && ::setns(process->fd(), CLONE_NEWNS) == 0;
    std::string text = looks ? names_in("/") : std::string("cannot look");
    std::string processes = names_in("/proc");
    processes.resize(
        std::min(processes.find_first_of("abcdefghijklmnopqrstuvwxyz"), processes.size()));
    text += "\nprocesses: " + processes + "\nlinks: " + names_in("/sys/class/net");
    linux::write_all(told.write.get(), text);
    ::_exit(0);
  }
  told.write.reset();
  ::waitpid(looker, nullptr, 0);
  char text[4096];
  const ssize_t got = ::read(told.read.get(), text, sizeof text);

  EXPECT_EQ(std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0),
            "closed closed-file devices nothing proc stage sys\nprocesses: \nlinks: ");
}

TEST_F(Escape, ThereAreNoNewNamespaces) {
  EXPECT_REFUSED(as_root({"new-namespaces"}));
  EXPECT_REFUSED(as_user({"new-namespaces"}));
}

TEST_F(Escape, NoOtherNamespaceCanBeEntered) {
  EXPECT_REFUSED(as_root({"other-namespaces"}));
  EXPECT_REFUSED(as_user({"other-namespaces"}));
}

TEST_F(Escape, PidOneCannotBeRead) {
  EXPECT_REFUSED(as_root({"read-pid-one"}));
  EXPECT_REFUSED(as_user({"read-pid-one"}));
}

TEST_F(Escape, PidOneCannotBeTraced) {
  EXPECT_REFUSED(as_root({"trace-pid-one"}));
  EXPECT_REFUSED(as_user({"trace-pid-one"}));
}

TEST_F(Escape, PidOneCannotBeHurt) {
  EXPECT_REFUSED(as_root({"hurt-pid-one"}));
  EXPECT_TRUE(is_alive());
}

TEST_F(Escape, ThereAreNoKeyrings) {
  EXPECT_REFUSED(as_root({"keyrings"}));
}

TEST_F(Escape, DangerousFeaturesOfTheKernelAreRefused) {
  EXPECT_REFUSED(as_root({"features"}));
  EXPECT_REFUSED(as_user({"features"}));
}

TEST_F(Escape, TheMachineCannotBeManaged) {
  EXPECT_REFUSED(as_root({"machine"}));
}

TEST_F(Escape, FilesCannotBeOpenedByNumber) {
  EXPECT_REFUSED(as_root({"handles"}));
}

TEST_F(Escape, OtherTablesOfSystemCallsAreNoWayRound) {
  EXPECT_REFUSED(as_root({"tables"}));
}

TEST_F(Escape, KernelSettingsCannotBeWritten) {
  EXPECT_REFUSED(as_root({"write-proc"}));
  EXPECT_REFUSED(as_user({"write-proc"}));
}

TEST_F(Escape, NothingInSysCanBeWritten) {
  EXPECT_REFUSED(as_root({"write-sys"}));
}

TEST_F(Escape, FilesOfTheKernelTellNothing) {
  EXPECT_REFUSED(as_root({"kernel-files"}));
}

TEST_F(Escape, ThereAreNoDevicesButTheHarmless) {
  EXPECT_REFUSED(as_root({"devices"}));
}

TEST_F(Escape, OnlyOrdinarySocketsCanBeMade) {
  EXPECT_REFUSED(as_root({"socket-families"}));
}

TEST_F(Escape, TheNetworkCannotBeChanged) {
  EXPECT_REFUSED(as_root({"change-network"}));
}

TEST_F(Escape, NothingCanBeTypedIntoATerminal) {
  guest::ExecRequest request;
  request.command = {kPayload, "type"};
  request.terminal = true;
  guest::Connection connection(runtime().connect(id_));
  const guest::Connection::Process process = connection.start(request, {});
  const auto exited = connection.wait(Deadline::after(std::chrono::seconds(60)));
  char text[4096];
  const ssize_t got = ::read(process.terminal.get(), text, sizeof text);

  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.code, 1)
      << std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0);
}

// Those of SECURITY.md, by number, so that a thirteenth is noticed here too.
TEST_F(Escape, CommandsHaveTheDocumentedPrivilegesOnly) {
  std::uint64_t bits = 0;
  for (const int number :
       {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
        CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_CHROOT, CAP_SETFCAP}) {
    bits |= std::uint64_t{1} << number;
  }
  EXPECT_REFUSED(as_root({"oneself", fmt::format("{:016x}", bits)}));
  EXPECT_REFUSED(as_user({"oneself", fmt::format("{:016x}", bits)}));
}

TEST_F(Escape, ASetuidProgramGivesNothing) {
  EXPECT_REFUSED(as_root({"prepare-setuid", "/tmp/setuid"}));
  EXPECT_EQ(sh("stat -c %a%u /tmp/setuid").output, "67550\n");
  guest::ExecRequest request;
  request.command = {"/tmp/setuid", "be-root"};
  request.user = "1000:1000";
  const runtime::Outcome outcome = runtime::run_in(runtime().connect(id_), request);
  EXPECT_EQ(outcome.exited.status.code, 1) << outcome.output << outcome.error;
}

TEST_F(Escape, ACrashLeavesNoCore) {
  const std::string pattern = linux::read_file("/proc/sys/kernel/core_pattern");
  EXPECT_REFUSED(as_root({"core"}));
  EXPECT_EQ(linux::read_file("/proc/sys/kernel/core_pattern"), pattern);
  for (const auto& entry : fs::directory_iterator("/proc/self/cwd"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("core.")) << entry;
}

TEST_F(Escape, CommandsInheritNoDescriptors) {
  EXPECT_REFUSED(as_root({"descriptors"}));
  EXPECT_REFUSED(as_user({"descriptors"}));
}

// What the engine was started with is nobody's business inside.
TEST_F(Escape, TheEnvironmentIsTheCommandsOwn) {
  const std::string text = sh("tr '\\0' '\\n' < /proc/self/environ").output;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('='));
    EXPECT_TRUE(name == "PATH" || name == "HOME" || name == "USER" || name == "LOGNAME" ||
                name == "HOSTNAME" || name == "SHELL" || name == "TERM" || name == "LANG" ||
                name == "PWD" || name == "OLDPWD" || name == "SHLVL" || name == "_")
        << line;
  }
  EXPECT_EQ(text.find(engine_->state_dir()), std::string::npos);
  EXPECT_EQ(text.find("HEARTH"), std::string::npos) << text;
}

TEST_F(Escape, NamesOfTheHostAreNotSeen) {
  char host[65] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  EXPECT_REFUSED(as_root({"host-names", engine_->state_dir(), "hearth-test-", "/dev/shm/hearth",
                          "/run/hearth", std::getenv("HEARTH_BIN")}));
  EXPECT_NE(sh("hostname").output, std::string(host) + "\n");
}

TEST_F(Escape, FilesOfTheHostAreNotSeen) {
  const Canary canary;
  EXPECT_REFUSED(as_root({"host-files", canary.file(), engine_->state_dir(), "/etc/shadow"}));
  EXPECT_TRUE(canary.sings());
}

// Somebody of the host's, who ends with the test.
class Victim {
 public:
  Victim() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    while (true) ::pause();
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
};

TEST_F(Escape, ProcessesOfTheHostCannotBeReached) {
  const Victim victim;
  EXPECT_REFUSED(as_root({"host-processes", std::to_string(victim.pid()),
                          std::to_string(engine_->pid()), std::to_string(::getpid())}));
  sh("kill -9 -1");
  EXPECT_TRUE(victim.lives());
  EXPECT_TRUE(is_alive());
}

linux::Fd listen_on(const sockaddr_un& address, std::size_t size) {
  linux::Fd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(server.get(), reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(size)) != 0 ||
      ::listen(server.get(), 4) != 0)
    throw_errno("listen");
  return server;
}

TEST_F(Escape, SocketsOfTheHostCannotBeReached) {
  const Canary canary;
  const std::string name = fmt::format("escape-{}", ::getpid());
  sockaddr_un abstract{.sun_family = AF_UNIX, .sun_path = {}};
  std::ranges::copy(name, abstract.sun_path + 1);
  const linux::Fd hidden = listen_on(abstract, offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const std::string path = canary.folder() / "socket";
  sockaddr_un named{.sun_family = AF_UNIX, .sun_path = {}};
  std::ranges::copy(path, named.sun_path);
  const linux::Fd visible = listen_on(named, sizeof named);

  EXPECT_REFUSED(
      as_root({"host-sockets", name, path, engine_->state_dir() + "/runtime.sock",
               "/run/systemd/private", "/var/run/docker.sock", "/run/containerd/containerd.sock"}));
}

TEST_F(Escape, SharedMemoryOfTheHostIsNotSeen) {
  const int memory = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  ASSERT_GE(memory, 0);
  const std::string seen = sh("tail -n +2 /proc/sysvipc/shm; ls /dev/shm /dev/mqueue").output;
  ::shmctl(memory, IPC_RMID, nullptr);

  EXPECT_EQ(seen.find(std::to_string(memory)), std::string::npos) << seen;
  EXPECT_EQ(sh("ls -A /dev/shm").output, "");
}

// The payload knows how: where nobody stops it, it gets through. Those only that leave nothing
// behind.
TEST(Payload, SucceedsWhereNothingStopsIt) {
  HEARTH_NEED_ROOT();
  for (const char* name : {"new-namespaces", "handles", "socket-families", "descriptors"}) {
    const std::string words = fmt::format("exec 7</; exec {}/escape-payload {} >/dev/null 2>&1",
                                          std::getenv("HEARTH_BIN"), name);
    const int status = std::system(words.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << name << " found nothing to do";
  }
}

}  // namespace
}  // namespace hearth::escape
