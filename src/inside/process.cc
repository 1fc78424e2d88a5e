#include "inside/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "guest/awake.h"
#include "guest/command_line.h"
#include "linux/pty.h"

namespace hearth::inside {
namespace {

using namespace std::chrono_literals;

// What is read at once; clients are used to no more.
constexpr std::size_t kPipePiece = std::size_t{32} << 10;
constexpr std::size_t kTerminalPiece = std::size_t{16} << 10;
// The kernel brings what was written to a terminal to its other end a little later.
constexpr Duration kTerminalPatience = 100ms;
// What is still read when a process has ended and its output may not be waited for: all that a pipe
// or a terminal holds. Somebody else may go on writing to it for ever.
constexpr int kLastReads = 64;
// Until a killed process is gone; more only in the kernel's bad moments.
constexpr Duration kKillPatience = 2s;
// How soon that is noticed while whoever reads waits for a slow listener.
constexpr Duration kKillLook = 2ms;
// How soon a writer that waits notices that its input was closed.
constexpr int kInputMilliseconds = 100;

linux::Fd make_bell() {
  linux::Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) throw_errno("make an eventfd");
  return bell;
}

void ring_bell(const linux::Fd& bell) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(bell.get(), &one, sizeof one);
}

void silence_bell(const linux::Fd& bell) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell.get(), &count, sizeof count);
}

int sooner(int one, int other) {
  if (one < 0 || other < 0) return std::max(one, other);
  return std::min(one, other);
}

