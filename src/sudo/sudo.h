// The program `sudo` of a sandbox: asks PID 1 for a command that runs as another user
// (guest/sudo_door.h), and stands in for it: passes signals on, ends as it ends.
//
// The command has the caller's own stdin, stdout and stderr, and goes with its caller: one that is
// killed leaves nothing running. Where stdin and stdout are a terminal the command has one of its
// own, and this process copies between the two: a terminal controls one session only, and the
// command is in another.
#pragma once

#include <span>

namespace hearth::sudo {

// Returns the exit code of the process: the command's, 128 and the signal that ended it, or 1 where
// there was none.
int run(std::span<char* const> words);

}  // namespace hearth::sudo
