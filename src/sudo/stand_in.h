// A process that stands in for a command which is somebody else's child: its signals are the
// command's, and where the command has a terminal of its own, so are its keys and its screen.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "guest/protocol.h"
#include "linux/channel.h"
#include "linux/fd.h"
#include "linux/pty.h"

namespace hearth::sudo {

// Signals that are for the command, from now on and for good. What is ignored (by nohup, say) stays
// so. Throws Error.
class SignalQueue {
 public:
  SignalQueue();

  int fd() const { return fd_.get(); }
  // The next one; 0 for none.
  int take() const;

 private:
  linux::Fd fd_;
};

// One thread, blocking. Throws Error(unavailable) when the sandbox hangs up.
class StandIn {
 public:
  // `terminal` is the outer end of the command's; or none. The queue must outlive it.
  StandIn(linux::Channel channel, const SignalQueue& signals, linux::Fd terminal);

  // The command's exit code; 128 and the signal that ended it.
  int run();

 private:
  void pass_signal_on();
  void stop_with_command();
  void read_keys();
  void send_keys();
  bool show();
  void take_reply();
  void take_foreground();
  void show_rest();

  linux::Channel channel_;
  const SignalQueue& signals_;
  linux::Fd terminal_;
  std::optional<linux::RawTerminal> raw_;  // while we are in the foreground
  std::string keys_;                       // that the command has not taken yet
  bool keys_end_ = false;
  std::optional<guest::Exited> end_;
};

}  // namespace hearth::sudo
