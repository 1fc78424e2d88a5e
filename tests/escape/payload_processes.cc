// Other processes: PID 1, those of the host, and becoming more than one is.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

void try_reading_pid_one(Findings& findings, const Arguments&) {
  for (const char* name : {"mem", "environ", "maps", "smaps", "auxv", "pagemap", "stack", "syscall",
                           "io", "personality", "task/1/mem", "task/1/environ"}) {
    const std::string path = std::string("/proc/1/") + name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char byte = 0;
    // Some can be opened, and then say nothing.
    findings.must_fail("read " + path, fd >= 0 && ::read(fd, &byte, 1) > 0 ? 0 : -1);
  }
  for (const char* name : {"root", "cwd", "exe", "fd/0", "fd/3", "fd/4", "fd/5"}) {
    const std::string path = std::string("/proc/1/") + name;
    findings.must_hold("no link " + path, read_link(path).empty());
    findings.must_fail("open " + path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_PATH));
  }
  DIR* fds = ::opendir("/proc/1/fd");
  findings.must_fail("list /proc/1/fd", fds == nullptr ? -1 : 0);
  for (const char* name : {"mem", "oom_score_adj", "coredump_filter", "clear_refs", "uid_map",
                           "setgroups", "timerslack_ns", "comm", "attr/current", "sched"}) {
    const std::string path = std::string("/proc/1/") + name;
    // Whoever may open it is asked again when he writes.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    findings.must_fail("write " + path, fd < 0 ? -1 : ::write(fd, "1", 1));
  }
}

void try_tracing_pid_one(Findings& findings, const Arguments&) {
  findings.must_fail("ptrace attach", ::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr));
  findings.must_fail("ptrace seize", ::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr));
  char bytes[16];
  iovec here{.iov_base = bytes, .iov_len = sizeof bytes};
  iovec there{.iov_base = reinterpret_cast<void*>(0x400000), .iov_len = sizeof bytes};
  findings.must_fail("read its memory", ::process_vm_readv(1, &here, 1, &there, 1, 0));
  findings.must_fail("write its memory", ::process_vm_writev(1, &here, 1, &there, 1, 0));
  const int init = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  for (int fd = 0; fd < 16; ++fd) {
    findings.must_fail("take descriptor " + std::to_string(fd),
                       ::syscall(SYS_pidfd_getfd, init, fd, 0));
  }
  constexpr int kFiles = 2;
  findings.must_fail("kcmp", ::syscall(SYS_kcmp, ::getpid(), 1, kFiles, 0, 0));
}

// It must stay reachable: the test asks it afterwards.
void try_hurting_pid_one(Findings& findings, const Arguments&) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::kill(1, signal);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::syscall(SYS_tgkill, 1, 1, signal);
  const rlimit nothing{.rlim_cur = 0, .rlim_max = 0};
  for (const int limit : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_CPU,
                          RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING}) {
    findings.must_fail("limit " + std::to_string(limit) + " of PID 1",
                       ::syscall(SYS_prlimit64, 1, limit, &nothing, nullptr));
  }
}

void try_host_processes(Findings& findings, const Arguments& arguments) {
  for (const std::string& text : arguments) {
    const pid_t pid = std::atoi(text.c_str());
    findings.must_fail("signal " + text, ::kill(pid, SIGTERM));
    findings.must_fail("signal the group " + text, ::kill(-pid, SIGTERM));
    findings.must_fail("name " + text, ::syscall(SYS_pidfd_open, pid, 0));
    findings.must_fail("see " + text, ::access(("/proc/" + text).c_str(), F_OK));
    findings.must_fail("its limits", ::syscall(SYS_prlimit64, pid, RLIMIT_CORE, nullptr, nullptr));
    findings.must_fail("its priority", ::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 19));
  }
}

std::string status_line(const std::string& name) {
  const std::string text = "\n" + read_all("/proc/self/status");
  const std::size_t start = text.find("\n" + name + ":\t");
  if (start == std::string::npos) return "?";
  const std::size_t value = start + name.size() + 3;
  return text.substr(value, text.find('\n', value) - value);
}

