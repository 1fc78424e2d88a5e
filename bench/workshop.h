// What the subjects share: the programs they run, a minimal root folder, and hearth-runtimes of our
// own that have it as an image. Made once, gone without a trace at the end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "bench/process.h"
#include "runtime/client.h"

namespace hearth::bench {

// The root folder as an image, in every engine.
inline constexpr const char* kImage = "docker.io/library/bench:latest";

struct EngineOptions {
  std::string program;
  std::string state_dir;
  unsigned warm = 0;     // shells to keep ready
  bool network = false;  // and with a link each
};

// A hearth-runtime on a new state folder. Leaves nothing behind.
class Engine {
 public:
  // Throws Error: not_found when it is not built.
  explicit Engine(const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  const std::string& state_dir() const { return options_.state_dir; }
  pid_t pid() const { return pid_; }
  unsigned warm() const { return options_.warm; }

 private:
  EngineOptions options_;
  pid_t pid_ = 0;
};

// Makes the folder the image kImage of whoever runs on the state folder.
void add_image(const std::string& state_dir, const std::string& folder);

// One of ours, or why there is none.
struct EngineOrReason {
  std::unique_ptr<Engine> engine;
  std::string reason;

  // Throws Error with the reason.
  const Engine& get() const;
};

class Workshop {
 public:
  // Needs root. Moves the process into a mount namespace of its own, so that it must have one
  // thread; there, where cgroups are hybrid, the v2 hierarchy is hidden, because crun 1.8 refuses
  // to work beside one. The engines are started before and see it.
  enum class Engines { none, both };
  explicit Workshop(Engines engines = Engines::both);
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop();

  // Makes every sandbox when it is asked for, without a network. Throws Error: why there is none.
  const Engine& engine() const { return engine_.get(); }
  // Has shells ready, each with a link.
  const Engine& pooled_engine() const { return pooled_engine_.get(); }

  // A program of ours, beside this one.
  std::string own_program(const std::string& name) const { return bin_ + "/" + name; }

  std::string noop() const { return own_program("bench-noop"); }
  std::string small_files() const { return own_program("bench-small-files"); }
  // Holds the programs as /noop and /small-files, and folders to mount on. Root inside is kRootId
  // outside.
  std::string rootfs() const { return folder_ + "/rootfs"; }
  // For what a subject needs besides; made anew for each name.
  std::string make_folder(const std::string& name) const;

  // For containers: nobody else on this machine uses it, and it can be found again.
  std::string new_name() const;

  bool hides_v2() const { return hides_v2_; }

  // Far from accounts and from the engine's own ranges.
  static constexpr unsigned kRootId = 0x7000'0000;
  static constexpr unsigned kWarm = 64;

 private:
  void make_rootfs() const;
  void add_program(const std::string& program, const char* name) const;
  EngineOrReason start_engine(const char* name, unsigned warm) const;
  void give_rootfs_away() const;
  void hide_v2();
  void sweep_cgroups() const;

  std::string bin_;
  std::string folder_;
  std::string prefix_;  // of names
  bool hides_v2_ = false;
  mutable std::atomic<unsigned> names_ = 0;
  EngineOrReason engine_;
  EngineOrReason pooled_engine_;
};

}  // namespace hearth::bench
