// Extended headers of POSIX tar archives: "LENGTH key=value\n", as many as there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unpack/tar_header.h"

namespace hearth::unpack {

struct PaxTime {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
};

// What such a header says of the entry that follows; keys that nobody here needs are left out.
struct PaxFields {
  std::optional<std::string> path;
  std::optional<std::string> link;
  std::optional<std::uint64_t> size;
  std::optional<std::uint64_t> uid;
  std::optional<std::uint64_t> gid;
  std::optional<PaxTime> mtime;
  std::map<std::string, std::string> xattrs;

  // GNU's sparse files, in three versions. 0.0 and 0.1 have the map here, 1.0 (in_data) has it at
  // the start of the file's data.
  bool sparse = false;
  bool sparse_map_in_data = false;
  std::optional<std::string> sparse_name;
  std::optional<std::uint64_t> sparse_size;
  std::vector<Extent> extents;
};

// Throws Error(invalid) for text that is no such header.
PaxFields parse_pax(std::string_view text);

// Decimal digits and nothing else. Throws Error(invalid).
std::uint64_t parse_decimal(std::string_view text);

}  // namespace hearth::unpack
