// libarchive, cut down to what we want of it: tar, and the compressions that people wrap it in.
//
// These are bytes of strangers; this runs in a process without privileges. Errors become
// Error(invalid).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct archive;
struct archive_entry;

namespace hearth::registry {

class TarReader {
 public:
  // Reads from where `fd` stands; borrowed.
  enum class Wrapping { none, compressed };
  TarReader(int fd, Wrapping wrapping);
  // What is inside a compression, whatever that is: one entry, no name.
  static TarReader of_compressed_bytes(int fd);

  struct Entry {
    std::string name;     // without "./" in front
    std::string link;     // where a symbolic link leads, relative to its own folder
    std::string same_as;  // the entry that a hard link is another name of
    bool is_file = false;
    std::uint64_t size = 0;
    std::uint64_t position = 0;  // of its header, from where we began
  };
  // False at the end.
  bool next(Entry& entry);

  // The content of the entry that next() gave, up to `limit`. Throws Error(exhausted) past it.
  std::string read(std::size_t limit);
  void copy_to(int fd, std::uint64_t limit);

 private:
  struct Free {
    void operator()(::archive* reader) const;
  };
  TarReader();
  void open(int fd);
  [[noreturn]] void throw_failure(const char* doing) const;

  std::unique_ptr<::archive, Free> reader_;
};

}  // namespace hearth::registry
