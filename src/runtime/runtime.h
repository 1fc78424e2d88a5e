// Makes one sandbox real on this machine, and unmakes it without a trace.
//
// What every implementation promises:
//   * create() is all or nothing: if it throws, nothing it made is left behind.
//   * destroy() is idempotent, and leaves no process, mount, cgroup, namespace or file.
//   * a command in the sandbox is confined before its first instruction runs, or it does not run.
//   * what create() returned survives the death of every process of ours: the next one adopts it.
//
// Every call blocks: use a worker thread, never an event loop. Thread-safe; calls for one id are
// served one after the other. Failures are thrown as Error with the codes named beside each call.
//
// Implementations: LinuxRuntime does the work, inside hearth-runtime, the one privileged process;
// RuntimeClient asks it over a unix socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linux/channel.h"

namespace hearth::runtime {

// Enforced on everything that runs in the sandbox, together. 0 means no limit.
struct Limits {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // files in the writable layer count too
  std::uint32_t cpu_millis = 2000;                      // 1000 = one core
  std::uint32_t pids = 512;
  std::uint64_t disk_bytes = std::uint64_t{1} << 30;  // of the writable layer

  bool operator==(const Limits&) const = default;
};

// Everything needed to start one sandbox.
struct SandboxSpec {
  std::string id;  // a label (base/id.h); also its host name. Empty: one is made up
  std::string image = "host";
  std::vector<std::string> environment;  // NAME=value, for every command
  std::string user = "root";             // whom commands run as
  Limits limits;
  // Goes when the connection that asked for it closes: whoever is killed leaves nothing behind.
  bool ends_with_client = false;
};

// Crosses process boundaries as a number: do not renumber.
enum class State : std::uint8_t {
  running = 1,
  exited = 2,  // its PID 1 died; only destroy() makes sense
};
std::string_view to_string(State state);

struct Usage {
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t cpu_microseconds = 0;
  std::uint64_t pids = 0;
  std::uint64_t oom_kills = 0;
};

struct Sandbox {
  std::string id;
  State state = State::running;
  std::string image;
  Time created;
  int pid = 0;  // of its PID 1, as the host sees it
  Limits limits;
  Usage usage;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  struct Created {
    Sandbox sandbox;       // without its usage: there is none yet
    linux::Channel guest;  // a connection to its guest, for guest::Connection
  };
  // already_exists, not_found (image), invalid, exhausted (no room), unavailable (a limit that this
  // host cannot enforce), internal.
  virtual Created create(const SandboxSpec& spec) = 0;

  // A new connection to the guest. not_found; unavailable when the sandbox has exited.
  virtual linux::Channel connect(const std::string& id) = 0;

  // Kills everything in it. An unknown id is success.
  virtual void destroy(const std::string& id) = 0;

  // not_found.
  virtual Sandbox get(const std::string& id) = 0;

  // What is on this machine right now, including what an earlier life of the process left here.
  virtual std::vector<Sandbox> list() = 0;
};

}  // namespace hearth::runtime
