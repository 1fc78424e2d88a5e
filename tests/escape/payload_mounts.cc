// Mounts, roots and namespaces: the walls themselves.
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

constexpr unsigned long kReadOnly = 1;
constexpr unsigned long kRemount = 32;
constexpr unsigned long kBind = 4096;
constexpr unsigned long kMove = 8192;
constexpr unsigned long kRecursive = 16384;
constexpr unsigned long kShared = 1 << 20;
constexpr int kDetach = 2;

// Newer than our headers: struct mnt_id_req, listmount(2) and statmount(2) of Linux 6.8.
struct MountNumber {
  std::uint32_t size;
  std::uint32_t spare = 0;
  std::uint64_t id;
  std::uint64_t parameter = 0;
};
constexpr long kStatMount = 457;
constexpr long kListMount = 458;

long mount_call(const char* source, const char* target, const char* type, unsigned long flags,
                const char* options = nullptr) {
  return ::syscall(SYS_mount, source, target, type, flags, options);
}

void try_new_mounts(Findings& findings, const Arguments&) {
  ::mkdir("/tmp/here", 0755);
  for (const char* type : {"tmpfs", "proc", "sysfs", "devpts", "mqueue", "ramfs", "devtmpfs",
                           "securityfs", "debugfs", "tracefs", "bpf", "binfmt_misc", "fuse"}) {
    findings.must_fail(std::string("mount ") + type, mount_call(type, "/tmp/here", type, 0));
  }
  findings.must_fail("mount overlay", mount_call("overlay", "/tmp/here", "overlay", 0,
                                                 "lowerdir=/usr,upperdir=/tmp,workdir=/var"));
  findings.must_fail("bind /", mount_call("/", "/tmp/here", nullptr, kBind | kRecursive));
  findings.must_fail("bind /proc/1/root",
                     mount_call("/proc/1/root", "/tmp/here", nullptr, kBind | kRecursive));
  for (const char* device : {"/dev/sda", "/dev/vda", "/dev/nvme0n1"})
    findings.must_fail(std::string("mount ") + device, mount_call(device, "/tmp/here", "ext4", 0));
  findings.must_fail("fsopen", ::syscall(SYS_fsopen, "tmpfs", 0));
  findings.must_fail("fspick", ::syscall(SYS_fspick, AT_FDCWD, "/proc", 0));
  findings.must_fail("open_tree", ::syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
}

void try_changing_mounts(Findings& findings, const Arguments&) {
  for (const char* path : {"/proc/sys", "/proc/sysrq-trigger", "/sys", "/dev", "/proc"}) {
    const std::string name = path;
    findings.must_fail("remount " + name, mount_call(nullptr, path, nullptr, kRemount | kBind));
    findings.must_fail("remount all of " + name, mount_call(nullptr, path, nullptr, kRemount));
    findings.must_fail("unmount " + name, ::syscall(SYS_umount2, path, kDetach));
    findings.must_fail("move " + name, mount_call(path, "/mnt", nullptr, kMove));
    findings.must_fail("move_mount " + name,
                       ::syscall(SYS_move_mount, AT_FDCWD, path, AT_FDCWD, "/mnt", 0));
    mount_attr writable{.attr_clr = MOUNT_ATTR_RDONLY};
    findings.must_fail("mount_setattr " + name,
                       ::syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &writable, sizeof writable));
  }
  for (const char* mask : {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts",
                           "/sys/firmware", "/proc/meminfo", "/proc/sys/kernel/random/boot_id"}) {
    findings.must_fail(std::string("unmount ") + mask, ::syscall(SYS_umount2, mask, kDetach));
  }
  findings.must_fail("unmount /", ::syscall(SYS_umount2, "/", kDetach));
  findings.must_fail("share /", mount_call(nullptr, "/", nullptr, kShared | kRecursive));
  findings.must_fail("remount /", mount_call(nullptr, "/", nullptr, kRemount | kReadOnly));
}

