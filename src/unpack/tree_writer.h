// Puts the entries of an archive into a folder, and nothing anywhere else.
//
// Every path is resolved by the kernel as if the folder were the root (openat2(2) with
// RESOLVE_IN_ROOT): links among the parents of a path are followed, as they would be in a chroot,
// and cannot lead out. The last part of a path is never followed. Rules:
//
//   - An entry replaces what an earlier one left in its place; a folder stays and only changes.
//   - Parents that no entry names are made: root's, 0755. A parent that is a file is an error.
//   - ".wh.NAME" becomes a whiteout as overlayfs knows it (device 0/0), ".wh..wh..opq" an opaque
//     folder. They speak of the layers below: what this layer has under that name itself stays,
//     whichever comes first.
//   - Hard links lead to what this layer has; never to folders.
//   - Device nodes are refused, naming the entry. Owners above 65535 too.
//   - Of the extended attributes those of is_kept_xattr() are kept, file capabilities if the kernel
//     lets us.
//
// Not for use by several threads. Throws Error: invalid (the archive), exhausted (limits, disk
// full), internal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "linux/fd.h"
#include "unpack/tar_reader.h"
#include "unpack/tree_rules.h"

namespace hearth::unpack {

class TreeWriter {
 public:
  // Borrows both.
  TreeWriter(int root_fd, Budget& budget) : root_fd_(root_fd), budget_(budget) {}

  // The data of a file is read from `reader`.
  void add(const TarEntry& entry, TarReader& reader);
  // After the last: what could not be set while files were still to come.
  void finish();

 private:
  struct Place {
    int parent_fd = -1;  // borrowed from parent_
    std::string name;
    std::string path;  // for people
  };

  const linux::Fd& open_parent(const std::vector<std::string>& parts, std::size_t count);
  linux::Fd make_missing_folder(const std::vector<std::string>& parts, std::size_t count);
  void add_root(const TarEntry& entry);
  void add_whiteout(const Place& place);
  void add_file(const Place& place, const TarEntry& entry, TarReader& reader);
  void add_folder(const Place& place, const TarEntry& entry);
  void add_symlink(const Place& place, const TarEntry& entry);
  void add_hard_link(const Place& place, const TarEntry& entry);
  void add_fifo(const Place& place, const TarEntry& entry);
  // True when it was a whiteout.
  bool clear_place(const Place& place);
  void write_data(int fd, const Place& place, const TarEntry& entry, TarReader& reader);
  void remember_time(const std::string& path, const TarEntry& entry);

  int root_fd_;
  Budget& budget_;
  // The folder that the last entry went into: most entries follow one of the same folder.
  std::string parent_path_;
  linux::Fd parent_;
  std::map<std::string, PaxTime> folder_times_;
};

// All of an archive: reads `input` to its end. Returns what the layer takes up.
std::uint64_t apply_archive(ByteInput& input, int root_fd, std::uint64_t max_bytes,
                            std::uint64_t max_entries);

}  // namespace hearth::unpack
