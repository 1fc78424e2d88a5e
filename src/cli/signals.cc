#include "cli/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth::cli {

Signals::Signals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) throw_errno("block signals");
  ::signal(SIGPIPE, SIG_IGN);
  fd_ = linux::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw_errno("make a signalfd");
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace hearth::cli
