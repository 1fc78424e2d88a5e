// A child that is born where it belongs: in its namespaces, in its cgroup, without copying us.
//
// The child shares this process's memory (CLONE_VM) and runs beside it on a stack of its own until
// it calls execve or _exit. That makes it cheap whatever our size, and it makes the rules for the
// code it runs: system calls through raw_syscall() only (errno belongs to the thread that called
// clone), no allocation, no locks, no exceptions, nothing that is not async-signal-safe. Signals
// stay blocked in it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "linux/pidfd.h"

namespace hearth::linux {

struct CloneRequest {
  std::uint64_t namespaces = 0;  // CLONE_NEW..., and CLONE_FILES to share descriptors
  int cgroup_fd = -1;            // a v2 cgroup to be born into, or -1
  void (*run)(void*) = nullptr;  // must not return
  void* argument = nullptr;      // must outlive the child's life in our memory
  pid_t* newborn = nullptr;      // told the pid before the child runs, if given
};

class ClonedChild {
 public:
  ClonedChild(pid_t pid, Pidfd pidfd, std::unique_ptr<std::byte[]> stack)
      : pid_(pid), pidfd_(std::move(pidfd)), stack_(std::move(stack)) {}

  pid_t pid() const { return pid_; }
  const Pidfd& pidfd() const { return pidfd_; }

  // To be called when the child no longer runs in our memory: it has executed a program or ended.
  // Until then this object must live. Kills and reaps nothing.
  Pidfd leave_it() && { return std::move(pidfd_); }

 private:
  pid_t pid_;
  Pidfd pidfd_;
  std::unique_ptr<std::byte[]> stack_;
};

// Throws Error.
ClonedChild clone_child(const CloneRequest& request);

// The same, on a stack of the caller's; and the calling thread stands still until the child has
// executed a program or ended, so that the child may use all that the thread has, errno included.
// Returns the pid or a negative errno. Allocates nothing. Signals are the caller's business.
long clone_and_stand_still(const CloneRequest& request, std::span<std::byte> stack) noexcept;

struct Forked {
  pid_t pid = 0;  // 0: this is the child
  Pidfd pidfd;
};
// A copy of the calling process, which must have one thread, born into namespaces and a v2 cgroup
// (or -1). What glibc's fork does for other threads is not done. Throws Error.
Forked fork_into(std::uint64_t namespaces, int cgroup_fd);

// The system call and nothing else: the result, or the negative error. Touches no errno.
long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept;

}  // namespace hearth::linux
