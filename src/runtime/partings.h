// Network namespaces whose sandboxes are gone, let go of together.
//
// The kernel takes namespaces apart in the background, all that are there at a time, and what it
// does once for all of them is much: it waits for all processors, several times. For each link it
// also has a walk through the whole table of connections begin, unless seventeen have begun already
// (docs/kernel-notes.md). So the first one goes at once, and who follows within a second waits for
// the others. Who waits is dead, and has no process, no rules and no address of its own any more.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "linux/fd.h"

namespace hearth::runtime {

class Partings {
 public:
  Partings();
  Partings(const Partings&) = delete;
  Partings& operator=(const Partings&) = delete;
  ~Partings() = default;  // lets go of all

  void add(linux::Fd net_namespace);
  // At once.
  void let_go_of_all();

 private:
  void gather(const std::stop_token& stop);

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::vector<linux::Fd> waiting_;
  std::chrono::steady_clock::time_point next_;  // when some may go again
  std::jthread thread_;
};

}  // namespace hearth::runtime