bool has_left(const pollfd& peer) {
  return (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

void poll_and_flush(std::span<pollfd> waits, int milliseconds, const Listener& listener) {
  if (listener.flush) {
    if (::poll(waits.data(), waits.size(), 0) > 0) return;
    listener.flush();
  }
  ::poll(waits.data(), waits.size(), milliseconds);
}

Process::Process(guest::Connection connection, StartOrder order)
    : connection_(std::move(connection)),
      config_(std::move(order.config)),
      tag_(std::move(order.tag)),
      has_terminal_(order.request.terminal),
      deadline_(guest::deadline_of(order.request)),
      buffer_size_(has_terminal_ ? kTerminalPiece : kPipePiece),
      buffer_(std::make_unique_for_overwrite<char[]>(buffer_size_)),
      bell_(make_bell()) {
  start(order);
}

void Process::start(const StartOrder& order) {
  if (has_terminal_) {
    guest::Connection::Process started = connection_.start(order.request, {});
    pid_ = started.pid;
    terminal_ = std::move(started.terminal);
    linux::set_nonblocking(terminal_.get(), true);
    input_ = std::make_shared<linux::Fd>(linux::duplicate(terminal_.get()));
    return;
  }
  linux::Pipe out = linux::make_pipe();
  linux::Pipe err = linux::make_pipe();
  linux::Pipe in = order.input ? linux::make_pipe() : linux::Pipe();
  pid_ = connection_
             .start(order.request,
                    {.input = in.read.get(), .output = out.write.get(), .error = err.write.get()})
             .pid;
  linux::set_nonblocking(out.read.get(), true);
  linux::set_nonblocking(err.read.get(), true);
  output_ = std::move(out.read);
  error_ = std::move(err.read);
  if (order.input) {
    linux::set_nonblocking(in.write.get(), true);
    input_ = std::make_shared<linux::Fd>(std::move(in.write));
  }
}

std::optional<ProcessEnd> Process::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

bool Process::is_gone() const {
  const std::lock_guard lock(mutex_);
  return end_ || killed_ || (deadline_.passed() && is_exit_told());
}

std::chrono::steady_clock::time_point Process::ended_at() const {
  const std::lock_guard lock(mutex_);
  return ended_at_;
}

// With the lock held.
void Process::ring() const {
  if (bell_) ring_bell(bell_);
}

bool Process::may_read() const {
  const std::lock_guard lock(mutex_);
  return waited_for_ == 0;
}

bool Process::is_hurried() const {
  const std::lock_guard lock(mutex_);
  return hurried_;
}

std::size_t Process::add_waits(std::span<pollfd> waits) const {
  std::size_t count = 0;
  const auto add = [&](int fd) { waits[count++] = {.fd = fd, .events = POLLIN, .revents = 0}; };
  add(bell_.get());
  if (!exit_) add(connection_.fd());
  if (may_read()) {
    if (output_) add(output_.get());
    if (error_) add(error_.get());
    if (terminal_) add(terminal_.get());
  }
  return count;
}

// Whoever has to take something first rings the bell.
int Process::patience() const {
  if (!may_read()) return -1;
  const int until_deadline = exit_ ? deadline_.poll_milliseconds() : -1;
  return sooner(terminal_patience_.poll_milliseconds(), until_deadline);
}

Process::Pumped Process::pump(std::span<const pollfd> waits, const Listener* own) {
  const auto is_ready = [&](int fd) {
    return std::ranges::any_of(
        waits, [fd](const pollfd& each) { return each.fd == fd && each.revents != 0; });
  };
  if (is_ready(bell_.get())) silence_bell(bell_);
  const bool exited = !exit_ && is_ready(connection_.fd());
  bool spoke = false;
  const auto try_stream = [&](Stream stream, linux::Fd& fd) {
    if (fd && is_ready(fd.get()) && may_read()) spoke |= read_stream(stream, fd, own);
  };
  try_stream(Stream::output, output_);
  try_stream(Stream::error, error_);
  try_stream(Stream::terminal, terminal_);
  if (exited) read_exit();
  if (exit_ && is_over(own)) {
    finish();
    return Pumped::over;
  }
  return spoke ? Pumped::output : Pumped::nothing;
}

// True when something was there.
bool Process::read_stream(Stream stream, linux::Fd& fd, const Listener* own) {
  ssize_t got = 0;
  do {
    got = ::read(fd.get(), buffer_.get(), buffer_size_);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {  // all ends are closed; a terminal says EIO
    fd.reset();
    return false;
  }
  if (exit_ && terminal_ && --last_reads_ > 0)
    terminal_patience_ = Deadline::after(kTerminalPatience);
  const std::string_view bytes(buffer_.get(), static_cast<std::size_t>(got));
  publish(stream, bytes);
  if (own != nullptr) own->output(stream, bytes);
  return true;
}

void Process::publish(Stream stream, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (seats_.empty()) return;
  chunk_ = std::make_shared<const Chunk>(Chunk{.stream = stream, .bytes = std::string(bytes)});
  waited_for_ = seats_.size();
  for (Seat& seat : seats_) {
    seat.waits = true;
    ring_bell(seat.bell);
  }
}

void Process::read_exit() {
  ProcessEnd ended{.status = {.code = 0, .signal = SIGKILL}, .timed_out = false};
  try {
    const auto exited = connection_.wait(Deadline::after(Duration::zero()));
    if (!exited) return;
    ended = {.status = exited->status, .timed_out = exited->timed_out};
  } catch (const Error&) {
    connection_broke_ = true;  // the sandbox is ending
  }
  exit_ = ended;
  last_reads_ = kLastReads;
  if (terminal_) terminal_patience_ = Deadline::after(kTerminalPatience);
  const std::lock_guard lock(mutex_);
  has_exited_ = true;
  hurried_ = hurried_ || ended.timed_out || connection_broke_;
  exited_.notify_all();
}

// False when listeners have to take something first.
bool Process::read_all_there_is(const Listener* own) {
  bool found = true;
  while (found && last_reads_ > 0) {
    found = false;
    --last_reads_;
    for (auto [stream, fd] :
         {std::pair(Stream::output, &output_), std::pair(Stream::error, &error_),
          std::pair(Stream::terminal, &terminal_)}) {
      if (!*fd) continue;
      if (!may_read()) return false;
      found |= read_stream(stream, *fd, own);
    }
  }
  return true;
}

// Of a process that has exited: whether its output is over too.
bool Process::is_over(const Listener* own) {
  if (!is_open()) return may_read();
  const bool is_late = deadline_.passed();
  const bool is_quiet = terminal_ && terminal_patience_.passed();
  if (!is_quiet && !is_late && !is_hurried()) return false;
  if (!read_all_there_is(own)) return false;
  if (is_late && is_open()) exit_->timed_out = true;
  return may_read();
}

void Process::finish() {
  output_.reset();
  error_.reset();
  terminal_.reset();
  buffer_.reset();  // it is remembered for a while, and shall cost little
  const std::lock_guard lock(mutex_);
  input_.reset();
  bell_.reset();
  end_ = exit_;
  ended_at_ = guest::AwakeClock::here().now();
  for (const Seat& seat : seats_) ring_bell(seat.bell);
}

std::optional<guest::Connection> Process::take_connection() {
  if (connection_broke_) return std::nullopt;
  return std::move(connection_);
}

std::shared_ptr<const Process::Chunk> Process::take_chunk(Seat& seat) {
  const std::lock_guard lock(mutex_);
  if (!seat.waits) return nullptr;
  seat.waits = false;
  if (--waited_for_ > 0) return chunk_;
  ring();
  return std::exchange(chunk_, nullptr);
}

void Process::leave(std::list<Seat>::iterator seat) {
  take_chunk(*seat);
  const std::lock_guard lock(mutex_);
  seats_.erase(seat);
}

Heard Process::listen(const Listener& listener) {
  const auto seat = [this] {
    const std::lock_guard lock(mutex_);
    return seats_.insert(seats_.end(), Seat{.bell = make_bell()});
  }();
  const std::shared_ptr<void> leaving(nullptr, [&](void*) { leave(seat); });
  listener.begin();
  Deadline idle = Deadline::after(listener.idle_after);
  while (true) {
    if (const auto chunk = take_chunk(*seat)) {
      listener.output(chunk->stream, chunk->bytes);
      idle = Deadline::after(listener.idle_after);
      continue;
    }
    if (end()) return Heard::end;
    pollfd waits[] = {{.fd = seat->bell.get(), .events = POLLIN, .revents = 0},
                      {.fd = listener.peer_fd, .events = POLLRDHUP, .revents = 0}};
    poll_and_flush(waits, sooner(idle.poll_milliseconds(), listener.deadline.poll_milliseconds()),
                   listener);
    if (waits[0].revents != 0) {
      silence_bell(seat->bell);
      continue;
    }
    if (has_left(waits[1])) return Heard::peer_left;
    if (listener.deadline.passed()) return Heard::deadline;
    if (!idle.passed()) continue;
    listener.idle();
    idle = Deadline::after(listener.idle_after);
  }
}

std::shared_ptr<linux::Fd> Process::input() const {
  const std::lock_guard lock(mutex_);
  return input_;
}

void Process::write(Stream stream, std::string_view bytes, int peer_fd) {
  if (has_terminal_ != (stream == Stream::terminal)) {
    fail(Code::internal, "{}",
         has_terminal_ ? "the process has a terminal; its input goes there, not to stdin"
                       : "the process has no terminal; its input goes to stdin");
  }
  const std::lock_guard one_at_a_time(input_mutex_);
  while (!bytes.empty()) {
    const std::shared_ptr<linux::Fd> input = this->input();
    if (!input) fail(Code::internal, "error writing to stdin: stdin not enabled or closed");
    const ssize_t written = ::write(input->get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    // Whatever the kernel says: clients would take "unavailable" for the end of the sandbox.
    if (errno != EAGAIN) fail(Code::internal, "error writing to stdin: {}", errno_text(errno));
    pollfd waits[] = {{.fd = input->get(), .events = POLLOUT, .revents = 0},
                      {.fd = peer_fd, .events = POLLRDHUP, .revents = 0}};
    ::poll(waits, 2, kInputMilliseconds);
    if (has_left(waits[1])) fail(Code::unavailable, "the client left before its input was taken");
  }
}

void Process::close_input() {
  if (has_terminal_) fail(Code::conflict, "a terminal's input has no end; send Ctrl-D instead");
  const std::lock_guard lock(mutex_);
  input_.reset();
}

void Process::resize(std::uint16_t rows, std::uint16_t columns) {
  const auto terminal = has_terminal_ ? input() : nullptr;
  if (!terminal) fail(Code::invalid, "the process has no terminal");
  linux::set_window_size(terminal->get(), rows, columns);
}

// With the lock held: whether the connection, which is ours until the exit was read, has it.
bool Process::is_exit_told() const {
  if (has_exited_) return true;
  pollfd waited{.fd = connection_.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&waited, 1, 0) > 0;
}

void Process::send_signal(int signal) {
  std::unique_lock lock(mutex_);
  hurried_ = true;
  ring();
  if (!has_exited_) connection_.send_signal(signal, /*to_group=*/false);
  if (signal != SIGKILL) return;
  const Deadline patience = Deadline::after(kKillPatience);
  while (!killed_ && !patience.passed()) {
    exited_.wait_for(lock, kKillLook, [this] { return has_exited_; });
    killed_ = is_exit_told();
  }
}

}  // namespace hearth::inside
