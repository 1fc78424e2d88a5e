#include "sudo/stand_in.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace hearth::sudo {
namespace {

using namespace std::chrono_literals;

constexpr std::array kPassedOn = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGWINCH};

// Last words of a command that has ended may still be on their way through its terminal. If others
// hold it, nobody says that these were the last.
constexpr Duration kLastWords = 200ms;

constexpr int kExitAfterSignal = 128;

}  // namespace

SignalQueue::SignalQueue() {
  sigset_t passed;
  sigemptyset(&passed);
  for (const int signal : kPassedOn) sigaddset(&passed, signal);
  if (::sigprocmask(SIG_BLOCK, &passed, nullptr) != 0) throw_errno("block signals");
  // Who reads our output no longer reads the command's, either: it will hear of it itself.
  ::signal(SIGPIPE, SIG_IGN);
  fd_ = linux::Fd(::signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw_errno("make a signalfd");
}

int SignalQueue::take() const {
  signalfd_siginfo came{};
  return ::read(fd_.get(), &came, sizeof came) == sizeof came ? static_cast<int>(came.ssi_signo)
                                                              : 0;
}

StandIn::StandIn(linux::Channel channel, const SignalQueue& signals, linux::Fd terminal)
    : channel_(std::move(channel)), signals_(signals), terminal_(std::move(terminal)) {
  if (!terminal_) return;
  linux::set_nonblocking(terminal_.get(), true);
  take_foreground();
}

// Keys are ours while our process group is the terminal's foreground: whoever else changes its mode
// or reads from it is stopped by the kernel.
void StandIn::take_foreground() {
  if (raw_ || !terminal_ || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
  raw_.emplace(STDIN_FILENO);
}

int StandIn::run() {
  while (!end_) {
    const bool wants_keys = raw_ && !keys_end_ && keys_.empty();
    const short screen = static_cast<short>(POLLIN | (keys_.empty() ? 0 : POLLOUT));
    std::array<pollfd, 4> waited = {
        {{.fd = channel_.fd(), .events = POLLIN, .revents = 0},
         {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
         {.fd = terminal_.get(), .events = screen, .revents = 0},
         {.fd = wants_keys ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) throw_errno("wait");
    if (waited[1].revents != 0) pass_signal_on();
    if ((waited[2].revents & POLLOUT) != 0) send_keys();
    if ((waited[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !show()) terminal_.reset();
    if (waited[3].revents != 0) read_keys();
    if (waited[0].revents != 0) take_reply();
  }
  show_rest();
  const linux::ExitStatus& status = end_->status;
  return status.signal != 0 ? kExitAfterSignal + status.signal : status.code;
}

void StandIn::take_reply() {
  linux::Message message;
  switch (channel_.try_receive(message)) {
    case linux::Channel::Arrival::nothing_yet:
      return;
    case linux::Channel::Arrival::hung_up:
      fail(Code::unavailable, "the sandbox hung up");
    case linux::Channel::Arrival::message:
      break;
  }
  const guest::Reply reply = guest::parse_reply(message.bytes);
  if (const auto* exited = std::get_if<guest::Exited>(&reply)) end_ = *exited;
}

void StandIn::pass_signal_on() {
  const int signal = signals_.take();
  if (signal == 0) return;
  if (signal == SIGTSTP) return stop_with_command();
  if (signal == SIGCONT) take_foreground();
  if (signal == SIGWINCH && terminal_) {
    const linux::WindowSize size = linux::get_window_size(STDIN_FILENO);
    // The command hears of it from its own terminal.
    return linux::set_window_size(terminal_.get(), size.rows, size.cols);
  }
  channel_.send(guest::encode(
      guest::Request(guest::SignalRequest{.signal = static_cast<std::uint32_t>(signal)})));
}

// SIGSTOP, not SIGTSTP: the command's group has no parent in its session, and the kernel spares
// those.
void StandIn::stop_with_command() {
  raw_.reset();
  channel_.send(guest::encode(guest::Request(guest::SignalRequest{.signal = SIGSTOP})));
  ::raise(SIGSTOP);
  // Whoever let us go on sent SIGCONT, which is in the queue.
}

void StandIn::read_keys() {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    keys_end_ = true;
    return;
  }
  keys_.assign(buffer.data(), static_cast<std::size_t>(got));
  send_keys();
}

void StandIn::send_keys() {
  if (!terminal_) return keys_.clear();
  const ssize_t sent = ::write(terminal_.get(), keys_.data(), keys_.size());
  if (sent > 0) keys_.erase(0, static_cast<std::size_t>(sent));
}

// False when the command's terminal is closed on its side.
bool StandIn::show() {
  std::array<char, 16384> buffer{};
  const ssize_t got = ::read(terminal_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  linux::write_all(STDOUT_FILENO, {buffer.data(), static_cast<std::size_t>(got)});
  return true;
}

void StandIn::show_rest() {
  while (terminal_) {
    pollfd waited{.fd = terminal_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, Deadline::after(kLastWords).poll_milliseconds());
    if (ready <= 0 || !show()) return;
  }
}

}  // namespace hearth::sudo
