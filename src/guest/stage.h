// The file system of a sandbox, built from inside it.
//
// First the stage, which is the same for every sandbox and can be built before anyone knows what it
// will hold: a tmpfs of its own, and on it /proc, /sys and /dev as trees that wait to be moved into
// place. Then, on a word, the image: an overlay of its layers with the tmpfs, or a disk, as the
// writable one, the three trees moved into it, volumes attached, and all of that put on the root.
// What it covers is out of reach, and nothing of the host's (docs/adr/0022).
//
// Runs as root of the sandbox's own namespaces, before it gives up its rights. What an image brings
// is hostile: nothing in it can lead a mount outside of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "guest/boot.h"
#include "linux/fd.h"

namespace hearth::guest {

// The nursery's root folder: what a shell finds there, and nothing else of the host.
inline constexpr const char* kDevices = "/devices";  // device nodes, links, mount points
inline constexpr const char* kNothing = "/nothing";  // an empty folder
// Nobody inside may look into these, whoever he is.
inline constexpr const char* kClosedFolder = "/closed";
inline constexpr const char* kClosedFile = "/closed-file";
inline constexpr const char* kStage = "/stage";    // an empty folder to build on
inline constexpr const char* kQueues = "/queues";  // message queues, if they are to be shared

// For the nursery: makes that root folder, in a mount namespace of its own, and enters it; what
// was the root is let go of. Reaps a child. Leaves nothing behind when the process ends. If
// `joined`, the nursery lives in namespaces of a sandbox, and what tells of those is mounted here:
// those born in it have no rights to do so. Throws Error.
void make_nursery_root(bool joined);

// For the shell: builds the stage, which becomes the working folder. `boot_id` is what
// /proc/sys/kernel/random/boot_id will say. Throws Error.
void build_stage(const std::string& boot_id);

// Borrowed descriptors of detached mounts.
struct RootMounts {
  std::span<const int> layers;      // of the root, topmost first
  std::span<const int> usr_layers;  // empty: /usr is in the root's
  std::span<const Attachment> attachments;
  std::span<const int> attachment_fds;
  int disk_fd = -1;  // where the writable layers are; -1: on the stage
  std::uint64_t disk_bytes = 0;
};

// Where the writable layers are on the stage, or on the disk.
inline constexpr const char* kRootUpper = "lupper";
inline constexpr const char* kUsrUpper = "uupper";

// Builds the root on the stage and enters it. Returns the stage, or the disk, which are out of
// sight from then on: whoever takes snapshots finds the writable layers there. Throws Error.
linux::Fd enter_root(const RootMounts& mounts);

// The image's files, and nothing that is mounted on them, for as long as the sandbox lives: to
// change it back takes a right that is given up next. Throws Error.
void make_root_read_only(const Assignment& assignment);

}  // namespace hearth::guest
