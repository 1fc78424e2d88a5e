// Moving a folder that the kernel moves only in pieces.
//
// An overlay does not rename a folder of a layer below (EXDEV), though what is in it can be
// renamed, folders aside. In a sandbox that began from a snapshot, or slept without its memory,
// that is every folder there was; whoever works in it knows of no layers.
#pragma once

#include <string>

namespace hearth::inside {

// Whether both are below one mount: then EXDEV is about layers, and not about file systems.
bool on_one_mount(const std::string& one, const std::string& other);

// What rename(2) does with a folder, but not in one moment. An empty folder at `to` gives way. What
// fails is taken back. Throws Error.
void move_in_pieces(const std::string& from, const std::string& to);

}  // namespace hearth::inside
