#include "linux/pty.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

bool echoes(int terminal_fd) {
  termios mode{};
  EXPECT_EQ(::tcgetattr(terminal_fd, &mode), 0);
  return (mode.c_lflag & ECHO) != 0;
}

TEST(Pty, CarriesBytesBothWays) {
  const Pty pty = open_pty(24, 80);

  write_all(pty.slave.get(), "out\n");
  char buffer[16];
  ASSERT_EQ(::read(pty.master.get(), buffer, sizeof buffer), 5);
  EXPECT_EQ(std::string_view(buffer, 5), "out\r\n");

  write_all(pty.master.get(), "in\n");
  ASSERT_EQ(::read(pty.slave.get(), buffer, sizeof buffer), 3);
  EXPECT_EQ(std::string_view(buffer, 3), "in\n");
}

TEST(Pty, IsClosedOnExecAndNobodysControllingTerminal) {
  const Pty pty = open_pty(24, 80);

  EXPECT_NE(::fcntl(pty.master.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(pty.slave.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(::tcgetsid(pty.slave.get()), -1);
}

TEST(Pty, HasASize) {
  const Pty pty = open_pty(24, 80);
  EXPECT_EQ(get_window_size(pty.slave.get()), (WindowSize{.rows = 24, .cols = 80}));

  set_window_size(pty.master.get(), 50, 132);
  EXPECT_EQ(get_window_size(pty.slave.get()), (WindowSize{.rows = 50, .cols = 132}));
}

TEST(Pty, ThrowsForWhatIsNoTerminal) {
  const Pipe pipe = make_pipe();

  EXPECT_THROW(set_window_size(pipe.read.get(), 1, 1), Error);
  EXPECT_THROW(get_window_size(pipe.read.get()), Error);
  EXPECT_THROW(open_pty(1, 1, "/dev/null"), Error);
  EXPECT_THROW(open_pty(1, 1, "/nowhere/ptmx"), Error);
  EXPECT_THROW(RawTerminal{pipe.read.get()}, Error);
}

TEST(RawTerminal, IsRawWhileItLives) {
  const Pty pty = open_pty(24, 80);
  ASSERT_TRUE(echoes(pty.slave.get()));
  {
    const RawTerminal raw(pty.slave.get());
    EXPECT_FALSE(echoes(pty.slave.get()));
    write_all(pty.slave.get(), "\n");
    char byte[4];
    EXPECT_EQ(::read(pty.master.get(), byte, sizeof byte), 1);  // no carriage return added
  }
  EXPECT_TRUE(echoes(pty.slave.get()));
}

}  // namespace
}  // namespace hearth::linux
