// What the server's files share.
#pragma once

#include <memory>
#include <optional>

#include "guest/server.h"

namespace hearth::guest {

// What an event is about: the kind in the top byte, a client's id or a pid below.
inline constexpr std::uint64_t kKindShift = 56;
enum class Tag : std::uint64_t {
  listen = 1,
  signals = 2,
  spawner = 3,
  boot = 4,
  client = 5,
  output = 6,
  core = 7,
  door = 8,
  sudo = 9
};
constexpr std::uint64_t tag_of(Tag kind, std::uint64_t id = 0) {
  return static_cast<std::uint64_t>(kind) << kKindShift | id;
}

// What detached commands wrote, per sandbox. Large enough for a traceback, small beside a sandbox.
inline constexpr std::size_t kLogBytes = std::size_t{256} << 10;
inline constexpr std::size_t kLogPiece = std::size_t{16} << 10;
// A keeper of the log that takes nothing for this long is gone, or as good as gone: commands wait
// for it no longer.
inline constexpr Duration kKeeperPatience = std::chrono::seconds(10);

// Where output of a detached command arrives.
struct Server::OutputEnd {
  linux::Fd fd;
  Stream stream = Stream::output;
  std::uint64_t source = 0;  // number of the command
};

// A program that takes this long to execve(2) was stopped, by root inside.
inline constexpr Duration kSpawnPatience = std::chrono::seconds(10);

struct Server::Client {
  std::uint64_t id = 0;
  linux::Channel channel;
  Origin origin = Origin::outside;
  pid_t command = 0;        // that runs for it, or 0
  bool awaits_end = false;  // of the main command
  bool spawning = false;    // its command is being born
  bool reading_log = false;
  bool follow_log = false;
  std::uint64_t log_position = 0;
  std::optional<std::uint64_t> log_source;  // attached: to the command of this number
  pid_t attached = 0;                       // to this one, for signals; or 0
  std::optional<Exited> attached_end;       // to be told when all output was sent
  bool drained = false;                     // all output of it was read
  bool follows_ports = false;
  std::vector<std::uint16_t> ports;  // that it was told of
};

// A detached command that is started again when it ends.
struct Server::Lasting {
  ExecRequest request;
  unsigned restarts = 0;
  Duration pause{};  // before the next start
  AwakeDeadline next_start = AwakeDeadline::never();
};

struct Server::Command {
  std::uint64_t client = 0;  // 0: detached, or the client is gone
  AwakeDeadline deadline = AwakeDeadline::never();
  bool timed_out = false;
  std::shared_ptr<Lasting> lasting;  // or none
  Time started{};
  std::uint64_t number = 0;  // in the order of their starts
  bool detached = false;
  bool main = false;
  linux::Fd input;  // of a detached one, for who attaches: a pipe's end, a terminal's; or none
};

// The one command that the sandbox is for.
struct Server::MainCommand {
  pid_t pid = 0;  // 0: being born
  std::optional<Exited> end;
};

struct Server::PendingSpawn {
  std::uint64_t client = 0;
  SpawnPlan plan;
  std::vector<linux::Fd> stdio;
  linux::Fd terminal;              // outer end, for the client
  std::vector<OutputEnd> outputs;  // of a detached one
  AwakeDeadline deadline = AwakeDeadline::never();
  linux::Fd input;  // as in Command
  bool detached = false;
  bool main = false;
  bool only_end = false;
  std::shared_ptr<Lasting> lasting;
  AwakeDeadline patience = AwakeDeadline::never();
};

}  // namespace hearth::guest
