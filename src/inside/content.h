// What is in the sandbox's files: reading, writing, and the notes that clients attach to them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "inside/files.h"
#include "linux/fd.h"

namespace hearth::inside {

struct OpenedFile {
  linux::Fd fd;
  struct stat status{};
};
// For reading; a regular file and nothing else. Throws Error: not_found, invalid.
OpenedFile open_for_reading(const std::string& path);

// A file that is being written. A new one that is not finished disappears again.
//
// Whoever watches the folder sees exactly: it is created, it gets its owner, it is written to; one
// write for each piece.
class FileWriter {
 public:
  // Makes the folders on the way; empties a file that is there. Throws Error: invalid for what is
  // no file, exhausted where there is no room.
  FileWriter(std::string path, Owner owner);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(std::string_view piece);
  // All of another file.
  void append(const OpenedFile& file);
  // The metadata replaces what was there; it stays untouched when it would not change.
  void finish(const Metadata& metadata);

 private:
  void open(Owner owner);

  std::string path_;
  linux::Fd fd_;
  bool is_new_ = false;
  bool finished_ = false;
};

// How much more can be written where `path` is, or will be. Nothing when nobody knows.
std::optional<std::uint64_t> free_bytes(const std::string& path);

// What clients noted with a file: extended attributes under kMetadataPrefix.
inline constexpr std::string_view kMetadataPrefix = "user.e2b.";
Metadata read_metadata(const std::string& path);

}  // namespace hearth::inside
