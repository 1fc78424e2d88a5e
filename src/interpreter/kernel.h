// A process that runs cells: python, node or bash with our driver in it.
//
// Belongs to whoever has its context's turn. It is started through the guest's core, so it lives
// inside the sandbox's limits, as the sandbox's user; it ends with this object, and everything it
// started with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "guest/client.h"
#include "guest/core.h"
#include "interpreter/frames.h"
#include "interpreter/language.h"
#include "linux/fd.h"

namespace hearth::interpreter {

// One of the two pipes that the kernel and its children write to.
struct OutputPipe {
  linux::Fd fd;           // not there once all writers have gone
  std::string_view kind;  // "stdout" or "stderr"
  std::string tail;       // the beginning of a character whose rest has not come
};

class Kernel {
 public:
  // Returns when it takes cells. Throws Error: not_found (no such program), invalid (directory),
  // timeout, unavailable (it ended; the message says what it wrote).
  Kernel(guest::Core& core, Kit kit, const std::string& directory);

  // The cell as it is to be sent, with changes of the sandbox's variables since the last one.
  std::string message_for(Cell cell, const std::vector<std::string>& environment);
  std::uint32_t next_count() { return ++count_; }

  // How much of `bytes` went out without waiting. Throws Error(unavailable) when it is gone.
  std::size_t send_some(std::string_view bytes);
  // What it says; empty and `gone` when it ended; empty when there is nothing yet.
  std::string_view receive(bool& gone);
  bool is_alive() const;

  void interrupt() { connection_.send_signal(2); }
  // Returns when every signal has arrived, so that none hits the next cell. Throws Error.
  void settle(Deadline deadline) { connection_.hello(deadline); }
  std::optional<guest::Exited> wait_for_end(Deadline deadline) {
    return connection_.wait(deadline);
  }

  const Kit& kit() const { return kit_; }
  int control_fd() const { return control_.get(); }
  FrameReader& frames() { return frames_; }
  OutputPipe& output() { return output_; }
  OutputPipe& error() { return error_; }
  // What is there of `pipe`, without waiting; empty when nothing is.
  std::string_view read(OutputPipe& pipe);

 private:
  void start(guest::Core& core, const std::string& directory);
  void wait_until_ready(Deadline deadline);
  [[noreturn]] void throw_not_started();

  Kit kit_;
  std::vector<std::string> environment_;  // the sandbox's variables, as the kernel knows them
  Variables resets_;                      // that a shell has still to do
  std::vector<std::string> reset_unsets_;
  std::uint32_t count_ = 0;
  linux::Fd control_;
  OutputPipe output_{.kind = "stdout"};
  OutputPipe error_{.kind = "stderr"};
  FrameReader frames_;
  std::unique_ptr<char[]> buffer_;
  guest::Connection connection_;  // closing it ends the process
};

}  // namespace hearth::interpreter
