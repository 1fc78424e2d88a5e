#include "linux/clone.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

// clone3(2) with a stack of the child's own cannot return through C++: the child has no frames to
// return to. `run` is called on the new stack instead.
extern "C" long hearth_clone3(clone_args* args, std::size_t size, void (*run)(void*),
                              void* argument);

#if defined(__x86_64__)
asm(R"(
.text
.globl hearth_clone3
.type hearth_clone3,@function
hearth_clone3:
  endbr64
  movq %rdx, %r8
  movq %rcx, %r9
  movl $435, %eax
  syscall
  testl %eax, %eax
  jne 1f
  xorl %ebp, %ebp
  movq %r9, %rdi
  callq *%r8
  ud2
1:
  ret
.size hearth_clone3, .-hearth_clone3
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl hearth_clone3
.type hearth_clone3,%function
hearth_clone3:
  mov x9, x2
  mov x10, x3
  mov x8, #435
  svc #0
  cbnz x0, 1f
  mov x29, xzr
  mov x30, xzr
  mov x0, x10
  blr x9
  brk #1
1:
  ret
.size hearth_clone3, .-hearth_clone3
)");
#else
#error "hearth runs on x86_64 and aarch64"
#endif

namespace hearth::linux {
namespace {

// Plenty: the code in the child keeps nothing larger than a path on its stack.
constexpr std::size_t kStackSize = std::size_t{64} << 10;

// Blocks every signal while the child is made: a handler of ours must not run in it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Sandboxes refuse clone3 to everything in them, their guest included, unless it is needed.
long clone_the_old_way(const CloneRequest& request, std::span<std::byte> stack) noexcept {
  const auto run = [](void* argument) {
    const auto& what = *static_cast<const CloneRequest*>(argument);
    what.run(what.argument);
    return 0;
  };
  const int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | static_cast<int>(request.namespaces) |
                    (request.newborn == nullptr ? 0 : CLONE_PARENT_SETTID);
  // The child runs while we stand still: the request stays where it is.
  const int pid = ::clone(run, stack.data() + stack.size(), flags,
                          const_cast<CloneRequest*>(&request), request.newborn);
  return pid < 0 ? -errno : pid;
}

}  // namespace

ClonedChild clone_child(const CloneRequest& request) {
  // Not make_unique: it would write 64 KiB of zeros.
  std::unique_ptr<std::byte[]> stack(new std::byte[kStackSize]);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_VM | CLONE_PIDFD | request.namespaces;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<std::uintptr_t>(stack.get());
  args.stack_size = kStackSize & ~std::size_t{15};
  if (request.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(request.cgroup_fd);
  }

  const SignalsBlocked blocked;
  const long pid = hearth_clone3(&args, sizeof args, request.run, request.argument);
  if (pid < 0) throw_errno_text(static_cast<int>(-pid), "clone a process into new namespaces");
  return {static_cast<pid_t>(pid), Pidfd(Fd(pidfd)), std::move(stack)};
}

long clone_and_stand_still(const CloneRequest& request, std::span<std::byte> stack) noexcept {
  if (request.cgroup_fd < 0) return clone_the_old_way(request, stack);
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | request.namespaces;
  if (request.newborn != nullptr) {
    args.flags |= CLONE_PARENT_SETTID;
    args.parent_tid = reinterpret_cast<std::uintptr_t>(request.newborn);
  }
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<std::uintptr_t>(stack.data());
  args.stack_size = stack.size() & ~std::size_t{15};
  args.flags |= CLONE_INTO_CGROUP;
  args.cgroup = static_cast<std::uint64_t>(request.cgroup_fd);
  return hearth_clone3(&args, sizeof args, request.run, request.argument);
}

Forked fork_into(std::uint64_t namespaces, int cgroup_fd) {
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD | namespaces;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) throw_errno("clone a process into new namespaces");
  if (pid == 0) return {};
  return {.pid = static_cast<pid_t>(pid), .pidfd = Pidfd(Fd(pidfd))};
}

long raw_syscall(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory", "cc");
  return x0;
#endif
}

}  // namespace hearth::linux
