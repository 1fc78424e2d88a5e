// The runtime that does the work. Lives in hearth-runtime, as root.
//
// The life of create(): reserve the id -> a shell, from the pool or made now -> its assignment: the
// image's layers, name, user -> the guest says it is done -> record -> guest may stay. Whatever
// fails on the way undoes everything before it; a crash of this process on the way ends the guest,
// and the next start sweeps the rest.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "guest/client.h"
#include "image/store.h"
#include "linux/cgroup.h"
#include "linux/fd.h"
#include "linux/pidfd.h"
#include "network/network.h"
#include "runtime/dresser.h"
#include "runtime/end_watch.h"
#include "runtime/folders.h"
#include "runtime/id_ranges.h"
#include "runtime/images.h"
#include "runtime/log_keeper.h"
#include "runtime/record.h"
#include "runtime/runtime.h"
#include "runtime/shell_pool.h"
#include "runtime/volumes.h"

namespace hearth::runtime {

struct LinuxRuntimeOptions {
  int folder_fd = -1;                   // the folder that lasts, borrowed
  int memory_folder_fd = -1;            // the one in memory, borrowed
  std::string guest_program;            // path of hearth-guest
  std::string unpack_program;           // path of hearth-unpack
  std::string tag;                      // which engine of this machine
  unsigned warm = 16;                   // shells to keep ready
  bool network = true;                  // where this machine can
  std::uint64_t image_quota_bytes = 0;  // 0: none
  std::vector<std::string> host_paths;  // that may be mounted into sandboxes
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
  void pause(const std::string& id) override;
  void resume(const std::string& id) override;
  void configure(const std::string& id, const Belongings& belongings) override;
  void replace_files(const std::string& id, const MountSpec& tree) override;
  void keep_log(const std::string& id) override;
  std::vector<LogFile> open_log(const std::string& id) override;
  void set_policy(const std::string& id, const network::Policy& policy) override;
  image::Image commit(const std::string& id, const std::string& name) override;
  std::vector<Sandbox> fork(const std::string& id, unsigned count) override;
  std::vector<image::Image> list_images() override { return store_.list(); }
  bool remove_image(const std::string& name) override;
  void create_volume(const std::string& name, std::uint64_t bytes) override {
    volumes_.create(name, bytes);
  }
  std::vector<Volume> list_volumes() override { return volumes_.list(); }
  void remove_volume(const std::string& name) override { volumes_.remove(name); }

  image::Store& store() { return store_; }
  // As network::Network has them. unavailable without one.
  void set_services(const std::vector<network::Service>& services);
  void set_name_server(std::uint16_t port);
  // Addresses that sandboxes get; empty without a network.
  std::string describe_network() const { return network_ ? network_->pool() : ""; }

  // Everything, and then whatever the runtime keeps for itself: cgroups, layers, network. The last
  // thing that is asked of it: create() is refused from then on. Throws Error when something stays
  // behind; repeat to continue.
  void destroy_all();
  // The same, if no sandbox is left: at the end, when nobody asks for anything any more.
  void leave_nothing_of_nobody();

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
    std::uint64_t watch_tag = 0;   // guarded by mutex: of ends_
    State state = State::running;  // guarded by mutex
    ChosenImage image;             // guarded by mutex
    linux::Fd stage;               // guarded by mutex: see guest/stage.h
    std::shared_ptr<Berth> berth;  // guarded by mutex
    bool gone = false;             // guarded by mutex: not up yet, or destroyed meanwhile
  };
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  void adopt_and_sweep();
  using Berths = std::map<std::string, std::shared_ptr<Berth>>;
  bool adopt(const std::string& unit, Berths& berths);
  std::shared_ptr<Berth> adopt_berth(const Record& record, Berths& berths);
  void adopt_logs();
  void sweep(const std::string& id);
  static std::unique_ptr<network::Network> make_network(const LinuxRuntimeOptions& options);
  void start_network();
  void make_host_layers();
  void remove_unused_images();

  std::shared_ptr<Entry> find(const std::string& id);
  // Calls f with the entry locked. Throws not_found, and unavailable for one that has exited.
  template <typename F>
  auto with_living(const std::string& id, F f) {
    const auto entry = find(id);
    if (!entry) throw_unknown(id);
    const std::lock_guard lock(entry->mutex);
    if (entry->gone) throw_unknown(id);
    if (entry->state == State::exited) fail(Code::unavailable, "sandbox '{}' has exited", id);
    return f(*entry);
  }
  [[noreturn]] static void throw_unknown(const std::string& id);
  void reserve(const std::string& id, std::shared_ptr<Entry> entry);
  // In `berth`, or in one of its own.
  Created create_from(const SandboxSpec& spec, ChosenImage image,
                      std::shared_ptr<Berth> berth = nullptr);
  linux::Channel bring_up(Entry& entry, const SandboxSpec& spec, std::shared_ptr<Berth> berth);
  std::shared_ptr<Berth> find_berth(const std::string& id);
  Shell obtain_shell(const SandboxSpec& spec);

  static void write_record(Record& record, Berth& berth, int folder_fd);
  void rewrite_record(const Entry& entry);
  void write_shared_again(const Berth::Shared& shared);
  void hand_over(Entry& entry, const Belongings& belongings, guest::Connection guest);
  ChosenImage take_snapshot(Entry& entry);
  void end(Entry& entry);
  void kill_all(const Entries& entries);
  static Sandbox describe(const Entry& entry);
  Sandbox describe_with_usage(const Entry& entry) const;

  void handle_end(const std::string& id);

  const Folders folders_;
  std::string boot_id_;
  std::string host_image_;  // name of its folder in images/
  linux::CgroupTree cgroups_;
  IdRanges id_ranges_;
  image::Store store_;
  Images image_choice_;
  Volumes volumes_;
  LogKeeper logs_;
  std::unique_ptr<network::Network> network_;  // or none
  Dresser dresser_;
  Nurseries nurseries_;
  Partings partings_;
  ShellMaker shells_;
  Guarded<Entries> entries_;
  bool ending_ = false;  // guarded by entries_'s lock: nobody is made any more
  std::atomic<bool> left_nothing_ = false;
  unsigned adopted_ = 0;
  unsigned swept_ = 0;

  // Last, because their threads call the rest.
  EndWatch ends_;
  std::unique_ptr<ShellPool> pool_;
};

}  // namespace hearth::runtime
