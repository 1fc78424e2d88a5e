// The one process that every command of a sandbox is born from.
//
// The guest (PID 1) stays outside the limits that its users' processes live under; the spawner is
// its child inside them. A command forked from the spawner inherits cgroups, seccomp filter and
// capabilities without any work per command, and is made the guest's own child (CLONE_PARENT), so
// that the guest learns how it ended.
//
//   guest ──SpawnPlan + stdio──▶ spawner ──vfork, exec──▶ command (child of the guest)
//         ◀──pid, or what failed──
//
// Root inside can kill or stop the spawner, as it can any process but PID 1: the guest then starts
// another one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linux/channel.h"

namespace hearth::guest {

struct SpawnPlan {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // complete
  std::string directory;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  bool terminal = false;  // stdin is a terminal and becomes the controlling one
};

enum class SpawnStep : std::uint8_t {
  none = 0,       // nothing failed
  process = 1,    // no process could be made
  user = 2,       // becoming the user
  directory = 3,  // entering the working directory
  program = 4,    // running the program
  set_up = 5,     // session, terminal, descriptors
};

struct SpawnResult {
  pid_t pid = 0;
  SpawnStep failed = SpawnStep::none;
  int error = 0;  // errno of the step that failed
};

std::string encode(const SpawnPlan& plan);
SpawnPlan parse_spawn_plan(std::string_view bytes);
std::string encode(const SpawnResult& result);
SpawnResult parse_spawn_result(std::string_view bytes);

// Serves spawn requests until the channel closes. `join_fds` are cgroup.procs files to join first;
// throws if that fails, because nothing may run outside its limits.
void run_spawner(linux::Channel channel, std::span<const int> join_fds);

}  // namespace hearth::guest
