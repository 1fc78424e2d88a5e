// A tar archive, entry by entry: ustar, pax, GNU (long names, large numbers, sparse files).
//
// Our own, because names must come out byte for byte as they went in: the usual library recodes and
// normalises them. What it does not know it refuses rather than guesses. All memory is bounded,
// whatever the archive says. Everything throws Error(invalid), naming the entry as far as its name
// is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unpack/byte_input.h"
#include "unpack/pax.h"
#include "unpack/tar_header.h"

namespace hearth::unpack {

struct TarEntry {
  enum class Kind { file, folder, symlink, hard_link, fifo, device };

  Kind kind = Kind::file;
  std::string path;  // as in the archive
  std::string link;  // what a link points to
  std::uint32_t mode = 0;
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  PaxTime mtime;
  std::uint64_t size = 0;       // of the file, with its holes
  std::vector<Extent> extents;  // in order, within `size`; their bytes are the entry's data
  std::map<std::string, std::string> xattrs;
};

class TarReader {
 public:
  // Borrows `input`.
  explicit TarReader(ByteInput& input) : input_(input) {}

  // The next entry; what was not read of the last one is skipped. Nothing at the end, which is two
  // blocks of zeros or the end of the input: what follows those blocks is not looked at.
  std::optional<TarEntry> next();

  // The next bytes of the entry's data, at most as many as fit; 0 after the last.
  std::size_t read_data(std::span<char> into);

 private:
  std::optional<TarHeader> next_header();
  std::string read_extended(const TarHeader& header);
  TarEntry complete(const TarHeader& header, const PaxFields& pax);
  void read_sparse(const TarHeader& header, const PaxFields& pax, TarEntry& entry);
  std::vector<Extent> read_map_in_data();
  void finish_entry();

  ByteInput& input_;
  std::uint64_t data_left_ = 0;     // of the current entry
  std::uint64_t padding_left_ = 0;  // after it, up to the next block
};

}  // namespace hearth::unpack