void try_control_groups(Findings& findings, const Arguments&) {
  ::mkdir("/tmp/here", 0755);
  findings.must_fail("mount cgroup2", mount_call("cgroup2", "/tmp/here", "cgroup2", 0));
  for (const char* controller : {"memory", "rdma", "devices", "pids", "none,name=hearth-test"}) {
    findings.must_fail(std::string("mount cgroup ") + controller,
                       mount_call("cgroup", "/tmp/here", "cgroup", 0, controller));
  }
  // Visible or not, a file that moves processes or names a program must not be writable.
  walk("/sys/fs/cgroup", [&](const std::string& path) {
    for (const char* name : {"/cgroup.procs", "/tasks", "/release_agent", "/notify_on_release",
                             "/cgroup.subtree_control", "/memory.max", "/pids.max"}) {
      if (!path.ends_with(name)) continue;
      findings.must_fail("write " + path, ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    }
  });
  const std::string groups = read_all("/proc/self/cgroup");
  findings.must_hold("no name of the host in /proc/self/cgroup: " + groups,
                     groups.find("hearth") == std::string::npos);
}

bool same_file(const char* path, const struct stat& one) {
  struct stat other{};
  return ::stat(path, &other) == 0 && other.st_dev == one.st_dev && other.st_ino == one.st_ino;
}

// A folder held open above one's own root was the way out of every chroot(2).
void try_leaving_the_root(Findings& findings, const Arguments&) {
  struct stat root{};
  ::stat("/", &root);
  findings.must_fail("pivot_root", ::syscall(SYS_pivot_root, ".", "."));
  findings.must_hold("/.. is /", same_file("/../../../..", root));
  ::mkdir("/tmp/jail", 0755);
  const int above = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool jailed = ::chroot("/tmp/jail") == 0;
  bool climbed = ::fchdir(above) == 0;
  for (int i = 0; i < 64; ++i) climbed = ::chdir("..") == 0 && climbed;
  if (jailed) climbed = ::chroot(".") == 0 && climbed;
  findings.must_hold("one can go up", climbed);
  findings.must_hold("above everything is our own root", same_file(".", root));
  struct stat parent{};
  ::fstatat(above, "../../..", &parent, 0);
  findings.must_hold("above our root is our root",
                     parent.st_ino == root.st_ino && parent.st_dev == root.st_dev);
}

void must_be_root(Findings& findings, const struct stat& root, const std::string& path) {
  findings.must_hold(path + " is the root", same_file(path.c_str(), root));
}

// Our root covers the one that it was built in. Ways down there: upwards out of every kind of
// folder, and whatever table or number tells of mounts.
void try_what_is_covered(Findings& findings, const Arguments&) {
  struct stat root{};
  ::stat("/", &root);
  const int above = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const std::string number = "/proc/self/fd/" + std::to_string(above);
  for (const std::string& path :
       {std::string("/.."), std::string("/proc/self/root/.."), std::string("/proc/self/cwd/../.."),
        std::string("/proc/../.."), std::string("/dev/pts/../../.."), number, number + "/../.."}) {
    must_be_root(findings, root, path);
  }
  std::array<char, 4096> table{};
  const auto sees = [&](const char* name) {
    return ::access((std::string("/../../") + name).c_str(), F_OK) == 0;
  };
  for (const char* name : {"stage", "devices", "nothing", "queues", "boot_id", "lupper"})
    findings.must_hold(std::string("no ") + name + " above the root", !sees(name));

  int roots = 0;
  std::istringstream mounts(read_all("/proc/self/mountinfo"));
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, source, target;
    words >> id >> parent >> device >> source >> target;
    if (target == "/") ++roots;
    for (const char* name : {"/stage", "/nothing", "/queues", "/devices"})
      findings.must_hold("no mount on " + target, !target.starts_with(name));
  }
  findings.must_hold("one mount on /", roots == 1);
  const MountNumber everything{.size = sizeof everything, .id = ~std::uint64_t{0}};  // LSMT_ROOT
  findings.must_fail("listmount", ::syscall(kListMount, &everything, table.data(), 512, 0));
  findings.must_fail("statmount", ::syscall(kStatMount, &everything, table.data(), 4096, 0));

  // Out of a jail that is gone, and out of one in another.
  ::mkdir("/tmp/outer", 0755);
  ::mkdir("/tmp/outer/inner", 0755);
  const bool jailed = ::chroot("/tmp/outer") == 0 && ::chdir("/inner") == 0;
  if (jailed) ::rmdir("/inner");
  bool climbed = ::fchdir(above) == 0;
  for (int i = 0; i < 64; ++i) climbed = ::chdir("..") == 0 && climbed;
  findings.must_hold("one can go up", climbed);
  must_be_root(findings, root, ".");
  must_be_root(findings, root, "../tmp/../..");
}

