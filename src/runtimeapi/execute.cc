#include "runtimeapi/execute.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/error.h"
#include "runtimeapi/shell_words.h"

namespace hearth::runtimeapi {
namespace {

// A process that a command leaves behind may hold its output for as long as it lives. The answer
// waits for so long after the command's end.
constexpr Duration kAfterwards = std::chrono::milliseconds(250);

// On the stack.
constexpr std::size_t kReadPiece = std::size_t{16} << 10;

class Run {
 public:
  Run(guest::Core& core, Captured& captured) : connection_(core.connect()), captured_(captured) {}

  guest::Exited run(const guest::ExecRequest& request) {
    {
      linux::Pipe output = linux::make_pipe();
      linux::Pipe error = linux::make_pipe();
      linux::set_nonblocking(output.read.get(), true);
      linux::set_nonblocking(error.read.get(), true);
      connection_.start(request,
                        {.input = -1, .output = output.write.get(), .error = error.write.get()});
      output_ = std::move(output.read);
      error_ = std::move(error.read);
    }
    Deadline deadline = Deadline::never();
    while (!ended_ || ((output_ || error_) && !deadline.passed())) {
      const bool is_told = wait(deadline);
      if (output_) captured_.read_output(output_);
      if (error_) captured_.read_error(error_);
      if (is_told) {
        ended_ = connection_.wait();
        if (ended_->timed_out) break;
        deadline = Deadline::after(kAfterwards);
      }
    }
    return *ended_;
  }

 private:
  // Whether the guest has something to say.
  bool wait(Deadline deadline) {
    // poll(2) passes over what is -1.
    std::array<pollfd, 3> looked{
        {{.fd = output_.get(), .events = POLLIN, .revents = 0},
         {.fd = error_.get(), .events = POLLIN, .revents = 0},
         {.fd = ended_ ? -1 : connection_.fd(), .events = POLLIN, .revents = 0}}};
    if (::poll(looked.data(), looked.size(), deadline.poll_milliseconds()) < 0 && errno != EINTR)
      throw_errno("wait for a command");
    return looked[2].revents != 0;
  }

  guest::Connection connection_;
  Captured& captured_;
  linux::Fd output_;
  linux::Fd error_;
  std::optional<guest::Exited> ended_;
};

}  // namespace

bool CaptureBudget::take(std::size_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= kMaxCaptured) return true;
  used_ -= bytes;
  return false;
}

void Captured::count(std::size_t bytes) {
  size_ += bytes;
  if (size_ <= kFreeCaptured) return;
  if (!budget_.take(bytes)) {
    fail(Code::exhausted,
         "there is more output than can be kept ({} bytes of all commands that run)", kMaxCaptured);
  }
  taken_ += bytes;
}

void Captured::read_into(linux::Fd& fd, std::string& text) {
  std::array<char, kReadPiece> piece;
  while (true) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fd.reset();
    count(static_cast<std::size_t>(got));
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) < piece.size()) return;
  }
}

std::optional<int> execute(guest::Core& core, const std::string& command,
                           const Execution& execution, Captured& captured) {
  guest::ExecRequest request;
  if (command.find('\0') != std::string::npos) fail(Code::invalid, "embedded null byte");
  request.command = split_shell_words(command);
  if (request.command.empty()) fail(Code::invalid, "there is no command");
  request.directory = execution.directory;
  request.timeout_milliseconds = static_cast<std::uint64_t>(
      std::chrono::ceil<std::chrono::milliseconds>(execution.timeout).count());
  try {
    const guest::Exited exited = Run(core, captured).run(request);
    if (exited.timed_out) return std::nullopt;
    return exited.status.signal != 0 ? -exited.status.signal : exited.status.code;
  } catch (const Error& error) {
    // As Python says it: clients look for these words.
    if (error.code() == Code::not_found) {
      fail(Code::not_found, "[Errno 2] No such file or directory: '{}'", request.command.front());
    }
    throw;
  }
}

}  // namespace hearth::runtimeapi
