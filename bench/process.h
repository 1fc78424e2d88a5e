// Commands as a shell would start them, without the shell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::bench {

using Moment = std::chrono::steady_clock::time_point;
inline Moment now() {
  return std::chrono::steady_clock::now();
}
inline double us_between(Moment from, Moment to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// No command of a benchmark takes a second; one that takes this long hangs.
inline constexpr Duration kPatience = std::chrono::seconds(10);

// Where a program of that name is on PATH. Throws Error(not_found).
std::string find_program(const std::string& name);

// Borrowed; -1: /dev/null.
struct CommandFds {
  int input = -1;
  int output = -1;
};

// A child in a process group of its own: Ctrl-C at our terminal is not for it. Killed and reaped
// on destruction, unless its end was waited for.
class Child {
 public:
  Child() = default;
  Child(const std::vector<std::string>& words, const CommandFds& fds);
  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.fd(); }

  // Throws Error(timeout) when it does not end by itself, Error(internal) with what it complained
  // about when it fails.
  void wait(Duration patience = kPatience);

 private:
  pid_t pid_ = 0;
  linux::Pidfd pidfd_;  // empty: reaped
  std::string name_;
};

// Runs a command to its end. Throws as Child::wait() does.
void run_command(const std::vector<std::string>& words, const CommandFds& fds = {});

// The same, and the first line that it wrote.
std::string first_line_of(const std::vector<std::string>& words);

// A pipe that the program of the benchmark writes its one byte into.
class Witness {
 public:
  Witness() : pipe_(linux::make_pipe()) {}

  int fd() const { return pipe_.write.get(); }

  // When the byte came; nothing when the child ended without it.
  std::optional<Moment> wait_for_byte(const Child& child);

  // Takes a byte that is there already. Throws Error(internal) when none is.
  void take_byte();

 private:
  linux::Pipe pipe_;
};

// One command that makes a sandbox, runs the program in it and is over when the sandbox is gone.
// Microseconds. Throws Error(internal) when the program did not run.
double time_command(const std::vector<std::string>& words, Witness& witness);

// Commands one after the other, until all have ended. Microseconds.
double time_commands(const std::vector<std::vector<std::string>>& commands);

// What a program wrote as its figure. Throws Error(internal) for anything but a number above 0.
double parse_figure(const std::string& text);

// The floor: vfork, exec and wait, nothing else. Microseconds.
double time_vfork_exec(const std::string& program, int output_fd);

}  // namespace hearth::bench
