// Looks on at a detached command, and types for it. What it writes comes through the guest, which
// keeps it for others too; what we type goes straight into its pipe or terminal.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "cli/attachment.h"
#include "cli/command.h"
#include "cli/detach_keys.h"
#include "cli/verbs.h"
#include "linux/pty.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kPiece = 4096;

class Onlooker {
 public:
  Onlooker(const AttachOptions& options, guest::Connection& guest, Signals& signals)
      : options_(options), guest_(guest), signals_(signals) {
    input_ = std::move(guest_.attach(options.pid).input);
    terminal_ = input_ && ::isatty(input_.get()) != 0;
    forwards_ = input_ && !options.no_stdin;
    if (input_) linux::set_nonblocking(input_.get(), true);
    if (terminal_ && forwards_ && ::isatty(STDIN_FILENO) != 0) raw_.emplace(STDIN_FILENO);
    adopt_window_size();
  }

  // The exit code.
  int look_on() {
    while (!exit_code_) {
      std::array<pollfd, 4> waiting = {
          {{.fd = guest_.fd(), .events = POLLIN, .revents = 0},
           {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
           {.fd = forwards_ && typed_.empty() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0},
           {.fd = typed_.empty() ? -1 : input_.get(), .events = POLLOUT, .revents = 0}}};
      if (::poll(waiting.data(), waiting.size(), -1) < 0) {
        if (errno == EINTR) continue;
        throw_errno("wait for the command");
      }
      if (waiting[1].revents != 0) hear_signals();
      if (waiting[2].revents != 0) read_typed();
      if (waiting[3].revents != 0) pass_typed();
      if (waiting[0].revents != 0) show_next();
    }
    return *exit_code_;
  }

 private:
  void adopt_window_size() {
    if (!terminal_ || ::isatty(STDOUT_FILENO) == 0) return;
    const linux::WindowSize size = own_window_size();
    linux::set_window_size(input_.get(), size.rows, size.cols);
  }

  void show_next() {
    const auto event = guest_.next_of_attached();
    if (const auto* output = std::get_if<guest::Output>(&event)) {
      const bool to_stdout = output->stream == guest::Stream::output;
      return linux::write_all(to_stdout ? STDOUT_FILENO : STDERR_FILENO, output->bytes);
    }
    exit_code_ = exit_code_of(std::get<guest::Exited>(event));
  }

  void hear_signals() {
    while (const auto signal = signals_.next()) {
      if (*signal == SIGWINCH)
        adopt_window_size();
      else if (options_.forward_signals)
        guest_.send_signal(*signal);
      else
        exit_code_ = kExitSignalBase + *signal;
    }
  }

  void read_typed() {
    std::array<char, kPiece> piece;
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      // Others may go on typing: the command's input stays open.
      forwards_ = false;
      return;
    }
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
    typed_ = ::isatty(STDIN_FILENO) != 0 ? keys_.pass(bytes) : std::string(bytes);
    if (keys_.detached()) exit_code_ = 0;
  }

  void pass_typed() {
    const ssize_t written = ::write(input_.get(), typed_.data(), typed_.size());
    if (written >= 0) {
      typed_.erase(0, static_cast<std::size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
      // It reads no more.
      typed_.clear();
      forwards_ = false;
    }
  }

  const AttachOptions& options_;
  guest::Connection& guest_;
  Signals& signals_;
  linux::Fd input_;  // of the command, or none
  bool terminal_ = false;
  bool forwards_ = false;
  DetachKeys keys_;
  std::string typed_;  // not yet passed on
  std::optional<linux::RawTerminal> raw_;
  std::optional<int> exit_code_;
};

}  // namespace

int attach(const AttachOptions& options) {
  Signals signals = make_command_signals();
  guest::Connection guest(runtime::RuntimeClient(options.state_dir).connect(options.id));
  return Onlooker(options, guest, signals).look_on();
}

}  // namespace hearth::cli
