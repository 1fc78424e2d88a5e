// The way from a sandbox's own `sudo` to its guest.
//
// No program inside gains privileges by being executed (no_new_privs), so the usual sudo cannot
// work there. Ours asks PID 1, which is root inside, to start the command: as any other it starts,
// with the same rights, filter and limits. What is said is the guest's own protocol: first the
// guest says Connected, or Failed to who may not; then comes one ExecRequest with three
// descriptors, whose environment is whole; then signals, until the command has ended. Whoever hangs
// up ends the command.
#pragma once

#include "linux/channel.h"
#include "linux/fd.h"

namespace hearth::guest {

// Where the program is, and the name that others use; the second is a link to the first, unless
// the image has something of its own there.
inline constexpr const char* kSudoPath = "/usr/local/bin/sudo";
inline constexpr const char* kSudoLink = "/usr/bin/sudo";
void link_sudo();

// What a command and its environment may be: more than any shell makes of a line.
inline constexpr std::size_t kMostSudoBytes = std::size_t{1} << 20;

// A listening socket, nameless in the file system: nobody inside can remove it, or needs a place to
// write to. Throws Error.
linux::Fd open_sudo_door();

// Its other end, checked to be PID 1 of the caller's own sandbox: it will be given descriptors.
// Throws Error(unavailable) where there is none.
linux::Channel knock_at_sudo_door();

}  // namespace hearth::guest
