// A context: a language, a directory, a kernel that comes when it is needed, and whose turn it is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "guest/core.h"
#include "interpreter/event_stream.h"
#include "interpreter/kernel.h"
#include "linux/fd.h"

namespace hearth::interpreter {

// One at a time, in the order they came. Thread-safe.
class Turnstile {
 public:
  // Waits for the turn. `still_there` is asked now and then; false gives up, and enter() returns
  // false. Who goes first overtakes everybody who waits.
  bool enter(bool first, const std::function<bool()>& still_there);
  void leave();

 private:
  struct Waiter {
    bool has_turn = false;
  };

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiter*> waiters_;
  bool busy_ = false;
};

class Context {
 public:
  Context(guest::Core& core, std::string id, std::string language, std::string directory);

  const std::string& id() const { return id_; }
  const std::string& language() const { return language_; }
  const std::string& directory() const { return directory_; }

  // Starts the kernel if there is none.
  void warm_up();

  // Runs one cell when its turn comes and answers the exchange. Variables are the request's own.
  // Throws Error while nothing was answered: internal (what kept the kernel from starting),
  // not_found (the context was removed meanwhile).
  void execute(serve::Exchange& exchange, std::string code, const Variables& variables);

  // Ends the running cell and the kernel; a new one is there on return. Throws as execute() does.
  void restart();
  // For good, whatever else is asked at the same time.
  void remove();

 private:
  enum class Wanted { nothing, restart, removal };

  bool wait_for_turn(serve::Exchange& exchange, EventStream& stream);
  void run(EventStream& stream, std::string code, const Variables& variables);
  Kernel& ready_kernel();
  void end_kernel(Wanted why);
  void ring() const;

  guest::Core& core_;
  const std::string id_;
  const std::string language_;
  const std::string directory_;

  Turnstile turnstile_;
  std::unique_ptr<Kernel> kernel_;  // of who has the turn
  std::atomic<Wanted> wanted_ = Wanted::nothing;
  linux::Fd bell_;  // rings for whoever runs a cell: see wanted_
  std::mutex client_mutex_;
  int client_fd_ = -1;  // of the cell that runs, guarded by the mutex above
};

}  // namespace hearth::interpreter
