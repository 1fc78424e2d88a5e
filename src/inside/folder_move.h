// Moving what the kernel does not move in one (EXDEV).
//
// An overlay does not rename a folder of a layer below, though what is in it can be renamed,
// folders aside. In a sandbox that began from a snapshot, or slept without its memory, that is
// every folder there was; whoever works in it knows of no layers. Nor need he know what is mounted
// where: from one file system to another, files are copied.
#pragma once

#include <string>

namespace hearth::inside {

// What rename(2) does, but not in one moment. An empty folder at `to` gives way to a folder, and a
// file to a file. What fails is taken back. Throws Error.
void move_in_pieces(const std::string& from, const std::string& to);

}  // namespace hearth::inside
