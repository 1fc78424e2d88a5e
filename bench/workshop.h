// What the subjects share: the program they run, a minimal root folder for the peers, and a
// hearth-runtime of our own. Made once, gone without a trace at the end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "bench/process.h"
#include "runtime/client.h"

namespace hearth::bench {

// A hearth-runtime on a new state folder. Leaves nothing behind.
class Engine {
 public:
  // Throws Error: not_found when it is not built.
  Engine(const std::string& program, const std::string& state_dir);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  const std::string& state_dir() const { return state_dir_; }
  pid_t pid() const { return pid_; }

 private:
  std::string state_dir_;
  pid_t pid_ = 0;
};

class Workshop {
 public:
  // Needs root. Moves the process into a mount namespace of its own, so that it must have one
  // thread; there, where cgroups are hybrid, the v2 hierarchy is hidden, because crun 1.8 refuses
  // to work beside one. The engine is started before and sees it.
  Workshop();
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop();

  // Throws Error: why there is none.
  const Engine& engine() const;

  // A program of ours, beside this one.
  std::string own_program(const std::string& name) const { return bin_ + "/" + name; }

  std::string noop() const { return own_program("bench-noop"); }
  // Holds the program as /noop, and folders to mount on. Root inside is kRootId outside.
  std::string rootfs() const { return folder_ + "/rootfs"; }
  // For what a subject needs besides; made anew for each name.
  std::string make_folder(const std::string& name) const;

  // For containers: nobody else on this machine uses it, and it can be found again.
  std::string new_name() const;

  bool hides_v2() const { return hides_v2_; }

  // Far from accounts and from the engine's own ranges.
  static constexpr unsigned kRootId = 0x7000'0000;

 private:
  void make_rootfs() const;
  void hide_v2();
  void sweep_cgroups() const;

  std::string bin_;
  std::string folder_;
  std::string prefix_;  // of names
  bool hides_v2_ = false;
  mutable std::atomic<unsigned> names_ = 0;
  std::unique_ptr<Engine> engine_;
  std::string no_engine_;  // why not
};

}  // namespace hearth::bench
