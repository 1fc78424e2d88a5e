// Ties a command in a sandbox to our own input, output and signals, and waits for its end.
//
// Pipes and /dev/null are handed over as they are: what the command writes does not pass through
// us. Anything else, above all a terminal of the host, is never seen inside: the command gets a
// pipe, and we copy. So it is with files to write to, which the sandbox's users could not open anew
// as /dev/stdout or /dev/stderr, as many programs do; a file to read from is handed over.
//
// With a terminal it is the sandbox's own, and ours is in raw mode while the command runs.
#pragma once

#include <optional>
#include <vector>

#include "cli/pump.h"
#include "cli/signals.h"
#include "guest/client.h"
#include "linux/pty.h"

namespace hearth::cli {

struct AttachmentOptions {
  bool interactive = false;  // pass our input on
  bool terminal = false;
};

class Attachment {
 public:
  // Both must outlive it. Throws Error(invalid) when a terminal is wanted and ours is none.
  Attachment(guest::Connection& guest, Signals& signals, AttachmentOptions options);

  // Throws what guest::Connection::start() throws.
  void start(guest::ExecRequest request);

  // Copies and forwards until the command has ended, and then what it left in the pipes: not what
  // others that still hold them go on writing. Throws Error(unavailable) when the sandbox is gone.
  guest::Exited wait();

 private:
  int hand_over_input();
  int hand_over_output(int own_fd);
  void attach_terminal(linux::Fd terminal);
  void forward_signals();
  void adopt_window_size();
  bool pump_until_guest_speaks();

  guest::Connection& guest_;
  Signals& signals_;
  AttachmentOptions options_;
  int interruptions_ = 0;
  linux::Fd terminal_;             // the outer end of the sandbox's
  std::vector<linux::Fd> handed_;  // the command's ends of our pipes, until it has them
  std::vector<Pump> outputs_;
  std::optional<Pump> input_;
  std::optional<linux::RawTerminal> raw_;
};

// Of our terminal; the usual one where there is none.
linux::WindowSize own_window_size();

// Whether a descriptor may be handed to a sandbox as it is.
bool may_be_output(int fd);
bool may_be_input(int fd);

}  // namespace hearth::cli
