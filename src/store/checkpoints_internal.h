// Copies the write-ahead log into the file while others go on writing to it.
//
// A connection of its own on a thread of its own. It copies what is there, and then what came
// meanwhile, until that is little; for the rest the writers wait, because only a log that was
// copied to its end is written over from its beginning.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "store/sqlite_internal.h"

namespace hearth::store {

class Checkpoints {
 public:
  // `writing` is held by whoever writes. `on_disk` is called with it held, when everything that was
  // written so far is on the disk itself; it may not throw. A store's file must be there, in use by
  // a connection that is closed later than this. Throws Error.
  Checkpoints(const std::string& path, std::mutex& writing, std::function<void()> on_disk);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;
  ~Checkpoints();  // waits for one that has begun

  // Returns at once. Called again while one is made, or after one that failed, it does no harm.
  // A failure (a full disk) is not the writers': the log grows, and the next one tries again.
  void ask(bool is_urgent);
  // While an urgent one is to be made: for whoever wants to write, and does not hold `writing` yet.
  void wait_if_urgent();

 private:
  void run(const std::stop_token& stop);
  void make_one();
  // How many frames it left, or -1: it failed.
  int copy();

  Connection connection_;
  std::mutex& writing_;
  std::function<void()> on_disk_;

  std::mutex mutex_;  // guards asked_ and changes of is_urgent_; taken after writing_
  std::condition_variable_any changed_;
  bool asked_ = false;
  std::atomic<bool> is_urgent_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hearth::store
