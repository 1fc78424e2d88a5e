// The runtime that does the work. Lives in hearth-runtime, as root.
//
// Two folders, owned by root and closed to everyone else. One that lasts:
//   images/host-X/   the layers of image 'host', made anew at every start
// and one in memory, because what it says is true until the machine goes down and no longer, and
// because making three files on a disk takes as long as everything else:
//   sandboxes/UNIT/  see shell.h
//
// The life of create(): reserve the id -> a shell, from the pool or made now -> its assignment: the
// image's layers, name, user -> the guest says it is done -> record -> guest may stay. Whatever
// fails on the way undoes everything before it; a crash of this process on the way ends the guest,
// and the next start sweeps the rest.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "linux/cgroup.h"
#include "linux/fd.h"
#include "linux/pidfd.h"
#include "runtime/id_ranges.h"
#include "runtime/record.h"
#include "runtime/runtime.h"
#include "runtime/shell_pool.h"

namespace hearth::runtime {

struct LinuxRuntimeOptions {
  int folder_fd = -1;         // the folder that lasts, borrowed
  int memory_folder_fd = -1;  // the one in memory, borrowed
  std::string guest_program;  // path of hearth-guest
  unsigned warm = 16;         // shells to keep ready
};

class LinuxRuntime final : public Runtime {
 public:
  // Adopts what lives and sweeps what does not. Changes the process's working folder. Throws Error.
  LinuxRuntime(const LinuxRuntimeOptions& options, linux::CgroupTree cgroups);
  LinuxRuntime(const LinuxRuntime&) = delete;
  LinuxRuntime& operator=(const LinuxRuntime&) = delete;
  // Leaves sandboxes alive.
  ~LinuxRuntime() override;

  Created create(const SandboxSpec& spec) override;
  linux::Channel connect(const std::string& id) override;
  void destroy(const std::string& id) override;
  Sandbox get(const std::string& id) override;
  std::vector<Sandbox> list() override;

  // Everything, and then whatever the runtime keeps for itself: cgroups, layers.
  void destroy_all();

  unsigned adopted() const { return adopted_; }
  unsigned swept() const { return swept_; }
  std::string describe_cgroups() const { return cgroups_.describe(); }
  PoolCounts pool_counts() const { return pool_->counts(); }

 private:
  // One sandbox. `mutex` serves calls for it one after the other.
  struct Entry {
    std::mutex mutex;
    Record record;                 // guarded by mutex
    linux::Pidfd pidfd;            // guarded by mutex
    std::uint64_t watch_tag = 0;   // guarded by mutex: of watched_
    State state = State::running;  // guarded by mutex
    bool gone = false;             // guarded by mutex: never came up, or was destroyed meanwhile
  };
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  void adopt_and_sweep();
  bool adopt(const std::string& id);
  void sweep(const std::string& id);
  void make_host_layers();
  void remove_unused_images();

  std::shared_ptr<Entry> find(const std::string& id);
  std::shared_ptr<Entry> reserve(const std::string& id);
  linux::Channel bring_up(Entry& entry, const SandboxSpec& spec);
  Shell obtain_shell(const Limits& limits);
  linux::Channel dress(Shell& shell, const SandboxSpec& spec);
  void end(Entry& entry);
  static Sandbox describe(const Entry& entry);
  Sandbox describe_with_usage(const Entry& entry) const;

  void watch_for_ends(const std::stop_token& stop);
  std::uint64_t watch(const std::string& id, const linux::Pidfd& pidfd);
  void handle_end(const std::string& id);

  linux::Fd sandboxes_;
  linux::Fd images_;
  std::string boot_id_;
  std::string host_image_;  // name of its folder in images/
  linux::CgroupTree cgroups_;
  IdRanges id_ranges_;
  Nurseries nurseries_;
  ShellMaker shells_;
  Guarded<Entries> entries_;
  unsigned adopted_ = 0;
  unsigned swept_ = 0;

  // Ends are noticed by one thread that waits on every pidfd.
  linux::Fd ends_;
  Guarded<std::map<std::uint64_t, std::string>> watched_;  // epoll tag -> id
  std::uint64_t next_tag_ = 1;                             // guarded by watched_'s lock
  std::jthread watcher_;
  std::unique_ptr<ShellPool> pool_;
};

}  // namespace hearth::runtime
