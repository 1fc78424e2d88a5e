// A process that cannot be mistaken for another one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::linux {

// How a process ended.
struct ExitStatus {
  int code = 0;    // of exit(2), when signal is 0
  int signal = 0;  // that ended it, or 0

  bool operator==(const ExitStatus&) const = default;
};
ExitStatus exit_status_from_wait(int wait_status);

class Pidfd {
 public:
  Pidfd() = default;
  explicit Pidfd(Fd fd) : fd_(std::move(fd)) {}

  // Nothing when there is no such process. A pid may be recycled at any moment: to be sure of the
  // process, compare start_time_of() after opening.
  static std::optional<Pidfd> find(pid_t pid);

  // False when the process is gone already.
  bool send_signal(int signal) const;

  // True when the process has ended (perhaps unreaped), false when the deadline passed first.
  bool wait_for_end(Deadline deadline) const;

  // Reaps a child of ours. Nothing when it is not ours.
  std::optional<ExitStatus> reap() const;

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  Fd fd_;
};

// When a process started, in clock ticks since boot: with the pid, its identity until reboot.
// Nothing when there is no such process.
std::optional<std::uint64_t> start_time_of(pid_t pid);

}  // namespace hearth::linux
