// The files of an image archive by name, whether they are in a tar archive or in a folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "linux/fd.h"

namespace hearth::registry {

// Of one archive, and of everything that is unpacked on the way.
inline constexpr std::uint64_t kMaxArchive = std::uint64_t{64} << 30;

// Names are relative and have no ".." in them, or there is no such file.
class ArchiveFiles {
 public:
  virtual ~ArchiveFiles() = default;

  virtual bool has(const std::string& name) const = 0;
  // Both throw Error(invalid) when there is no such file. What is opened stands at its beginning.
  virtual std::string read(const std::string& name, std::size_t limit) = 0;
  virtual linux::Fd open(const std::string& name) = 0;
};

class TarFiles final : public ArchiveFiles {
 public:
  // `tar` is a regular file, at its beginning, not compressed. `scratch_fd` must outlive it.
  TarFiles(linux::Fd tar, int scratch_fd);

  bool has(const std::string& name) const override;
  std::string read(const std::string& name, std::size_t limit) override;
  linux::Fd open(const std::string& name) override;

 private:
  struct Place {
    std::uint64_t position = 0;
    bool is_file = false;
    std::string link;  // to follow, from the archive's root
  };
  const Place* find(const std::string& name) const;
  const Place& get(const std::string& name) const;

  linux::Fd tar_;
  int scratch_fd_;
  std::map<std::string, Place> places_;
};

class FolderFiles final : public ArchiveFiles {
 public:
  explicit FolderFiles(linux::Fd folder) : folder_(std::move(folder)) {}

  bool has(const std::string& name) const override;
  std::string read(const std::string& name, std::size_t limit) override;
  linux::Fd open(const std::string& name) override;

 private:
  linux::Fd folder_;
};

// What its first bytes say about a file.
enum class Wrapping { none, gzip, zstd, other };
Wrapping wrapping_of(int file_fd);

// A regular file with what can be read from `fd`, at its beginning: itself if it is one.
linux::Fd as_regular_file(int fd, int scratch_fd);

// What is inside the compression.
linux::Fd unwrapped(int file_fd, int scratch_fd);

}  // namespace hearth::registry
