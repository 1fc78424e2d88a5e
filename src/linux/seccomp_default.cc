// What programs in a container may ask of the kernel.
//
// Of the same strength as the profile that Docker documents for containers without added
// capabilities, and stricter where escapes of the last years went through: no io_uring, no packet,
// vsock or kernel crypto sockets, no bytes pushed into terminals. Everything that is not named here
// is answered with EPERM; these are left out on purpose:
//
//   io_uring_*                         its own road around every filter, and the kernel's richest
//                                      source of privilege escalations (Docker removed it in 2023)
//   userfaultfd                        lets an attacker halt the kernel in the middle of a copy
//   bpf, perf_event_open               programs for the kernel to run
//   keyctl, add_key, request_key       keyrings are not namespaced
//   mount, umount2, pivot_root, fsopen, fsconfig, fsmount, fspick, move_mount, open_tree,
//   open_tree_attr, mount_setattr      our mounts are the walls
//   unshare, setns, clone with CLONE_NEW..., namespaces bring capabilities, and with them most of
//                                      the kernel's attack surface
//   open_by_handle_at                  opens files outside the root (the "shocker" escape of 2014)
//   kexec_*, *_module, reboot, swap*, quotactl*, acct, settimeofday, clock_settime, nfsservctl,
//   iopl, ioperm, syslog, vhangup, lookup_dcookie, sethostname, setdomainname: the host's
//   get_mempolicy, mbind, set_mempolicy*, move_pages, migrate_pages: need SYS_NICE under Docker
//   kcmp, pidfd_getfd, process_madvise   look into or act on other processes; SYS_PTRACE under
//   Docker fanotify_init, uselib, ustat, sysfs, _sysctl, vm86*, create_module, ...: privileged or
//   obsolete
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>

#include "linux/seccomp_policy.h"

