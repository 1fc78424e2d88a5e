// A folder of our own for large things that are on their way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "linux/fd.h"
#include "registry/digest.h"

namespace hearth::registry {

// Makes the folder (mode 0700) and those above it. Throws Error, also for one that others may write
// to.
linux::Fd open_scratch(const std::string& path);

// A file without a name: it goes when it is closed.
linux::Fd make_unnamed_file(int folder_fd);

// A blob that may have been begun by an earlier attempt. Its name is its digest, so that what is in
// it can be checked and continued; whoever has it open has it alone.
class PartialFile {
 public:
  // If another process is busy with this blob, ours is a file without a name. What is there is read
  // and hashed; it is dropped if it is longer than `size`.
  PartialFile(int folder_fd, const std::string& digest, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  void append(std::string_view bytes);
  void restart();

  // Of everything in it. Once; restart() makes it possible again.
  std::string digest() { return hash_.finish(); }
  // To be read from its beginning.
  int rewound_fd();
  // It has served its purpose, or has something wrong in it.
  void remove();

 private:
  bool open_named();
  void hash_what_is_there();

  int folder_fd_;
  std::string name_;  // empty: it has none
  linux::Fd file_;
  std::uint64_t size_ = 0;
  Sha256 hash_;
};

// Removes what nobody continued within a week.
void sweep_scratch(int folder_fd);

}  // namespace hearth::registry
