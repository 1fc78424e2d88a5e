#include "linux/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/error.h"

namespace hearth::linux {

Pty open_pty(std::uint16_t rows, std::uint16_t cols, const std::string& ptmx) {
  Pty pty;
  pty.master = open_file(ptmx, O_RDWR | O_NOCTTY);
  int locked = 0;
  if (::ioctl(pty.master.get(), TIOCSPTLCK, &locked) != 0) throw_errno("unlock a terminal");
  pty.slave = Fd(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) throw_errno("open the other end of a terminal");
  set_window_size(pty.master.get(), rows, cols);
  return pty;
}

void set_window_size(int terminal_fd, std::uint16_t rows, std::uint16_t cols) {
  const winsize size{.ws_row = rows, .ws_col = cols};
  if (::ioctl(terminal_fd, TIOCSWINSZ, &size) != 0) {
    throw_errno("set the size of a terminal to {}x{}", cols, rows);
  }
}

WindowSize get_window_size(int terminal_fd) {
  winsize size{};
  if (::ioctl(terminal_fd, TIOCGWINSZ, &size) != 0) throw_errno("read the size of a terminal");
  return {.rows = size.ws_row, .cols = size.ws_col};
}

RawTerminal::RawTerminal(int terminal_fd) : terminal_fd_(terminal_fd), before_{} {
  if (::tcgetattr(terminal_fd_, &before_) != 0) throw_errno("read the mode of a terminal");
  termios raw = before_;
  ::cfmakeraw(&raw);
  if (::tcsetattr(terminal_fd_, TCSADRAIN, &raw) != 0) throw_errno("set a terminal to raw mode");
}

// Waits for what was printed in raw mode, keeps what was typed ahead for the shell.
RawTerminal::~RawTerminal() {
  ::tcsetattr(terminal_fd_, TCSADRAIN, &before_);
}

}  // namespace hearth::linux