namespace hearth::linux {
namespace {

// Up to Linux 6.17.
constexpr unsigned kNewestSyscall = 469;

std::vector<std::string> allowed_syscalls() {
  return {
      // Files, by path and by descriptor.
      "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat",
      "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir",
      "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr",
      "file_getattr", "file_setattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat",
      "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr",
      "getxattrat", "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr", "listxattrat",
      "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "newfstatat",
      "open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64",
      "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "removexattr",
      "removexattrat", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr",
      "setxattrat", "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync",
      "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat", "utime",
      "utimensat", "utimes", "vmsplice", "write", "writev",
      // Pipes and plain files too, hence needed by mkfifo(1); device nodes take MKNOD.
      "mknod", "mknodat",
      // Only names a file; it is opening by handle that leads out. systemd and Java ask.
      "name_to_handle_at",
      // Takes SYS_CHROOT, which containers have: package managers and sshd use it.
      "chroot",
      // Marks are useless without fanotify_init, which is refused.
      "fanotify_mark", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
      // Waiting.
      "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
      "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "poll", "ppoll", "pselect6", "select",
      "signalfd", "signalfd4", "timerfd_create", "timerfd_gettime", "timerfd_settime",
      // The old asynchronous I/O: databases use it, and it is small.
      "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
      // Memory.
      "brk", "cachestat", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "mincore",
      "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock",
      "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect", "process_mrelease",
      "remap_file_pages",
      // Memory that even the kernel does not map: harmless to others, charged to the caller.
      "memfd_secret",
      // Processes and threads; clone is below.
      "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue", "futex_wait",
      "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area", "getcpu", "getpgid",
      "getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid",
      "kill", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "restart_syscall", "rseq",
      "set_robust_list", "set_thread_area", "set_tid_address", "setpgid", "setpriority",
      "setrlimit", "setsid", "tgkill", "tkill", "vfork", "wait4", "waitid",
      // Debuggers. Reaches only processes of the same container and user; before Linux 4.8 a tracer
      // could change a call after the filter had seen it, and we need newer kernels anyway.
      "process_vm_readv", "process_vm_writev", "ptrace",
      // x86 segments: Wine and some language runtimes.
      "arch_prctl", "modify_ldt",
      // Signals.
      "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
      "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack",
      // Where a uprobe of the host's sends a probed process: refusing it would crash that process
      // (Linux 6.11). It does nothing for anyone else.
      "uretprobe",
      // Users, groups, capabilities: the kernel checks these, and root in a container has the
      // right.
      "capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid",
      "getuid", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid",
      "setreuid", "setuid",
      // A process may confine itself further.
      "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "lsm_get_self_attr",
      "lsm_list_modules", "lsm_set_self_attr", "seccomp",
      // Scheduling: real-time classes take SYS_NICE.
      "ioprio_get", "ioprio_set", "sched_get_priority_max", "sched_get_priority_min",
      "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
      "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam",
      "sched_setscheduler", "sched_yield",
      // Time; adjtimex and clock_adjtime only read without SYS_TIME (ntp clients look).
      "adjtimex", "alarm", "clock_adjtime", "clock_getres", "clock_gettime", "clock_nanosleep",
      "getitimer", "gettimeofday", "nanosleep", "setitimer", "time", "timer_create", "timer_delete",
      "timer_getoverrun", "timer_gettime", "timer_settime", "times",
      // Sockets; socket itself is below.
      "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
      "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
      // System V and POSIX messages: namespaced.
      "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
      "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
      "shmctl", "shmdt", "shmget",
      // The rest.
      "getrandom", "sysinfo", "uname"};
}

// An int argument, as the kernel sees it.
SeccompTest is(std::uint32_t value) {
  return {.value = value};
}

// Unix, IPv4, IPv6 and netlink; all newer families do not exist, which is what EAFNOSUPPORT says
// and what programs expect of a family they can do without (the older ones, amateur radio and the
// like, get EPERM: a rule each would make every installation of the filter slower). Refused above
// all: AF_VSOCK talks to the hypervisor past every network rule, AF_ALG is the kernel's crypto with
// its history of escapes, and AF_PACKET, which NET_RAW would allow, has one of its own.
void add_socket_rules(std::vector<SeccompRule>& rules) {
  for (const std::uint32_t family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}) {
    rules.push_back({.syscall = "socket", .tests = {is(family)}});
  }
  rules.push_back({.syscall = "socketpair", .tests = {is(AF_UNIX)}});
  // Also true of allowed families with stray high bits: either answer is safe.
  for (const char* name : {"socket", "socketpair"}) {
    rules.push_back({.syscall = name,
                     .tests = {{.comparison = Comparison::greater, .value = AF_NETLINK}},
                     .error = EAFNOSUPPORT});
  }
}

std::vector<SeccompRule> default_rules() {
  constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  std::vector<SeccompRule> rules = {
      {.syscall = "clone", .tests = {{.value = 0, .mask = kNamespaces}}},
      // Its flags lie in memory, out of a filter's sight. With ENOSYS, and with nothing else, the C
      // libraries go back to clone.
      {.syscall = "clone3", .error = ENOSYS},
      // libmount goes back to /proc/self/mountinfo.
      {.syscall = "statmount", .error = ENOSYS},
      {.syscall = "listmount", .error = ENOSYS},
  };
  // Linux, Linux with a 2.6 version number, both again for 32-bit uname; asking. The others switch
  // off address randomisation or make memory executable.
  constexpr std::uint32_t kPersonalities[] = {0x0, 0x20000, 0x8, 0x20008, 0xffffffff};
  for (const std::uint32_t personality : kPersonalities) {
    rules.push_back({.syscall = "personality", .tests = {is(personality)}});
  }
  add_socket_rules(rules);
  return rules;
}

SeccompPolicy make_default_policy() {
  return {
      .newest_syscall = kNewestSyscall,
      .allowed = allowed_syscalls(),
      .rules = default_rules(),
      // Bytes pushed into a terminal are read by whoever reads it next: a shell outside, perhaps.
      // TIOCLINUX does the same to virtual consoles.
      .refusals = {{.syscall = "ioctl", .argument = 1, .value = TIOCSTI},
                   {.syscall = "ioctl", .argument = 1, .value = TIOCLINUX}},
  };
}

// What the guest does before it is confined.
constexpr const char* kMaking[] = {"clone3", "mount", "move_mount", "sethostname", "unshare"};

}  // namespace

const SeccompPolicy& default_seccomp_policy() {
  static const SeccompPolicy policy = make_default_policy();
  return policy;
}

SeccompPolicy maker_seccomp_policy() {
  SeccompPolicy policy = split_default_policy(/*keep_clone3=*/true).common;
  for (const char* name : {"fsconfig", "fsmount", "fsopen", "mount_setattr", "open_tree",
                           "pivot_root", "setns", "umount2"}) {
    policy.allowed.emplace_back(name);
  }
  return policy;
}

SplitPolicy split_default_policy(bool keep_clone3) {
  SplitPolicy split{.common = default_seccomp_policy(), .closing = {.default_error = 0}};
  for (const std::string name : kMaking) {
    std::erase_if(split.common.rules,
                  [&](const SeccompRule& rule) { return rule.syscall == name; });
    split.common.allowed.push_back(name);
    const bool is_clone3 = name == "clone3";
    if (is_clone3 && keep_clone3) continue;
    split.closing.rules.push_back({.syscall = name, .error = is_clone3 ? ENOSYS : EPERM});
  }
  return split;
}

}  // namespace hearth::linux
