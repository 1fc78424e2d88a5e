// Mounts: the table of them, the new mount API, overlayfs, and a mount namespace that is cheap to
// copy. (Not mount.h: <linux/mount.h> is the kernel's, and glibc includes it.) Everything acts on
// the calling thread's mount namespace and throws Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "linux/fd.h"

namespace hearth::linux {

// A line of /proc/<pid>/mountinfo, see proc(5), with its octal escapes undone.
struct MountEntry {
  int id = 0;
  int parent_id = 0;
  std::string root;  // the folder of the file system that is seen at mount_point
  std::string mount_point;
  std::string options;        // of this mount: "rw,nosuid"
  std::string type;           // "ext4"
  std::string source;         //
  std::string super_options;  // of the file system: "rw,size=4k"
};

// Throws Error(invalid) for a line that is none.
std::vector<MountEntry> parse_mountinfo(std::string_view text);

// Of the calling thread.
std::vector<MountEntry> mount_table();

// True when `option` is one of the comma-separated `options`.
bool has_mount_option(std::string_view options, std::string_view option);

// Owns what is mounted at a path: detaches it on destruction, which neither waits for users of the
// mount nor reports failure.
class Mount {
 public:
  Mount() = default;
  explicit Mount(std::string path) : path_(std::move(path)) {}
  Mount(Mount&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Mount& operator=(Mount&& other) noexcept;
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount() { detach(); }

  const std::string& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  void detach() noexcept;

  std::string path_;  // empty: nothing owned
};

struct MountSpec {
  std::string type;
  std::string source;
  std::string path;
  unsigned long flags = 0;  // MS_...
  std::string options;  // Error(invalid) from 4096 bytes on: mount(2) would cut them off silently
};

Mount make_mount(const MountSpec& spec);

// A copy of the mount at `path`, with all mounts below it if `recursive`, attached nowhere: gone
// when the descriptor is closed, unless attach_mount() gave it a place.
Fd clone_mount(const std::string& path, bool recursive = false);

// A new file system that is mounted nowhere, and gone with the descriptor unless attach_mount()
// gives it a place. `options` are what `type` understands, those without a value with an empty one;
// `flags` are MOUNT_ATTR_...
Fd make_detached_mount(const std::string& type,
                       const std::vector<std::pair<std::string, std::string>>& options,
                       std::uint64_t flags);

// Shows the owners of the files of a clone (and of all mounts in it) as the user namespace maps
// them: owner 0 on disk is the namespace's user 0. Only before attach_mount(); file systems that
// cannot do it answer with Error(internal), EINVAL.
// `flags` are MOUNT_ATTR_... to set along with it.
void set_mount_idmap(int mount_fd, int userns_fd, std::uint64_t flags = 0);

// MOUNT_ATTR_... flags to set and to clear on all mounts that mount_fd holds.
void set_mount_flags(int mount_fd, std::uint64_t set, std::uint64_t clear = 0);

void attach_mount(int mount_fd, const std::string& path);

struct OverlayLayers {
  std::vector<std::string> lowers;  // topmost first
  std::string upper;                // with `work`: both or none (read-only)
  std::string work;                 // on the file system of `upper`
  bool userxattr = false;           // needed when mounted from inside a user namespace
  bool volatile_upper = false;      // never synced: for an upper layer that no crash shall survive
  std::vector<std::string> extra;   // further options as they are: "metacopy=off"
};

// The option text of an overlay mount. Paths may contain what separates options and layers.
std::string overlay_options(const OverlayLayers& layers);

// Moves the calling process (it must have one thread) into a mount namespace of its own and
// detaches every mount there except `/`, those at a path of `keep`, and those above one: its
// children copy few mounts instead of all (20 mounts: 110 to 160 us per clone). Kept mounts below
// an unkept path count as unkept. Nothing that happens in either namespace is seen in the other.
void make_slim_mount_namespace(const std::vector<std::string>& keep);

}  // namespace hearth::linux
