#include "cli/attachment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

// What a terminal has had since there were punch cards; for when we have none to measure.
constexpr linux::WindowSize kUsualSize{.rows = 24, .cols = 80};

// Enough to say that it was no slip.
constexpr int kInterruptionsToKill = 3;

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool are_same_file(int left_fd, int right_fd) {
  struct stat left{};
  struct stat right{};
  return ::fstat(left_fd, &left) == 0 && ::fstat(right_fd, &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino &&
         left.st_rdev == right.st_rdev;
}

}  // namespace

linux::WindowSize own_window_size() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(fd) == 0) continue;
    const linux::WindowSize size = linux::get_window_size(fd);
    if (size.rows != 0 && size.cols != 0) return size;
  }
  return kUsualSize;
}

bool may_be_output(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || is_null_device(status);
}

bool may_be_input(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  const bool read_only = (::fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) == O_RDONLY;
  return S_ISFIFO(status.st_mode) || is_null_device(status) ||
         (S_ISREG(status.st_mode) && read_only);
}

Attachment::Attachment(guest::Connection& guest, Signals& signals, AttachmentOptions options)
    : guest_(guest), signals_(signals), options_(options) {
  if (options_.terminal && options_.interactive && ::isatty(STDIN_FILENO) == 0) {
    fail(Code::invalid, "-t with -i needs a terminal, and our input is none; leave out -t");
  }
}

int Attachment::hand_over_output(int own_fd) {
  if (may_be_output(own_fd)) {
    linux::open_to_everyone(own_fd);
    return own_fd;
  }
  linux::Pipe pipe = linux::make_pipe();
  linux::open_to_everyone(pipe.read.get());
  linux::set_nonblocking(pipe.read.get(), true);
  const int read_fd = pipe.read.get();
  outputs_.emplace_back(read_fd, own_fd, std::move(pipe.read));
  handed_.push_back(std::move(pipe.write));
  return handed_.back().get();
}

int Attachment::hand_over_input() {
  if (!options_.interactive) return -1;
  if (may_be_input(STDIN_FILENO)) {
    linux::open_to_everyone(STDIN_FILENO);
    return STDIN_FILENO;
  }
  linux::Pipe pipe = linux::make_pipe();
  linux::open_to_everyone(pipe.read.get());
  linux::set_nonblocking(pipe.write.get(), true);
  const int write_fd = pipe.write.get();
  input_.emplace(STDIN_FILENO, write_fd, std::move(pipe.write));
  handed_.push_back(std::move(pipe.read));
  return handed_.back().get();
}

void Attachment::start(guest::ExecRequest request) {
  request.terminal = options_.terminal;
  if (options_.terminal) {
    const linux::WindowSize size = own_window_size();
    request.rows = size.rows;
    request.columns = size.cols;
    attach_terminal(guest_.start(request, {}).terminal);
    return;
  }
  outputs_.clear();
  const int output = hand_over_output(STDOUT_FILENO);
  // One pipe where both go to one place: the order of what is written stays.
  const int error =
      are_same_file(STDOUT_FILENO, STDERR_FILENO) ? output : hand_over_output(STDERR_FILENO);
  const int input = hand_over_input();
  guest_.start(request, {.input = input, .output = output, .error = error});
  // Ours would keep the pipes open when the command closes its own.
  handed_.clear();
}

void Attachment::attach_terminal(linux::Fd terminal) {
  terminal_ = std::move(terminal);
  linux::set_nonblocking(terminal_.get(), true);
  outputs_.emplace_back(terminal_.get(), STDOUT_FILENO);
  if (!options_.interactive) return;
  input_.emplace(STDIN_FILENO, terminal_.get());
  raw_.emplace(STDIN_FILENO);
}

void Attachment::adopt_window_size() {
  if (!terminal_) return;
  const linux::WindowSize size = own_window_size();
  linux::set_window_size(terminal_.get(), size.rows, size.cols);
}

void Attachment::forward_signals() {
  while (const auto signal = signals_.next()) {
    if (*signal == SIGWINCH) {
      adopt_window_size();
      continue;
    }
    guest_.send_signal(++interruptions_ < kInterruptionsToKill ? *signal : SIGKILL);
  }
}

// Until something happens; then lets everything but the guest have its turn.
bool Attachment::pump_until_guest_speaks() {
  std::vector<pollfd> waiting = {{.fd = guest_.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
  waiting.push_back(input_ ? input_->waiting() : pollfd{.fd = -1, .events = 0, .revents = 0});
  for (const Pump& pump : outputs_) waiting.push_back(pump.waiting());
  if (::poll(waiting.data(), waiting.size(), -1) < 0) {
    if (errno == EINTR) return false;
    throw_errno("wait for the command");
  }
  if (waiting[1].revents != 0) forward_signals();
  if (waiting[2].revents != 0) input_->step();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (waiting[i + 3].revents != 0) outputs_[i].step();
  }
  return waiting[0].revents != 0;
}

guest::Exited Attachment::wait() {
  while (true) {
    if (!pump_until_guest_speaks()) continue;
    const auto exited = guest_.wait(Deadline::after({}));
    if (!exited) continue;
    for (Pump& pump : outputs_) pump.drain();
    raw_.reset();
    return *exited;
  }
}

}  // namespace hearth::cli
