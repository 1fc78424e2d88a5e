// Writes down what detached commands print, for every sandbox that asked for it.
//
// It reads each guest's log over the guest's own socket, as any client does, and writes files
// (log_file.h) in logs/UNIT/. A guest is hostile: it decides what is in its log, and nothing else.
// Names, sizes and the number of files are ours, a piece has a bound, and a flood costs a bounded
// part of one thread of low priority: each sandbox may write so much a second and is not read
// beyond, until its commands wait. Nobody waits for us when we are not there: the guest then keeps
// the newest in its memory, and we go on where the files end.
//
// Nothing exists before the first keep(): no thread, no connection, no folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "linux/fd.h"
#include "runtime/log_file.h"

namespace hearth::runtime {

// Thread-safe.
class LogKeeper {
 public:
  // Both borrowed: logs/, and sandboxes/ with its sockets.
  LogKeeper(int logs_fd, int sandboxes_fd);
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;
  ~LogKeeper();

  // From now on until it ends. Idempotent. Throws Error.
  void keep(const std::string& unit, const LogLimits& limits);

  // Whether there is a log of it, of an earlier life of ours perhaps.
  bool has(const std::string& unit) const;
  // All that have one.
  std::vector<std::string> list() const;

  // Oldest first. None of one without a log.
  std::vector<LogFile> open(const std::string& unit) const;

  // Takes its log away, if there is one.
  void remove(const std::string& unit);

 private:
  struct Kept;
  struct Logs {
    std::set<std::string> folders;  // units that have one
    std::map<std::string, std::shared_ptr<Kept>> kept;
    std::map<std::uint64_t, std::shared_ptr<Kept>> by_tag;
    std::uint64_t next_tag = 1;
    std::vector<std::string> spares;
    std::uint64_t next_spare = 0;
  };

  linux::Fd make_folder(Kept& kept);
  bool make_spare(const Kept& kept);
  void start_thread();
  void forget(const std::string& unit);
  void serve(const std::stop_token& stop);
  bool connect(Kept& kept);
  void step(Kept& kept);
  void take_message(Kept& kept);
  void arm(Kept& kept, bool first) const;
  void tick();
  std::shared_ptr<Kept> find(std::uint64_t tag);
  std::shared_ptr<Kept> find_kept(const std::string& unit) const;

  int logs_fd_;
  int sandboxes_fd_;
  Guarded<Logs> logs_;
  linux::Fd epoll_;     // with thread_, from the first keep() on
  bool waits_ = false;  // the thread's own note: there is something to do at the next tick
  std::jthread thread_;
};

}  // namespace hearth::runtime
