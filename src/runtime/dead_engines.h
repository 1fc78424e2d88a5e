// What engines left on this machine that cannot come back: those whose state folder was removed.
//
// An engine that is killed comes back on its state folder, and takes over or sweeps what is its
// own. Without that folder nobody would. So each has a note in memory, beside its sandboxes:
//   MEMORY/hearth/TAG/lock    held for as long as its runtime lives
//   MEMORY/hearth/TAG/home    which folder is its own, as a handle: the kernel knows for sure
//                             whether that folder still exists, wherever it was moved
// An engine is dead only if nobody holds the lock and the kernel says that the folder is no more. A
// folder whose file system is not mounted now, or has no handles, is not gone.
//
// The note comes before everything else that a start makes on the machine and goes after it, so
// that a start may be killed at any moment. What was killed before it had written one has made
// nothing.
#pragma once

#include <string>

#include "linux/cgroup.h"
#include "linux/fd.h"

namespace hearth::runtime {

// The lock is held by whoever starts. `home_fd` is the engine's own folder, `path` leads to its
// file system. Where the file system has no handles there will be no note. Throws Error.
void note_home(int memory_folder_fd, int home_fd, const std::string& path);

// Takes away what a start has made that failed: network and cgroups. Throws Error when something
// stays, as it does if there are sandboxes, or remains of some, from before: the next start is to
// find them.
void undo_start(int memory_folder_fd, const std::string& tag, linux::CgroupTree& cgroups,
                bool with_network);

// Takes everything of dead engines away: sandboxes, cgroups, network, notes. Returns how many there
// were. To be called where all of the machine's file systems and its network are in sight. What
// fails is logged. `all_engines_fd` is MEMORY/hearth.
unsigned sweep_dead_engines(int all_engines_fd);

// The lock of one of these folders, or nothing: somebody has it.
linux::Fd try_lock_folder(int folder_fd);

}  // namespace hearth::runtime
