// The client's end of a guest connection: run a command inside, and learn how it ended.
//
// Blocking; one thread a connection. Throws Error: what the guest says, unavailable when the
// sandbox is gone, timeout.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "guest/protocol.h"
#include "linux/channel.h"

namespace hearth::guest {

// The descriptors that become the command's own; borrowed, -1 for /dev/null.
struct Stdio {
  int input = -1;
  int output = -1;
  int error = -1;
};

class Connection {
 public:
  explicit Connection(linux::Channel channel) : channel_(std::move(channel)) {}

  struct Greeting {
    Hello hello;
    linux::Fd stage;  // see stage.h
  };
  Greeting hello(Deadline deadline);

  struct Process {
    std::uint32_t pid = 0;
    linux::Fd terminal;  // where one was asked for
  };
  // Returns as soon as the program runs.
  Process start(const ExecRequest& request, const Stdio& stdio,
                Deadline deadline = Deadline::never());

  void send_signal(int signal, bool to_group = true);

  // The end of the command that was started last. Nothing when the deadline passed first.
  std::optional<Exited> wait(Deadline deadline = Deadline::never());

  // start() and wait() in one, and faster than both; without a terminal, and not detached.
  Exited run(const ExecRequest& request, const Stdio& stdio);

  struct Attached {
    std::uint32_t pid = 0;
    linux::Fd input;  // or none; see AttachRequest
  };
  Attached attach(std::uint32_t pid = 0);
  // What comes next from the command that this is attached to.
  std::variant<Output, Exited> next_of_attached();

  // Asks for the end of the main command: wait() tells it, or that there is none (not_found).
  void ask_for_end();

  // Ends everything in the sandbox; returns when nothing is left. If `leave`, the guest ends too.
  void stop(Duration grace, bool leave = false);

  // The last bytes of a file inside.
  std::string read_file(const std::string& path, std::uint32_t most);

  // Calls `output` for every piece of what detached commands wrote from a position on, until all
  // was seen (or for as long as the sandbox lives, if `follow`), or it returns false: then nothing
  // else can be done with this connection.
  void read_log(const LogRequest& request, const std::function<bool(const Output&)>& output);

  // A stream to a port inside, on its loopback.
  linux::Fd connect(std::uint16_t port, Deadline deadline = Deadline::never());

  // The ports that somebody inside listens on.
  std::vector<std::uint16_t> ports();
  // Calls `changed` with them now, and whenever they have changed; until it returns false.
  void follow_ports(const std::function<bool(const std::vector<std::uint16_t>&)>& changed);

  // Once in a sandbox's life; throws Error(conflict) after that.
  void configure(const Configuration& configuration, Deadline deadline);

  int fd() const { return channel_.fd(); }

 private:
  void send_exec(const ExecRequest& request, const Stdio& stdio, Deadline deadline);
  linux::Message next(Deadline deadline);

  linux::Channel channel_;
  linux::Fd null_;  // once it was needed
};

}  // namespace hearth::guest
