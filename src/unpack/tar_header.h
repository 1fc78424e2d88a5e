// One 512 byte header block of a tar archive: ustar, GNU and the old one before both.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::unpack {

inline constexpr std::size_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

// A run of bytes of a file that are in the archive; what lies between runs is zeros.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const Extent&) const = default;
};

struct TarHeader {
  char type = '0';
  std::string path;
  std::string link;
  std::uint32_t mode = 0;
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  std::uint64_t size = 0;  // of what follows in the archive
  std::int64_t mtime = 0;
  // GNU's own sparse files, type 'S':
  std::vector<Extent> extents;
  bool more_extents = false;  // in a block that follows
  std::uint64_t real_size = 0;
};

bool is_zero(const TarBlock& block);

// Throws Error(invalid): wrong checksum, numbers that are none.
TarHeader parse_tar_header(const TarBlock& block);

// A block that follows a header with more_extents: appends to `extents`, true when there is another
// one.
bool parse_more_extents(const TarBlock& block, std::vector<Extent>& extents);

}  // namespace hearth::unpack
