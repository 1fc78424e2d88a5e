// The one thread that every command of a sandbox is born from.
//
// The guest (PID 1) stays outside the limits that its users' processes live under, so that a fork
// storm or a lack of memory inside never makes a sandbox unreachable. Commands are born inside
// them:
//   v1   limits belong to threads. This one joins them once, and a command forked from it inherits
//        them, and a cgroup namespace in which they are the root, without any work of its own. (The
//        guest's memory stays where the guest is: it is charged to the process's first thread.)
//   v2   limits belong to processes: a command is born into its cgroup (CLONE_INTO_CGROUP).
//
// Being a thread of PID 1, it can be neither killed nor stopped from inside; and because it is not
// the thread that serves, a sandbox whose processes are starved of CPU still answers.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "linux/capabilities.h"
#include "linux/fd.h"
#include "linux/resource_limits.h"

namespace hearth::guest {

struct SpawnPlan {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // complete
  std::string directory;
  bool or_root = false;  // start in / where there is no such directory
  bool as_root = false;  // enter it with root's rights, whoever the user is
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  std::uint64_t dropped_capabilities = 0;  // as a mask; of those that it would have
  // This descriptor of the command is a terminal, which becomes the controlling one.
  std::optional<int> terminal;
  std::vector<linux::ResourceLimit> limits;  // none above those that this process has
};

enum class SpawnStep : std::uint8_t {
  none = 0,       // nothing failed
  process = 1,    // no process could be made
  user = 2,       // becoming the user
  directory = 3,  // entering the working directory
  program = 4,    // running the program
  set_up = 5,     // session, terminal, descriptors, limits
};

struct SpawnResult {
  pid_t pid = 0;
  SpawnStep failed = SpawnStep::none;
  int error = 0;  // errno of the step that failed
};

// Where commands live.
struct SpawnPlace {
  std::vector<linux::Fd> join_files;  // of v1 cgroups, see linux::Cgroup
  linux::Fd cgroup;                   // v2 folder to be born into, or none
};

struct Birth;

class Spawner {
 public:
  // Returns when the thread is inside its limits and has given up all capabilities but `keep` (the
  // thread that calls this may need more for a while). Throws Error: nothing may run outside its
  // limits.
  explicit Spawner(SpawnPlace place, std::optional<linux::CapabilitySet> keep = std::nullopt);
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  // Waits for a command that is being born.
  ~Spawner();

  // Readable when a result waits to be taken, if it was begun so, or nothing was born.
  int fd() const { return done_.get(); }

  bool busy() const { return busy_; }

  // Begins to start a command: one at a time. `stdio` is closed on our side before the result is
  // there: who hears of an end may expect the end of its output too. Whoever needs no answer until
  // a child ends saves the time it takes to be told.
  void begin(SpawnPlan plan, std::vector<linux::Fd> stdio, bool tell);

  // From now on it is to be told after all. The result may be there already.
  void tell_after_all() { tell_ = true; }

  // Of the command that was begun last, once.
  std::optional<SpawnResult> take_result();

  // Kills a command that is being born: root inside may stop one before it executes its program,
  // and nothing else could be started for as long as it stands.
  void kill_newborn() const;

  // Which CPUs commands see and use; all of them when empty. Of no effect on those that run.
  void set_cpus(const std::vector<std::uint32_t>& cpus) const;

 private:
  enum class Phase : std::uint32_t { starting, idle, asked, done, ending };

  void serve(std::optional<linux::CapabilitySet> keep);
  void enter_limits(std::optional<linux::CapabilitySet> keep);
  void set_phase(Phase phase);
  SpawnResult spawn();

  SpawnPlace place_;
  linux::Fd done_;
  bool busy_ = false;  // the serving thread's own note
  std::exception_ptr not_started_;
  pid_t thread_id_ = 0;

  // Handed back and forth: whose turn it is says phase_.
  std::atomic<Phase> phase_ = Phase::starting;
  SpawnPlan plan_;
  std::vector<linux::Fd> stdio_;
  std::unique_ptr<Birth> birth_;  // made of these two
  SpawnResult result_;
  std::atomic<bool> tell_ = false;
  std::atomic<pid_t> newborn_ = 0;
  std::thread thread_;
};

}  // namespace hearth::guest
