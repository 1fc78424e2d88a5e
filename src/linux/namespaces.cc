#include "linux/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <thread>

#include "base/error.h"
#include "linux/clone.h"

namespace hearth::linux {
namespace {

// In the child that shares our memory; only there to be looked at. Gone with us: the signal is sent
// when the thread that cloned it ends, and that thread waits for it.
[[noreturn]] void wait_to_be_killed(void*) {
  raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  while (true) raw_syscall(SYS_ppoll);
}

void write_id_maps(int proc_fd, pid_t pid, IdMap users, IdMap groups) {
  const auto line = [](const IdMap& map) {
    return fmt::format("{} {} {}\n", map.inside, map.range.first, map.range.count);
  };
  write_file_at(proc_fd, fmt::format("{}/uid_map", pid), line(users));
  write_file_at(proc_fd, fmt::format("{}/gid_map", pid), line(groups));
}

Fd open_proc() {
  return open_file("/proc", O_PATH | O_DIRECTORY);
}

}  // namespace

void write_id_maps(int proc_fd, pid_t pid, IdRange range) {
  write_id_maps(proc_fd, pid, {.inside = 0, .range = range}, {.inside = 0, .range = range});
}

void write_id_maps(pid_t pid, IdRange range) {
  write_id_maps(open_proc().get(), pid, range);
}

Fd make_user_namespace(IdRange range) {
  return make_user_namespace({.inside = 0, .range = range}, {.inside = 0, .range = range});
}

Fd make_user_namespace(IdMap users, IdMap groups) {
  // unshare(2) of a user namespace is refused to a process with threads, and a fork would copy our
  // page tables. A copy of our descriptors, thousands of them, would take as long as all the rest.
  const ClonedChild child =
      clone_child({.namespaces = CLONE_NEWUSER | CLONE_FILES, .run = wait_to_be_killed});
  Fd userns;
  std::exception_ptr failure;
  try {
    write_id_maps(open_proc().get(), child.pid(), users, groups);
    userns = open_namespace(child.pid(), "user");
  } catch (...) {
    failure = std::current_exception();
  }
  // Its stack is ours: it must be gone before we return, whatever happened.
  child.pidfd().send_signal(SIGKILL);
  child.pidfd().reap();
  if (failure) std::rethrow_exception(failure);
  return userns;
}

Fd make_net_namespace() {
  Fd netns;
  std::exception_ptr failure;
  // A thread has namespaces of its own to leave, and takes the change with it when it ends.
  std::thread([&] {
    try {
      if (::unshare(CLONE_NEWNET) != 0) throw_errno("make a network namespace");
      netns = open_file("/proc/thread-self/ns/net", O_RDONLY);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return netns;
}

Fd open_namespace(pid_t pid, const char* type) {
  return open_file(fmt::format("/proc/{}/ns/{}", pid, type), O_RDONLY);
}

void enter_namespace(int namespace_fd, int type) {
  if (::setns(namespace_fd, type) != 0) throw_errno("enter a namespace of type {:#x}", type);
}

void set_hostname_of(const Pidfd& process, const std::string& hostname) {
  int error = 0;
  // Namespaces belong to threads, and this one ends with its errand.
  std::thread([&] {
    if (::setns(process.fd(), CLONE_NEWUTS) != 0 ||
        ::sethostname(hostname.c_str(), hostname.size()) != 0) {
      error = errno;
    }
  }).join();
  if (error != 0) throw_errno_text(error, fmt::format("name the host '{}'", hostname));
}

std::uint64_t namespace_inode(int namespace_fd) {
  struct stat status{};
  if (::fstat(namespace_fd, &status) != 0) throw_errno("look at a namespace");
  return status.st_ino;
}

}  // namespace hearth::linux
