// What is said over the guest's own socket: one message a packet, answered in order.
//
//   client                         guest
//   ExecRequest + 3 fds      ->
//                            <-    Started          (with the terminal's fd, if one was asked for)
//   SignalRequest            ->                     (any number, while it runs)
//                            <-    Exited
//   or at any point          <-    Failed
//
//   AttachRequest            ->                     to a detached command
//                            <-    Started          (with the fd of its input, if it has one)
//   SignalRequest            ->
//                            <-    Output
//                            <-    Exited
//
//   EndRequest               ->                     about the main command
//                            <-    Exited           (when it has ended, or at once if it has)
//
// A connection runs one command at a time and may then run the next. Closing it ends a command that
// was not detached: a client that is killed leaves nothing running.
//
// The client hands over the command's stdin, stdout and stderr as file descriptors, so output goes
// from the command to the client through the kernel and nowhere else. With a terminal it is the
// other way round: the guest makes it inside and hands its outer end back, so that no terminal of
// the host is ever seen inside.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "guest/configuration.h"
#include "linux/pidfd.h"

namespace hearth::guest {

// Raised when a message changes its meaning: an engine adopts no guest that speaks another one.
inline constexpr std::uint32_t kProtocolVersion = 5;

// Which guest is this? Answered with Hello.
struct HelloRequest {};

// Crosses process boundaries as a number: do not renumber.
enum class Restart : std::uint8_t {
  never = 0,
  on_failure = 1,  // an exit code other than 0, or a signal
  always = 2,
};

struct ExecRequest {
  std::vector<std::string> command;      // the program and its arguments; at least the program
  std::vector<std::string> environment;  // NAME=value, on top of what the sandbox has
  std::string directory;                 // to start in; empty: the user's home
  std::string user;                      // name, uid or uid:gid; empty: the sandbox's default user
  bool terminal = false;
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  std::uint64_t timeout_milliseconds =
      0;  // 0: none. When it is over the whole process tree is killed
  // No Started, only how it ended: for who waits for that anyway, and would be woken twice.
  bool only_end = false;
  // Goes on after the connection closes; its output is kept for LogRequest. Needs no descriptors.
  bool detached = false;
  // Of a detached one: stdin stays open, for who attaches. Else it reads nothing.
  bool keep_input = false;
  // Of a detached one: how often it is started again when it ends by itself.
  Restart restart = Restart::never;
  std::uint32_t most_restarts = 0;  // 0: as often as it takes
  // Of a detached one: what this sandbox is for. One in its life; how it ended is remembered.
  bool main = false;
};

// To a detached command that runs: that of this pid, or the first that was started. The descriptor
// that comes with Started is what it reads from: the writing end of a pipe, or the outer end of its
// terminal, which is not to be read. What it writes from now on comes as Output; whoever reads too
// slowly misses some. Any number may be attached.
struct AttachRequest {
  std::uint32_t pid = 0;
};

// How the main command ends: answered with Exited then, or at once if it has. not_found while none
// was started.
struct EndRequest {};

// To the process group of the command that was started here, that this is attached to, or whose end
// it waits for; or to the command alone.
struct SignalRequest {
  std::uint32_t signal = 0;
  bool to_group = true;
};

// Ends everything that runs in the sandbox, and what would be started again: SIGTERM, and SIGKILL
// for what is left after the grace. Answered with Exited (of no meaning) when nothing is left.
struct StopRequest {
  std::uint32_t grace_milliseconds = 0;
  // Then the guest ends too, when what was written is on record: the sandbox has exited.
  bool leave = false;
};

// The last `most` bytes of a file, as root inside sees it: answered with Output. Nothing but a
// plain file is read; where links lead, it is still the sandbox's own. not_found, invalid.
struct FileRequest {
  std::string path;
  std::uint32_t most = 0;  // at most kMostFileBytes
};
inline constexpr std::uint32_t kMostFileBytes = 64 << 10;

// What detached commands wrote, from position `from` or the oldest kept byte on: answered with
// Output messages. Ends with Exited (of no meaning) when everything was sent, or never if `follow`.
struct LogRequest {
  bool follow = false;
  // Follows, and nothing is to be forgotten that it has not written down: commands wait instead,
  // for as long as it makes progress at all. It tells of that by saying the same again, `from` the
  // next byte it needs. One at a time, the last one that asked.
  bool keep = false;
  std::uint64_t from = 0;
};

// A connection to a port inside, on its loopback: answered with Connected and the descriptor.
struct ConnectRequest {
  std::uint16_t port = 0;
};

// Which ports somebody inside listens on: answered with Ports; with `follow` again and again, when
// they have changed.
struct PortsRequest {
  bool follow = false;
};

// Makes a sandbox somebody's, once. Answered with Configured.
struct ConfigureRequest {
  Configuration configuration;
};

using Request =
    std::variant<HelloRequest, ExecRequest, SignalRequest, LogRequest, StopRequest, ConnectRequest,
                 PortsRequest, ConfigureRequest, AttachRequest, EndRequest, FileRequest>;

struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  std::string version;
};

struct Started {
  std::uint32_t pid = 0;  // as seen inside
};

struct Exited {
  linux::ExitStatus status;
  bool timed_out = false;
};

// The command could not be started, or the request was no good.
struct Failed {
  Code code = Code::internal;
  std::string message;
};

// Crosses process boundaries as a number: do not renumber.
enum class Stream : std::uint8_t { output = 1, error = 2 };

struct Output {
  std::string bytes;
  Stream stream = Stream::output;
  Time time{};                 // when its line began
  std::uint64_t position = 0;  // of the first byte, among all that detached commands ever wrote
};

struct Connected {};

struct Ports {
  std::vector<std::uint16_t> listening;  // sorted
};

struct Configured {};

using Reply = std::variant<Hello, Started, Exited, Failed, Output, Connected, Ports, Configured>;

std::string encode(const Request& request);
std::string encode(const Reply& reply);

// Throw Error(invalid). The bytes may come from anyone.
Request parse_request(std::string_view bytes);
Reply parse_reply(std::string_view bytes);

}  // namespace hearth::guest
