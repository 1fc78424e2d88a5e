// Pseudo-terminals, and the caller's own terminal in raw mode. Everything throws Error.
#pragma once

#include <termios.h>

#include <cstdint>
#include <string>

#include "linux/fd.h"

namespace hearth::linux {

struct WindowSize {
  std::uint16_t rows = 0;
  std::uint16_t cols = 0;

  bool operator==(const WindowSize&) const = default;
};

struct Pty {
  Fd master;
  Fd slave;
};

// A new pair from the devpts instance behind `ptmx`. The slave is opened through the master, not by
// its path: that works in any mount namespace and cannot be led elsewhere (TIOCGPTPEER,
// Linux 4.13). Neither end becomes a controlling terminal.
Pty open_pty(std::uint16_t rows, std::uint16_t cols, const std::string& ptmx = "/dev/ptmx");

// Either end will do; the foreground process group on the slave gets SIGWINCH when it changed.
void set_window_size(int terminal_fd, std::uint16_t rows, std::uint16_t cols);
WindowSize get_window_size(int terminal_fd);

// Raw mode while it lives: bytes pass unchanged both ways, no echo, no signals from keys. Borrows
// the descriptor. Throws Error(internal), ENOTTY, for what is no terminal.
class RawTerminal {
 public:
  explicit RawTerminal(int terminal_fd);
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

 private:
  int terminal_fd_;
  termios before_;
};

}  // namespace hearth::linux