struct Kind {
  const char* name;
  unsigned long flag;
};
constexpr std::array<Kind, 8> kKinds = {{{"user", CLONE_NEWUSER},
                                         {"mnt", CLONE_NEWNS},
                                         {"net", CLONE_NEWNET},
                                         {"pid", CLONE_NEWPID},
                                         {"ipc", CLONE_NEWIPC},
                                         {"uts", CLONE_NEWUTS},
                                         {"cgroup", CLONE_NEWCGROUP},
                                         {"time", CLONE_NEWTIME}}};

// The child of a successful clone must not go on with our work.
long clone_with(unsigned long flags) {
  const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(0);
  return pid;
}

long clone3_with(unsigned long flags) {
  clone_args arguments{};
  arguments.flags = flags;
  arguments.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) ::_exit(0);
  return pid;
}

void try_all_namespaces(Findings& findings) {
  for (const Kind& kind : kKinds) {
    const std::string name = kind.name;
    findings.must_fail("unshare " + name, ::syscall(SYS_unshare, kind.flag));
    // A clone's lowest bits are a signal: there is no time namespace to be had.
    if (kind.flag != CLONE_NEWTIME) findings.must_fail("clone " + name, clone_with(kind.flag));
    findings.must_fail("clone3 " + name, clone3_with(kind.flag));
    findings.must_fail("clone3 " + name + " with user", clone3_with(kind.flag | CLONE_NEWUSER));
  }
  findings.must_fail("unshare with high bits", ::syscall(SYS_unshare, CLONE_NEWUSER | (1UL << 40)));
  findings.must_fail("clone with high bits", clone_with(CLONE_NEWUSER | (1UL << 40)));
}

void try_new_namespaces(Findings& findings, const Arguments&) {
  try_all_namespaces(findings);
  const bool managed = managed_in_child([] {
    Findings inner;
    try_all_namespaces(inner);
    return inner.exit_code();
  });
  findings.must_hold("a child may not either", !managed);
}

void try_entering(Findings& findings, const std::string& of) {
  for (const Kind& kind : kKinds) {
    const std::string path = of + "/ns/" + kind.name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    findings.must_fail("setns " + path, fd < 0 ? -1 : ::syscall(SYS_setns, fd, 0));
    if (fd >= 0) ::close(fd);
  }
}

void try_other_namespaces(Findings& findings, const Arguments&) {
  try_entering(findings, "/proc/self");
  try_entering(findings, "/proc/1");
  const int init = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  for (const Kind& kind : kKinds) {
    findings.must_fail(std::string("setns of PID 1's ") + kind.name,
                       ::syscall(SYS_setns, init, kind.flag));
  }
  constexpr unsigned long kParent = 0xb702;  // NS_GET_PARENT
  constexpr unsigned long kOwner = 0xb701;   // NS_GET_USERNS
  for (const char* kind : {"user", "pid"}) {
    const int fd = ::open((std::string("/proc/self/ns/") + kind).c_str(), O_RDONLY | O_CLOEXEC);
    findings.must_fail(std::string("the namespace above: ") + kind,
                       ::syscall(SYS_ioctl, fd, kParent, 0));
  }
  const int own = ::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
  findings.must_fail("who owns our user namespace", ::syscall(SYS_ioctl, own, kOwner, 0));
}

constexpr std::array kAttempts = {Attempt{"mount", try_new_mounts},
                                  Attempt{"change-mounts", try_changing_mounts},
                                  Attempt{"control-groups", try_control_groups},
                                  Attempt{"leave-root", try_leaving_the_root},
                                  Attempt{"covered-root", try_what_is_covered},
                                  Attempt{"new-namespaces", try_new_namespaces},
                                  Attempt{"other-namespaces", try_other_namespaces}};

}  // namespace

std::span<const Attempt> mount_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
