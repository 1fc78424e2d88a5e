#include "linux/pidfd.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>

#include "base/error.h"

namespace hearth::linux {

ExitStatus exit_status_from_wait(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.code = 0, .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

std::optional<Pidfd> Pidfd::find(pid_t pid) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd) return Pidfd(std::move(fd));
  if (errno == ESRCH) return std::nullopt;
  throw_errno("open a pidfd of process {}", pid);
}

bool Pidfd::send_signal(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, fd_.get(), signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  throw_errno("send signal {}", signal);
}

bool Pidfd::wait_for_end(Deadline deadline) const {
  while (true) {
    pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw_errno("wait for a process");
  }
}

std::optional<ExitStatus> Pidfd::reap() const {
  siginfo_t info{};
  constexpr auto kPidfd =
      static_cast<idtype_t>(3);  // P_PIDFD, which glibc 2.36 does not name in C++
  while (::waitid(kPidfd, static_cast<id_t>(fd_.get()), &info, WEXITED) != 0) {
    if (errno == ECHILD) return std::nullopt;
    if (errno != EINTR) throw_errno("reap a process");
  }
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status, .signal = 0};
  return ExitStatus{.code = 0, .signal = info.si_status};
}

std::optional<std::uint64_t> start_time_of(pid_t pid) {
  std::string stat;
  try {
    stat = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return std::nullopt;
    throw;
  }
  // The second field is the program's name in brackets and may hold anything, brackets too.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) fail(Code::internal, "/proc/{}/stat has no name", pid);
  constexpr int kStartTime = 22;
  std::size_t at = name_end + 2;
  for (int field = 3; field < kStartTime; ++field) at = stat.find(' ', at) + 1;
  std::uint64_t value = 0;
  std::from_chars(stat.data() + at, stat.data() + stat.size(), value);
  return value;
}

}  // namespace hearth::linux
