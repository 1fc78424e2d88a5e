#include "linux/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/error.h"
#include "base/on_failure.h"
#include "linux/sealed_memfd.h"
#include "linux/spawn_rules.h"

namespace hearth::linux {
namespace {

// True until the pipe ends.
bool read_more(int fd, std::string& output) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  output.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// Our own variables, but those that `over` sets anew, and these.
std::vector<char*> environment_with(const std::vector<std::string>& over) {
  std::vector<char*> all;
  for (char** own = environ; own != nullptr && *own != nullptr; ++own) {
    const bool is_replaced = std::ranges::any_of(
        over, [&](const std::string& one) { return name_of(one) == name_of(*own); });
    if (!is_replaced) all.push_back(*own);
  }
  for (const std::string& one : over) all.push_back(const_cast<char*>(one.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

Pidfd start_program(const std::vector<std::string>& arguments, const ProgramStreams& streams,
                    const std::vector<std::string>& environment) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp = environment_with(environment);
  SpawnRules plan;
  plan.connect(streams.input_fd, STDIN_FILENO);
  plan.connect(streams.output_fd, STDOUT_FILENO);
  plan.connect(streams.error_fd, STDERR_FILENO);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, argv[0], plan.actions(), plan.attributes(), argv.data(), envp.data());
  if (error == ENOENT) fail(Code::not_found, "there is no program '{}' in PATH", arguments[0]);
  if (error != 0) throw_errno_text(error, fmt::format("start '{}'", arguments[0]));
  auto pidfd = Pidfd::find(pid);
  if (!pidfd) fail(Code::internal, "'{}' was reaped by someone else", arguments[0]);
  return *std::move(pidfd);
}

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramOptions& options) {
  const Deadline deadline = Deadline::after(options.timeout);
  // Not by a pipe: a program that ends without reading would end us with SIGPIPE.
  const Fd in = make_sealed_memfd("input", options.input);
  Pipe out = make_pipe();
  const ProgramStreams streams{
      .input_fd = in.get(), .output_fd = out.write.get(), .error_fd = options.error_fd};
  const Pidfd child = start_program(arguments, streams, options.environment);
  OnFailure kill([&] {
    child.send_signal(SIGKILL);
    child.wait_for_end(Deadline::never());
    child.reap();
  });
  out.write.reset();

  ProgramResult result;
  while (true) {
    pollfd waiting{.fd = out.read.get(), .events = POLLIN};
    const int ready = ::poll(&waiting, 1, deadline.poll_milliseconds());
    if (ready == 0) fail(Code::timeout, "'{}' takes longer than allowed", arguments[0]);
    if (ready > 0 && !read_more(out.read.get(), result.output)) break;
    if (result.output.size() > options.max_output) {
      fail(Code::exhausted, "'{}' writes more than {} bytes", arguments[0], options.max_output);
    }
  }
  if (!child.wait_for_end(deadline)) {
    fail(Code::timeout, "'{}' takes longer than allowed", arguments[0]);
  }
  kill.release();
  result.status = child.reap().value_or(ExitStatus{.code = 1});
  return result;
}

ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input,
                          std::size_t max_output, Duration timeout) {
  return run_program(arguments, {.input = input, .max_output = max_output, .timeout = timeout});
}

}  // namespace hearth::linux
