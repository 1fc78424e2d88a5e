// Runs between clone and exec, in the memory of a process with many threads: linux/clone.h has the
// rules. Everything that can wait is done by the program itself.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "image/helper_birth_internal.h"
#include "linux/clone.h"

namespace hearth::image {
namespace {

using linux::raw_syscall;

template <typename T>
long address(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// Until now the child's ids are not mapped, it is nobody with all capabilities.
long take_identity() {
  long result = raw_syscall(SYS_setresgid, 0, 0, 0);
  if (result == 0) result = raw_syscall(SYS_setgroups, 0, 0);
  if (result == 0) result = raw_syscall(SYS_setresuid, 0, 0, 0);
  return result;
}

// Out of the way of the low numbers that others are about to get. Negative error.
long move_up(int fd) {
  return raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kHelperFds);
}

long place_descriptors(const HelperBirth& birth) {
  long high[kHelperFds];
  for (std::size_t i = 0; i < kHelperFds; ++i) {
    high[i] = move_up(birth.fds[i]);
    if (high[i] < 0) return high[i];
  }
  for (std::size_t i = 0; i < kHelperFds; ++i) {
    const long result = raw_syscall(SYS_dup3, high[i], static_cast<long>(i), 0);
    if (result < 0) return result;
  }
  return raw_syscall(SYS_close_range, kHelperFds, ~0U, CLOSE_RANGE_CLOEXEC);
}

[[noreturn]] void give_up(long boot_fd, long result) {
  const BirthFailure failure{.error = static_cast<std::int32_t>(-result)};
  raw_syscall(SYS_sendto, boot_fd, address(&failure), sizeof failure, MSG_NOSIGNAL, 0, 0);
  while (true) raw_syscall(SYS_exit_group, 1);
}

}  // namespace

void enter_helper(void* argument) {
  const HelperBirth& birth = *static_cast<const HelperBirth*>(argument);
  raw_syscall(SYS_close, birth.parent_fd);
  char go = 0;
  // A parent that closes the socket instead has changed its mind, or died.
  if (raw_syscall(SYS_recvfrom, birth.boot_fd, address(&go), 1, 0, 0, 0) != 1) {
    while (true) raw_syscall(SYS_exit_group, 1);
  }
  const long boot_fd = move_up(birth.boot_fd);
  const long program_fd = move_up(birth.program_fd);
  if (boot_fd < 0 || program_fd < 0) give_up(birth.boot_fd, boot_fd < 0 ? boot_fd : program_fd);
  long result = take_identity();
  if (result == 0) result = place_descriptors(birth);
  if (result < 0) give_up(boot_fd, result);

  char name[] = "hearth-unpack";
  char* const arguments[] = {name, nullptr};
  char* const environment[] = {nullptr};
  give_up(boot_fd, raw_syscall(SYS_execveat, program_fd, address(""), address(arguments),
                               address(environment), AT_EMPTY_PATH));
}

}  // namespace hearth::image
