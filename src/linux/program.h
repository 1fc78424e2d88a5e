// Other people's programs, run to their end: credential helpers, exec plugins, mmdebstrap.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::linux {

struct ProgramStreams {
  int input_fd = -1;   // borrowed; -1: /dev/null
  int output_fd = -1;  //
  int error_fd = -1;   //
};

// A child process that has no descriptors but these three. `arguments[0]` is looked for in PATH.
// `environment` ("NAME=value") is put over ours. Throws Error(not_found) when there is no such
// program. Reap it.
Pidfd start_program(const std::vector<std::string>& arguments, const ProgramStreams& streams,
                    const std::vector<std::string>& environment = {});

struct ProgramResult {
  ExitStatus status;
  std::string output;
};

struct ProgramOptions {
  std::string_view input;
  std::size_t max_output = 1 << 20;
  Duration timeout = std::chrono::seconds(30);
  std::vector<std::string> environment;  // as of start_program()
  int error_fd = -1;                     // its standard error, borrowed; -1: dropped
};

// Gives it the input, waits for its end, keeps what it writes to standard output. Throws Error:
// not_found, timeout, exhausted (more than allowed); it is killed then.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramOptions& options = {});
// The same with less to say; standard error is dropped.
ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input,
                          std::size_t max_output, Duration timeout);

}  // namespace hearth::linux
