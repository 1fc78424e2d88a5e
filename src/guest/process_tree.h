// Ending a command with everything it started.
#pragma once

#include <sys/types.h>

#include <vector>

namespace hearth::guest {

// Kills `root`, all its descendants, and all processes of its session and group, whatever process
// started them. Looks again until nothing new turns up, so that a tree that forks while it is being
// killed does not get away. `proc_fd` is an open /proc. Returns how many processes it killed.
int kill_tree(int proc_fd, pid_t root);

}  // namespace hearth::guest
