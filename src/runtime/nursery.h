// The runtime's end of nurseries (guest/nursery.h): processes that shells are born from.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "guest/boot.h"
#include "linux/channel.h"
#include "linux/clone.h"

namespace hearth::runtime {

// Those of a sandbox that others may join.
struct Namespaces {
  linux::Fd net;
  linux::Fd ipc;
  linux::Fd uts;
};

// One process, and another when it dies. A birth keeps it busy for as long as the kernel takes to
// make namespaces, hence several.
class Nursery {
 public:
  // Returns when it is ready. Throws Error with what went wrong in it. All must outlive it. In
  // `place`, if there is one, are the namespaces that it lives in.
  Nursery(int guest_program_fd, const guest::NurseryConfig& config,
          const Namespaces* place = nullptr);
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;
  // Ends it; what was born in it lives on.
  ~Nursery();

  // Thread-safe. Throws Error: unavailable when the process dies over it, and then nobody knows
  // whether something was born; whatever it was goes with the order's boot channel.
  linux::Forked order(const guest::ShellOrder& order, std::span<const int> fds);

  // Whether somebody's order is being carried out.
  bool busy() const { return busy_; }

 private:
  void start();
  void end();
  bool is_usable() const;

  const int program_fd_;
  const guest::NurseryConfig& config_;
  const Namespaces* const place_;
  std::mutex mutex_;  // one order at a time
  std::atomic<bool> busy_ = false;
  linux::Channel channel_;
  pid_t pid_ = 0;
};

// As many as there are processors, and one order at a time for each.
class Nurseries {
 public:
  Nurseries(linux::Fd guest_program, guest::NurseryConfig config, unsigned count);

  // By whichever is free.
  linux::Forked order(const guest::ShellOrder& order, std::span<const int> fds);

  // One more, for sandboxes that share these namespaces, which must outlive it.
  std::unique_ptr<Nursery> start_in(const Namespaces& place) const;

 private:
  linux::Fd program_;
  guest::NurseryConfig config_;
  guest::NurseryConfig joined_config_;
  std::vector<std::unique_ptr<Nursery>> all_;
  std::atomic<unsigned> turn_ = 0;
};

}  // namespace hearth::runtime
