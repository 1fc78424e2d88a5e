// What posix_spawn(3) is told, owned: which descriptors the program gets, and that it begins with
// ordinary signals, whatever our threads block or ignore.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

namespace hearth::linux {

class SpawnRules {
 public:
  SpawnRules() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnRules(const SpawnRules&) = delete;
  SpawnRules& operator=(const SpawnRules&) = delete;
  ~SpawnRules() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // In this order, as given. -1 is /dev/null.
  void connect(int fd, int as) {
    if (fd < 0) {
      posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, fd, as);
    }
  }
  // What whoever started us left open is none of its business.
  void close_from(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace hearth::linux