// Argument: the capabilities as /proc tells them.
void look_at_oneself(Findings& findings, const Arguments& arguments) {
  const std::string none(16, '0');
  const std::string& bounding = arguments.at(0);
  const std::string& mine = ::geteuid() == 0 ? bounding : none;
  for (const char* set : {"CapEff", "CapPrm"})
    findings.must_hold(std::string(set) + " is " + mine + ": " + status_line(set),
                       status_line(set) == mine);
  findings.must_hold("CapBnd is " + bounding + ": " + status_line("CapBnd"),
                     status_line("CapBnd") == bounding);
  for (const char* set : {"CapInh", "CapAmb"})
    findings.must_hold(std::string(set) + " is empty", status_line(set) == none);
  findings.must_hold("no new privileges", status_line("NoNewPrivs") == "1");
  findings.must_hold("a filter", status_line("Seccomp") == "2");
  findings.must_fail("new privileges after all", ::prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  // One byte is no dump either, and tells the kernel not to start a handler of the host's.
  findings.must_hold("no core dumps", core.rlim_max <= 1);
  findings.must_hold("no tracer", status_line("TracerPid") == "0");
}

// Copies this program to PATH, for everybody to run as root.
void prepare_setuid(Findings& findings, const Arguments& arguments) {
  const std::string& path = arguments.at(0);
  const std::string program = read_all("/proc/self/exe");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  bool done = ::write(fd, program.data(), program.size()) == static_cast<ssize_t>(program.size());
  ::close(fd);
  // A capability that root inside has, for whoever runs it.
  struct {
    std::uint32_t magic = 0x02000001;
    std::uint32_t sets[4] = {1, 0, 0, 0};
  } all;
  ::setxattr(path.c_str(), "security.capability", &all, sizeof all, 0);
  done = done && ::chmod(path.c_str(), 06755) == 0;
  findings.must_hold("a setuid program can be made", done);
}

// Run by somebody who is not root, from a program that would make him so.
void try_being_root(Findings& findings, const Arguments&) {
  findings.must_hold("not root", ::geteuid() != 0 && ::getegid() != 0);
  findings.must_hold("no capabilities", status_line("CapEff") == std::string(16, '0'));
  findings.must_fail("setuid", ::setuid(0));
  findings.must_fail("setresuid", ::setresuid(0, 0, 0));
  findings.must_fail("setgid", ::setgid(0));
  const gid_t root = 0;
  findings.must_fail("setgroups", ::syscall(SYS_setgroups, 1, &root));
}

void look_for_core(Findings& findings, const Arguments&) {
  findings.must_hold("in a folder of our own", ::chdir("/tmp") == 0);
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit all{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_CORE, &all);
    ::signal(SIGABRT, SIG_DFL);
    ::raise(SIGABRT);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  findings.must_hold("it dies of the signal", WIFSIGNALED(status));
  findings.must_fail("a core file", ::access("/tmp/core", F_OK));
  findings.must_fail("a core file", ::access(("/tmp/core." + std::to_string(child)).c_str(), F_OK));
}

// Everything that leads from here to somewhere.
void look_at_descriptors(Findings& findings, const Arguments&) {
  DIR* dir = ::opendir("/proc/self/fd");
  findings.must_hold("/proc/self/fd can be read", dir != nullptr);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    if (fd == ::dirfd(dir)) continue;
    const std::string to = read_link(std::string("/proc/self/fd/") + entry->d_name);
    const bool plain = to.starts_with("pipe:") || to == "/dev/null" || to.starts_with("/dev/pts/");
    findings.must_hold(std::string(entry->d_name) + " -> " + to, fd <= 2 && plain);
  }
  ::closedir(dir);
  findings.must_hold("the root is /", read_link("/proc/self/root") == "/");
  struct stat folder{};
  struct stat known{};
  const std::string cwd = read_link("/proc/self/cwd");
  ::stat("/proc/self/cwd", &folder);
  ::stat(cwd.c_str(), &known);
  findings.must_hold("the working folder is inside: " + cwd,
                     folder.st_ino == known.st_ino && folder.st_dev == known.st_dev);
  findings.must_hold("our program is inside",
                     ::access(read_link("/proc/self/exe").c_str(), X_OK) == 0);
}

constexpr std::array kAttempts = {
    Attempt{"read-pid-one", try_reading_pid_one}, Attempt{"trace-pid-one", try_tracing_pid_one},
    Attempt{"hurt-pid-one", try_hurting_pid_one}, Attempt{"host-processes", try_host_processes},
    Attempt{"oneself", look_at_oneself},          Attempt{"prepare-setuid", prepare_setuid},
    Attempt{"be-root", try_being_root},           Attempt{"core", look_for_core},
    Attempt{"descriptors", look_at_descriptors}};

}  // namespace

std::span<const Attempt> process_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
