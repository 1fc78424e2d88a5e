// What can be shared between sandboxes: the namespaces net, ipc and uts, the address and the rules
// of its network, the name of its host. One sandbox's at first; others may join it, and it goes
// with the last of them. It outlives the death of a sandbox until that is destroyed, so that
// another can take its place.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "network/network.h"
#include "runtime/nursery.h"

namespace hearth::runtime {

// Thread-safe.
class Berth {
 public:
  // Of a process, for the unit that it is PID 1 of. The name is that of the first unit, and stays.
  // Throws Error.
  Berth(std::string name, const std::string& unit, pid_t pid);
  Berth(const Berth&) = delete;
  Berth& operator=(const Berth&) = delete;
  ~Berth() = default;

  struct Shared {
    std::set<std::string> units;
    std::string hostname;
    std::optional<network::Policy> policy;  // nothing: a loopback link and no other
  };

  const std::string& name() const { return name_; }
  const std::optional<network::Slot>& slot() const { return slot_; }
  // Before anybody else knows of it.
  void give_slot(network::Slot slot) { slot_ = std::move(slot); }

  // Throws Error(not_found) when the last one has left.
  void join(const std::string& unit);
  // Its network namespace when nobody is left: that and the slot are the caller's to let go of.
  // None the next time.
  linux::Fd leave(const std::string& unit);

  // Of somebody who is in it. Borrowed.
  int net_fd() const { return namespaces_.net.get(); }

  // A sandbox that lives here from its birth. Throws Error.
  linux::Forked order(const Nurseries& nurseries, const guest::ShellOrder& order,
                      std::span<const int> fds);

  // Runs f(Shared&) while nobody else can change it.
  template <typename F>
  decltype(auto) with(F&& f) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(shared_);
  }

 private:
  const std::string name_;
  std::optional<network::Slot> slot_;
  std::mutex mutex_;  // guards what follows
  Shared shared_;
  Namespaces namespaces_;
  // From the first that joins on: a nursery that lives here, ready for the next. What was born in
  // it is its to reap.
  std::mutex birth_mutex_;  // guards it; taken before the other
  std::unique_ptr<Nursery> nursery_;
};

}  // namespace hearth::runtime
