#include "interpreter/cell_run.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "interpreter/ascii_json.h"

namespace hearth::interpreter {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// How long to look for the answer before sleeping: waking up costs as much as a small cell takes.
// (The kernel does the same for the next cell, for longer: see drivers/python/driver.py.)
constexpr Duration kSpin = 50us;

// Events wait this long for others to go with; the second is for cells that never pause.
constexpr int kQuietMilliseconds = 1;
constexpr Duration kMostDelay = 5ms;

// Output waits longer for more of its kind: users take two prints for one message, as they come
// from Jupyter, which gathers for 200 ms. Whoever watches a cell notices that; this he does not.
constexpr Duration kMostHeld = 20ms;

constexpr Duration kKeepAlive = 5s;

// What an interrupted cell has to come to its end, before its kernel is given up.
constexpr Duration kInterruptPatience = 5s;

// Before a frame is looked at, what was written before it is read: a pipe's full capacity, and not
// what a flood adds meanwhile.
constexpr int kDrainReads = 32;

int sooner(int left, int right) {
  if (left < 0) return right;
  return right < 0 ? left : std::min(left, right);
}

}  // namespace

CellRun::Outcome CellRun::run(std::string message) {
  to_send_ = std::move(message);
  unsent_since_ = SteadyClock::now();
  send();
  spin();
  while (!is_over()) {
    step();
    if (rung_) return Outcome::stopped;
  }
  flush_tails();
  if (interrupting_ && !lost_) settle();
  return lost_ ? Outcome::kernel_lost : Outcome::done;
}

void CellRun::settle() {
  try {
    kernel_.settle(Deadline::after(kInterruptPatience));
  } catch (const Error&) {
    lost_ = true;  // it ended meanwhile
  }
}

void CellRun::spin() {
  const auto until = SteadyClock::now() + kSpin;
  while (!is_over() && SteadyClock::now() < until) read_control();
}

void CellRun::step() {
  const Ready ready = wait();
  if (ready.bell) {
    rung_ = true;
    return;
  }
  consider_interrupt();
  if (!to_send_.empty()) send();
  if (ready.control) {
    read_control();
  } else if (ready.outputs) {
    read_outputs(1);
  }
  keep_time(ready.nothing);
}

CellRun::Ready CellRun::wait() {
  // The kernel's word first: whatever was written before it is then seen as well. In the middle of
  // an event nothing else may be said.
  const bool busy = kernel_.frames().is_inside_event();
  const auto wanted = static_cast<short>(to_send_.empty() ? POLLIN : POLLIN | POLLOUT);
  std::array<pollfd, 5> polled = {{
      {.fd = kernel_.control_fd(), .events = wanted, .revents = 0},
      {.fd = busy ? -1 : kernel_.output().fd.get(), .events = POLLIN, .revents = 0},
      {.fd = busy ? -1 : kernel_.error().fd.get(), .events = POLLIN, .revents = 0},
      {.fd = bell_fd_, .events = POLLIN, .revents = 0},
      {.fd = stream_.client_left() ? -1 : stream_.client_fd(), .events = POLLRDHUP, .revents = 0},
  }};
  const int count = ::poll(polled.data(), polled.size(), wait_milliseconds());
  if (count < 0 && errno != EINTR) throw_errno("wait for a kernel");
  if (count <= 0) return {.nothing = true};
  if (polled[4].revents != 0) stream_.set_client_left();
  return {.control = (polled[0].revents & ~POLLOUT) != 0,
          .outputs = polled[1].revents != 0 || polled[2].revents != 0,
          .bell = polled[3].revents != 0};
}

