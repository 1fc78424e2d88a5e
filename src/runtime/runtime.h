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
#include "guest/configuration.h"
#include "guest/surfaces.h"
#include "image/image.h"
#include "linux/channel.h"
#include "runtime/spec.h"

namespace hearth::runtime {

// A part of what was written to disk, see log_file.h.
struct LogFile {
  std::uint64_t start = 0;  // position of its first byte
  linux::Fd fd;             // to be read
};

// Crosses process boundaries as a number: do not renumber.
enum class State : std::uint8_t {
  running = 1,
  exited = 2,  // its PID 1 died; only destroy() makes sense
  paused = 3,  // everything in it stands still, memory kept
};
std::string_view to_string(State state);

struct Usage {
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t cpu_microseconds = 0;
  std::uint64_t pids = 0;
  std::uint64_t oom_kills = 0;
  std::uint64_t read_bytes = 0;  // from disks
  std::uint64_t written_bytes = 0;
  std::uint64_t received_bytes = 0;  // over its network link
  std::uint64_t sent_bytes = 0;
  std::uint64_t disk_bytes = 0;  // of the writable layer
};

struct Volume {
  std::string name;
  Time created;
  bool used = false;              // by a sandbox, now
  std::uint64_t size_bytes = 0;   // that it can hold; 0: as much as the engine's disk
  std::uint64_t taken_bytes = 0;  // of that disk; 0 for a volume without a size: nobody counts
};

struct Sandbox {
  std::string id;
  State state = State::running;
  std::string image;
  Time created;
  int pid = 0;  // of its PID 1, as the host sees it
  Limits limits;
  Usage usage;
  std::string address;                       // empty without a network
  std::vector<std::string> default_command;  // what the image would run
  std::vector<guest::SurfacePort> surfaces;
};

// What one that was made ahead of time gets when it becomes somebody's.
struct Belongings {
  guest::Configuration configuration;
  std::string hostname;  // empty: the one it has. Of all that share it (SandboxSpec::joins)
  // Volumes and nothing else. No link is followed on the way to their targets.
  std::vector<MountSpec> volumes;
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

  // Both idempotent. not_found; unavailable when it has exited; timeout when something in it will
  // not stand still.
  virtual void pause(const std::string& id) = 0;
  virtual void resume(const std::string& id) = 0;

  // Makes one that was made ahead of time somebody's, all of it or nothing, and once.
  // not_found; invalid; conflict when it has been done before.
  virtual void configure(const std::string& id, const Belongings& belongings) = 0;

  // Puts the files of `tree` in the place of those that are mounted on its target, for all readers
  // at once; the same ones again change nothing. not_found (no such sandbox, or no tree there that
  // changes); invalid; unavailable when it has exited.
  virtual void replace_files(const std::string& id, const MountSpec& tree) = 0;

  // To be said before a detached command is started: what those write goes to disk from now on, as
  // far as LogLimits of the sandbox say so. Idempotent. not_found; unavailable when it has exited
  // or is paused.
  virtual void keep_log(const std::string& id) = 0;

  // What is on disk of it, oldest first; also of a sandbox that has exited. not_found.
  virtual std::vector<LogFile> open_log(const std::string& id) = 0;

  // Whom it may talk to from now on. not_found; invalid for a sandbox without a network.
  virtual void set_policy(const std::string& id, const network::Policy& policy) = 0;

  // Makes an image of its files as they are at one moment; it stands still meanwhile. What is
  // mounted into it is no part of it. not_found, invalid (the name), exhausted.
  virtual image::Image commit(const std::string& id, const std::string& name) = 0;

  // New sandboxes with the same files, limits, mounts and network policy. All of them or none.
  virtual std::vector<Sandbox> fork(const std::string& id, unsigned count) = 0;

  // Those in the store; `host` is not among them.
  virtual std::vector<image::Image> list_images() = 0;
  // False when there is none. Frees what nothing else needs.
  virtual bool remove_image(const std::string& name) = 0;

  // Of so many bytes, or without a limit of its own: 0. Sandboxes that name a volume which is not
  // there make such a one. already_exists, invalid, exhausted, unavailable (no sizes on this host).
  virtual void create_volume(const std::string& name, std::uint64_t bytes) = 0;
  virtual std::vector<Volume> list_volumes() = 0;
  // not_found; conflict while a sandbox uses it.
  virtual void remove_volume(const std::string& name) = 0;
};

}  // namespace hearth::runtime
