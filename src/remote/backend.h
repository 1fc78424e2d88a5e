// The node's side of exec, attach, port-forward and log: who really runs the containers.
//
// Everything is handed over as descriptors, so that bytes go from the command to the connection's
// thread through the kernel and nowhere else, and back-pressure is the kernel's. Each call may
// block and comes from a thread of workers(); failures are thrown as Error. SIGPIPE must be
// ignored by the program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::net {
class Workers;
}

namespace hearth::remote {

// A container that runs, or ran.
struct Container {
  std::string pod;
  std::string pod_uid;
  std::string name;
  std::string sandbox;   // its id
  std::string previous;  // that of the life before this one; or none
};

// Which of its streams are wanted. A terminal has no error stream of its own.
struct Streams {
  bool input = false;
  bool output = false;
  bool error = false;
  bool terminal = false;
};

// A piece of what a command wrote, where it does not come through a descriptor.
struct Said {
  bool is_error = false;
  std::string bytes;
};

struct Ended {
  int exit_code = 0;  // 128 + n for who was ended by signal n
};

// How a command fares. Destroying it ends a command that was started for it, and lets go of one
// that it was attached to.
class Life {
 public:
  Life() = default;
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  virtual ~Life() = default;

  // Readable when next() has something to say.
  virtual int fd() const = 0;
  // Does not wait: std::monostate when there is nothing yet. Throws Error when nobody will ever
  // know how it ended.
  virtual std::variant<std::monostate, Said, Ended> next() = 0;
};

// Descriptors that were not asked for are none. With a terminal both are its outer end.
struct Command {
  linux::Fd input;
  linux::Fd output;
  linux::Fd error;
  std::unique_ptr<Life> life;
};

enum class LogStream { all, output, error };

struct LogOptions {
  bool follow = false;
  bool previous = false;  // of the container's life before this one
  bool timestamps = false;
  std::optional<Time> since;
  std::optional<std::uint64_t> tail_lines;
  LogStream stream = LogStream::all;
};

// A log on its way, ready to be shown. Destroying it ends whoever writes it.
class LogFeed {
 public:
  LogFeed() = default;
  LogFeed(const LogFeed&) = delete;
  LogFeed& operator=(const LogFeed&) = delete;
  virtual ~LogFeed() = default;

  // To be read to its end; borrowed.
  virtual int fd() const = 0;
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Where the calls below are made; null if they never block.
  virtual net::Workers* workers() = 0;

  virtual Command start(const Container& container, const std::vector<std::string>& command,
                        const Streams& streams) = 0;
  // To the container's main process.
  virtual Command attach(const Container& container, const Streams& streams) = 0;
  // A stream socket to a port inside, on its loopback. Any container of the pod will do.
  virtual linux::Fd connect(const Container& container, std::uint16_t port) = 0;
  virtual std::unique_ptr<LogFeed> open_log(const Container& container,
                                            const LogOptions& options) = 0;
};

// For an API server on its own: nothing runs anywhere.
class NoNode final : public Backend {
 public:
  net::Workers* workers() override { return nullptr; }
  Command start(const Container& container, const std::vector<std::string>& command,
                const Streams& streams) override;
  Command attach(const Container& container, const Streams& streams) override;
  linux::Fd connect(const Container& container, std::uint16_t port) override;
  std::unique_ptr<LogFeed> open_log(const Container& container, const LogOptions& options) override;
};

}  // namespace hearth::remote
