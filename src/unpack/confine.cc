#include "unpack/confine.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "linux/capabilities.h"
#include "linux/seccomp_policy.h"

namespace hearth::unpack {
namespace {

using image::Job;

// Sanitizers reserve terabytes of addresses.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

// The largest window of zstd, buffers, and the table of a layer with two million folders.
constexpr rlim_t kMemory = rlim_t{2} << 30;
// Two for each folder on the way down, and ours.
constexpr rlim_t kOpenFiles = 2 * image::kMaxTreeDepth + 64;
// The parent's patience is half an hour, of all the time there is.
constexpr rlim_t kCpuSeconds = 30 * 60;
constexpr rlim_t kFileSize = rlim_t{1} << 50;

// FICLONE of <linux/fs.h>, which does not go together with <sys/mount.h>.
constexpr std::uint32_t kShareBlocks = _IOW(0x94, 9, int);

void limit(int resource, rlim_t most) {
  const rlimit value{.rlim_cur = most, .rlim_max = most};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &value) != 0)
    throw_errno("set resource limit {}", resource);
}

linux::CapabilitySet capabilities_for(Job::Task task) {
  if (task == Job::Task::decompress) return {};
  // Files of every owner in our range, with any mode. A whiteout takes no MKNOD.
  return {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP};
}

// Bytes in and out, memory, the end.
std::vector<std::string> basic_calls() {
  return {"read",       "write",          "close",          "lseek",        "poll",
          "ppoll",      "sendmsg",        "recvmsg",        "fstat",        "brk",
          "munmap",     "mremap",         "madvise",        "futex",        "clock_gettime",
          "getpid",     "gettid",         "rt_sigprocmask", "rt_sigreturn", "exit",
          "exit_group", "restart_syscall"};
}

std::vector<std::string> file_calls() {
  return {"openat",     "openat2",   "mkdirat",   "symlinkat",  "linkat",         "unlinkat",
          "newfstatat", "statx",     "fchown",    "fchownat",   "fchmod",         "fchmodat",
          "utimensat",  "fsetxattr", "fgetxattr", "flistxattr", "ftruncate",      "getdents64",
          "readlinkat", "pread64",   "pwrite64",  "fcntl",      "copy_file_range"};
}

// Memory that is never executable; pipes and whiteouts, no other nodes; no requests to devices but
// the one that shares blocks.
std::vector<linux::SeccompRule> rules_for(Job::Task task) {
  std::vector<linux::SeccompRule> rules = {
      {.syscall = "mmap", .tests = {{.argument = 2, .value = 0, .mask = PROT_EXEC}}},
      {.syscall = "mprotect", .tests = {{.argument = 2, .value = 0, .mask = PROT_EXEC}}}};
  if (task == Job::Task::decompress) return rules;
  rules.push_back(
      {.syscall = "mknodat", .tests = {{.argument = 2, .value = S_IFIFO, .mask = S_IFMT}}});
  rules.push_back(
      {.syscall = "mknodat",
       .tests = {{.argument = 2, .value = S_IFCHR, .mask = S_IFMT}, {.argument = 3, .value = 0}}});
  if (task == Job::Task::copy)
    rules.push_back({.syscall = "ioctl", .tests = {{.argument = 1, .value = kShareBlocks}}});
  return rules;
}

void install_seccomp(Job::Task task) {
  linux::SeccompPolicy policy;
  policy.allowed = basic_calls();
  if (task != Job::Task::decompress) {
    for (std::string& name : file_calls()) policy.allowed.push_back(std::move(name));
  }
  policy.rules = rules_for(task);
  if (const int error = linux::install_filter(linux::compile(policy)); error != 0)
    throw_errno_text(error, "install the seccomp filter");
}

}  // namespace

void enter_root(int mount_fd) {
  // Over the old root, which is there wherever we were started.
  if (::move_mount(mount_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
    throw_errno("attach the root");
  if (::fchdir(mount_fd) != 0) throw_errno("enter the root");
  // With both arguments the same the new root is stacked on the old one, which is then unmounted
  // with all that lies below it, pivot_root(2).
  if (::syscall(SYS_pivot_root, ".", ".") != 0) throw_errno("change the root");
  if (::umount2(".", MNT_DETACH) != 0) throw_errno("let go of the old root");
  if (::chdir("/") != 0) throw_errno("enter the root");
}

linux::Fd make_empty_mount() {
  const linux::Fd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context) throw_errno("make an empty folder");
  if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", "4k", 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    throw_errno("make an empty folder");
  linux::Fd mount(
      ::fsmount(context.get(), FSMOUNT_CLOEXEC,
                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  if (!mount) throw_errno("make an empty folder");
  return mount;
}

void confine(Job::Task task) {
  ::umask(0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kCpuSeconds);
  limit(RLIMIT_FSIZE, kFileSize);
  limit(RLIMIT_NOFILE, kOpenFiles);
  limit(RLIMIT_NPROC, 0);
  if (kLimitMemory) limit(RLIMIT_AS, kMemory);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throw_errno("become undumpable");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("set no_new_privs");
  if (const int error = linux::limit_capabilities(capabilities_for(task)); error != 0)
    throw_errno_text(error, "give up capabilities");
  install_seccomp(task);
}

}  // namespace hearth::unpack
