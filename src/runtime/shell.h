// Sandboxes without an image: everything of one that is the same for all.
//
// A shell has its namespaces, its cgroup, its range of user ids, its guest as PID 1 waiting for an
// assignment. It can be made long before anyone asks for a sandbox. It is used once: what ran in it
// never meets what runs in the next.
//
// Its name, the unit, is made up and stays when it becomes a sandbox, whose id is somebody's
// choice:
//   sandboxes/UNIT/guest.sock   where its guest listens
//   sandboxes/UNIT/record       what there is to know about it, once it is a sandbox
//   cgroup UNIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "guest/boot.h"
#include "linux/cgroup.h"
#include "linux/channel.h"
#include "linux/pidfd.h"
#include "runtime/berth.h"
#include "runtime/id_ranges.h"
#include "runtime/nursery.h"
#include "runtime/partings.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

inline constexpr const char* kGuestSocket = "guest.sock";

struct Shell {
  std::string unit;
  std::uint32_t id_slot = 0;
  Limits limits;  // that its cgroup has; the disk's is the assignment's
  pid_t pid = 0;
  linux::Pidfd pidfd;
  linux::Channel boot;
  bool ready = false;  // it said so
  linux::Fd folder;
  linux::Cgroup cgroup;
  std::shared_ptr<Berth> berth;   // its own, or that of whom it joined
  linux::Fd stage;                // once it is assigned; see guest/stage.h
  std::uint64_t disk_device = 0;  // of its own disk, see disks.h; 0: none
};

// All borrowed, and to outlive it.
struct ShellSources {
  int sandboxes_fd;
  int disk_fd;  // a folder on the disk that sandboxes are limited in using
  linux::CgroupTree& cgroups;
  IdRanges& id_ranges;
  Nurseries& nurseries;
  network::Network* network;  // or none
  Partings& partings;
};

// Thread-safe.
class ShellMaker {
 public:
  explicit ShellMaker(const ShellSources& sources) : sources_(sources) {}

  // What is left of it besides its process.
  struct Remains {
    std::string unit;
    std::uint32_t id_slot = 0;
    std::shared_ptr<Berth> berth;
  };
  static Remains remains_of(const Shell& shell);

  // All or nothing. Returns while the guest is still preparing itself; whatever is sent to it
  // waits. Throws Error.
  Shell make(const Limits& limits, bool with_network) const;
  // One that shares a berth.
  Shell make_in(std::shared_ptr<Berth> berth, const Limits& limits) const;

  // Throws Error with what went wrong inside.
  static void wait_until_ready(Shell& shell);

  // The image, the name, the rest: returns when it is a sandbox, which lives only as long as `boot`
  // stays open, or is told to stay. Throws Error.
  static void assign(Shell& shell, const guest::Assignment& assignment, std::span<const int> fds);

  // Ends it and takes every trace away. Throws Error(timeout) when it does not die.
  void unmake(const Remains& remains, linux::Pidfd& pidfd) const;

 private:
  Shell make_any(std::shared_ptr<Berth> berth, const Limits& limits, bool with_network) const;
  linux::Forked give_birth(const Shell& shell, int boot_fd) const;
  void leave_berth(const std::shared_ptr<Berth>& berth, const std::string& unit) const;

  ShellSources sources_;
};

}  // namespace hearth::runtime
