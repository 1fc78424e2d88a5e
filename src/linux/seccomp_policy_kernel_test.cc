#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/kernel_testing.h"
#include "linux/seccomp_policy.h"

namespace hearth::linux {
namespace {

// Runs `body` in a child that lives under the default policy.
int under_default_policy(const std::function<int()>& body) {
  const std::vector<sock_filter> filter = compile(default_seccomp_policy());
  return run_in_child([&] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 90;
    if (const int error = install_filter(filter); error != 0) return 91;
    return body();
  });
}

// The errno of a call that must fail.
int error_of(long result) {
  return result == -1 ? errno : 0;
}

TEST(SeccompDefault, OrdinaryThingsWork) {
  EXPECT_EQ(under_default_policy([] {
              const pid_t pid = ::fork();
              if (pid == 0) ::_exit(7);
              int status = 0;
              if (::waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7) return 1;

              int ends[2];
              if (::pipe(ends) != 0 || ::write(ends[1], "x", 1) != 1) return 2;
              const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
              if (socket < 0 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 3;
              int waiting = 0;
              if (::ioctl(ends[0], FIONREAD, &waiting) != 0) return 4;
              return ::syscall(SYS_getrandom, &waiting, sizeof waiting, 0) > 0 ? 0 : 5;
            }),
            0);
}

TEST(SeccompDefault, ThreadsStart) {
  EXPECT_EQ(under_default_policy([] {
              pthread_t thread;
              int answer = 0;
              const auto body = [](void* out) -> void* {
                *static_cast<int*>(out) = 42;
                return nullptr;
              };
              if (::pthread_create(&thread, nullptr, body, &answer) != 0) return 1;
              ::pthread_join(thread, nullptr);
              return answer == 42 ? 0 : 2;
            }),
            0);
}

TEST(SeccompDefault, ProgramsRun) {
  if (::access("/bin/busybox", X_OK) != 0) GTEST_SKIP() << "needs /bin/busybox";
  EXPECT_EQ(under_default_policy([] {
              const char* command[] = {"sh", "-c", "busybox echo hi | busybox grep -q hi && exit 3",
                                       nullptr};
              ::execv("/bin/busybox", const_cast<char**>(command));
              return 1;
            }),
            3);
}

TEST(SeccompDefault, RefusedCallsGiveTheDocumentedError) {
  EXPECT_EQ(under_default_policy([] {
              if (error_of(::mount("x", "/", "tmpfs", 0, nullptr)) != EPERM) return 1;
              if (error_of(::unshare(CLONE_NEWUSER)) != EPERM) return 2;
              if (error_of(::setns(-1, 0)) != EPERM) return 3;
              if (error_of(::syscall(SYS_io_uring_setup, 1, nullptr)) != EPERM) return 4;
              if (error_of(::syscall(SYS_bpf, 0, nullptr, 0)) != EPERM) return 5;
              if (error_of(::syscall(SYS_userfaultfd, 0)) != EPERM) return 6;
              if (error_of(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)) != EPERM) return 7;
              if (error_of(::syscall(SYS_open_by_handle_at, 0, nullptr, 0)) != EPERM) return 8;
              if (error_of(::syscall(SYS_clone3, nullptr, 0)) != ENOSYS) return 9;
              if (error_of(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) != EPERM) {
                return 10;
              }
              if (error_of(::syscall(1000)) != ENOSYS) return 11;
              if (error_of(::personality(0x40000)) != EPERM) return 12;
              return 0;
            }),
            0);
}

TEST(SeccompDefault, RefusedSocketsDoNotExist) {
  EXPECT_EQ(under_default_policy([] {
              for (const int family : {AF_VSOCK, AF_ALG, AF_PACKET, AF_CAN, AF_BLUETOOTH}) {
                if (error_of(::socket(family, SOCK_STREAM, 0)) != EAFNOSUPPORT) return family;
              }
              return error_of(::syscall(SYS_socket, 1L << 32 | AF_VSOCK, SOCK_STREAM, 0)) ==
                             EAFNOSUPPORT
                         ? 0
                         : 1;
            }),
            0);
}

TEST(SeccompDefault, NothingIsPushedIntoATerminal) {
  EXPECT_EQ(under_default_policy([] {
              const char byte = 'x';
              // Not a terminal: EPERM instead of ENOTTY shows that the filter answered.
              const int file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
              if (error_of(::syscall(SYS_ioctl, file, TIOCSTI, &byte)) != EPERM) return 1;
              if (error_of(::syscall(SYS_ioctl, file, 1L << 32 | TIOCSTI, &byte)) != EPERM)
                return 2;
              return error_of(::syscall(SYS_ioctl, file, TIOCGWINSZ, &byte)) == ENOTTY ? 0 : 3;
            }),
            0);
}

TEST(SeccompDefault, AForeignEntryIsDeath) {
#if defined(__x86_64__)
  EXPECT_EQ(under_default_policy([] {
              // getpid by way of the 32-bit entry.
              long number = 20;
              asm volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
              return 0;
            }),
            -SIGSYS);
  EXPECT_EQ(under_default_policy([] { return static_cast<int>(::syscall(0x40000000 | 39)); }),
            -SIGSYS);
#else
  GTEST_SKIP() << "needs x86-64";
#endif
}

TEST(InstallFilter, SaysWhyItCannot) {
  EXPECT_EQ(run_in_child([] { return install_filter({}); }), EINVAL);
}

}  // namespace
}  // namespace hearth::linux