int CellRun::wait_milliseconds() const {
  if (interrupting_) return sooner(next_signal_.poll_milliseconds(), give_up_.poll_milliseconds());
  if (stream_.has_events()) return kQuietMilliseconds;
  const auto until =
      stream_.holds_output() ? stream_.holds_since() + kMostHeld : stream_.last_sent() + kKeepAlive;
  const auto left = until - SteadyClock::now();
  return std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

void CellRun::keep_time(bool was_quiet) {
  if (kernel_.frames().is_inside_event()) return;  // what has come of it was added already
  const auto now = SteadyClock::now();
  if (!stream_.has_events()) {
    unsent_since_ = now;
  } else if (was_quiet || now - unsent_since_ >= kMostDelay) {
    stream_.send_events();
    unsent_since_ = now;
  }
  if (stream_.holds_output()) {
    if (now - stream_.holds_since() >= kMostHeld) stream_.flush();
  } else if (!stream_.client_left() && now - stream_.last_sent() >= kKeepAlive) {
    stream_.keep_alive();
  }
  consider_interrupt();
}

void CellRun::consider_interrupt() {
  if (!stream_.client_left() || is_over()) return;
  if (!interrupting_) {
    interrupting_ = true;
    give_up_ = Deadline::after(kInterruptPatience);
    next_signal_ = Deadline::after(kernel_.kit().signal_after);
    to_send_ += fmt::format("interrupt {}\n", count_);
    send();
  }
  if (give_up_.passed()) {
    lost_ = true;
  } else if (next_signal_.passed()) {
    kernel_.interrupt();
    next_signal_ = Deadline::after(kernel_.kit().signal_again);
  }
}

void CellRun::send() {
  to_send_.erase(0, kernel_.send_some(to_send_));
}

void CellRun::read_control() {
  bool gone = false;
  const std::string said(kernel_.receive(gone));
  if (said.empty() && !gone) return;
  if (!kernel_.frames().is_inside_event()) read_outputs(kDrainReads);
  if (gone) {
    lost_ = true;
    return report_end();
  }
  try {
    kernel_.frames().feed(said);
    while (const auto frame = kernel_.frames().next()) handle(*frame);
  } catch (const Error&) {
    lost_ = true;
    stream_.add_error("UnexpectedEndOfExecution", "The kernel cannot be understood any more", "");
  }
}

void CellRun::handle(const Frame& frame) {
  switch (frame.kind) {
    case Frame::Kind::ready:
      return;
    case Frame::Kind::sync:
      to_send_ += "ack\n";
      return send();
    case Frame::Kind::piece:
      return stream_.add(frame.piece);
    case Frame::Kind::event_end:
      return stream_.add("\n");
    case Frame::Kind::end:
      // A cell that was interrupted late may have ended twice.
      if (frame.count != count_) return;
      ended_ = true;
      if (frame.status != 0) {
        flush_tails();
        stream_.add_error("ExitStatus", fmt::to_string(frame.status),
                          fmt::format("the cell ended with exit status {}", frame.status));
      }
  }
}

void CellRun::read_outputs(int most_reads) {
  bool more = true;
  for (int i = 0; i < most_reads && more; ++i) {
    const bool output = read_output(kernel_.output());
    const bool error = read_output(kernel_.error());
    more = output || error;
  }
}

bool CellRun::read_output(OutputPipe& pipe) {
  const std::string_view read = kernel_.read(pipe);
  if (read.empty()) return false;
  std::string text = std::exchange(pipe.tail, {});
  text += read;
  const std::size_t whole = whole_characters(text);
  pipe.tail = text.substr(whole);
  if (whole > 0) stream_.add_output(pipe.kind, std::string_view(text).substr(0, whole));
  return true;
}

void CellRun::flush_tails() {
  if (kernel_.frames().is_inside_event()) return;
  for (OutputPipe* pipe : {&kernel_.output(), &kernel_.error()}) {
    if (!pipe->tail.empty()) stream_.add_output(pipe->kind, std::exchange(pipe->tail, {}));
  }
}

void CellRun::report_end() {
  std::optional<guest::Exited> exited;
  try {
    exited = kernel_.wait_for_end(Deadline::after(1s));
  } catch (const Error&) {
    // All the same: it is gone.
  }
  if (kernel_.frames().is_inside_event()) stream_.add("\n");
  flush_tails();
  const bool by_itself = exited && exited->status.signal == 0;
  if (kernel_.kit().is_shell && by_itself) {
    // `exit` in a cell: no accident, though its variables are gone.
    if (exited->status.code == 0) return;
    return stream_.add_error(
        "ExitStatus", fmt::to_string(exited->status.code),
        fmt::format("the shell ended with exit status {}", exited->status.code));
  }
  const std::string how = !exited     ? "for no known reason"
                          : by_itself ? fmt::format("with exit status {}", exited->status.code)
                                      : fmt::format("by signal {}", exited->status.signal);
  stream_.add_error("UnexpectedEndOfExecution",
                    fmt::format("The {} process ended {}", kernel_.kit().program, how), "");
}

}  // namespace hearth::interpreter
