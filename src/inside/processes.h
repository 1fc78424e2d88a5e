// The commands that surfaces have started: their output for whoever listens, their input, their
// end. Knows no protocol. Thread-safe.
//
// Nobody keeps output. It is read when every listener has taken what was read before: a listener
// that is slow slows the command down, and a command that nobody listens to writes into the void.
// The thread that started a command reads for it while it listens; when it stops listening a keeper
// thread does, for all such commands.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "guest/core.h"

namespace hearth::inside {

// What a client asked for, as it will be listed.
struct CommandConfig {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::optional<std::string> directory;
};

struct StartOrder {
  CommandConfig config;
  guest::ExecRequest request;  // made from it
  std::optional<std::string> tag;
  bool input = false;  // a pipe to write to; otherwise /dev/null. A terminal is its own input
};

enum class Stream { output, error, terminal };

struct ProcessEnd {
  linux::ExitStatus status;
  bool timed_out = false;
};

// Who listens. The functions are called by the thread that listens and may block and throw.
struct Listener {
  std::function<void()> begin;  // first of all; nothing that is said from then on is missed
  std::function<void(Stream stream, std::string_view bytes)> output;
  // Before it waits: what output() holds back goes out. None: it holds nothing back.
  std::function<void()> flush;
  // Whenever nothing was said for so long.
  std::function<void()> idle;
  Duration idle_after = std::chrono::seconds(90);
  Deadline deadline = Deadline::never();
  int peer_fd = -1;  // a socket; listening ends when its other end does
};

enum class Heard { end, deadline, peer_left };

class Keeper;
class Process;

class Processes {
 public:
  // `core` must outlive this.
  explicit Processes(guest::Core& core);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  // Ends what still runs.
  ~Processes();

  // Starts a command. The caller must call listen_as_starter() next. Throws Error; invalid,
  // not_found and forbidden are about the command.
  std::shared_ptr<Process> start(StartOrder order);

  // Listens until the command has ended, or the listener has. What a listener throws is passed on,
  // when somebody else has taken over from it.
  Heard listen_as_starter(const std::shared_ptr<Process>& process, const Listener& listener);

  // Those that run, by pid.
  std::vector<std::shared_ptr<Process>> list();

  // Also one that has ended in the last 30 seconds. Throws Error(not_found).
  std::shared_ptr<Process> find(std::uint32_t pid);
  std::shared_ptr<Process> find(const std::string& tag);

 private:
  void forget_old();
  void prepare_connection();
  void retire(Process& process);

  guest::Core& core_;
  Guarded<std::map<std::uint32_t, std::shared_ptr<Process>>> table_;
  Guarded<std::vector<guest::Connection>> idle_;  // connections to the server, to be used again
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace hearth::inside
