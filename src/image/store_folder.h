// The store's folder on disk: what is where, and in which order it gets there. Knows no rules about
// who needs what; see store.h. Throws Error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "image/image.h"
#include "linux/fd.h"

namespace hearth::image {

// A folder below tmp/ that goes away with this object, unless it became a layer.
class HalfMade {
 public:
  HalfMade(int tmp_fd, std::string name);
  HalfMade(HalfMade&& other) noexcept;
  HalfMade& operator=(HalfMade&&) = delete;
  HalfMade(const HalfMade&) = delete;
  HalfMade& operator=(const HalfMade&) = delete;
  ~HalfMade();

  // The folder for the layer's files, for linux::clone_mount().
  std::string fs_path() const;

 private:
  friend class StoreFolder;

  int tmp_fd_;        // borrowed from the StoreFolder
  std::string name_;  // empty: moved on
  linux::Fd dir_;
};

class StoreFolder {
 public:
  // Makes what is missing; duplicates the descriptor.
  explicit StoreFolder(int folder_fd);

  // Empties tmp/; returns how many things were in it. What cannot be removed is logged.
  std::size_t sweep();

  // Bytes of every layer by diff id. A layer without a readable meta is put away, to be swept.
  std::map<std::string, std::uint64_t> load_layers();
  // What cannot be read is logged and left out.
  std::vector<Image> load_images() const;

  HalfMade begin();
  // Writes the meta and waits until everything is on disk.
  void seal(const HalfMade& half_made, std::uint64_t bytes);
  // One rename, no waiting: for under a lock. Then sync_layers() before anyone is told.
  void publish(HalfMade& half_made, const std::string& diff_id);
  void sync_layers();
  // Takes a layer out of sight, into tmp/; remove_aside() deletes it, which may take long.
  std::string put_aside(const std::string& diff_id);
  void remove_aside(const std::string& name);

  void write_image(const Image& image);
  void remove_image(const std::string& name);

  // "/proc/self/fd/..."
  std::string layer_path(const std::string& diff_id) const;

 private:
  linux::Fd folder_;
  linux::Fd layers_;
  linux::Fd images_;
  linux::Fd tmp_;
};

}  // namespace hearth::image
