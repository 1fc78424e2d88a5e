// Other people's programs, run to their end: credential helpers, mmdebstrap.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::registry {

struct ProgramStreams {
  int input_fd = -1;   // borrowed; -1: /dev/null
  int output_fd = -1;  //
  int error_fd = -1;   //
};

// A child process that has no descriptors but these three. `arguments[0]` is looked for in PATH.
// Throws Error(not_found) when there is no such program. Reap it.
linux::Pidfd start_program(const std::vector<std::string>& arguments,
                           const ProgramStreams& streams);

struct ProgramResult {
  linux::ExitStatus status;
  std::string output;
};

// Gives it `input`, waits for its end, keeps what it writes to standard output. Throws Error:
// not_found, timeout, exhausted (more than `max_output`); it is killed then. What it says on
// standard error is dropped.
ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input,
                          std::size_t max_output, Duration timeout);

}  // namespace hearth::registry
