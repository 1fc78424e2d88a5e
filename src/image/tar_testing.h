// Tar archives made of parts, right or wrong: for the tests of image/ and unpack/. Not for anything
// else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace hearth::image {

template <typename F>
std::optional<Error> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

struct TarPart {
  std::string path;
  char type = '0';
  std::string data;
  std::string link;
  unsigned mode = 0644;
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  std::int64_t mtime = 1'700'000'000;
  std::vector<std::pair<std::string, std::string>> pax;
};

inline std::string tar_padding(std::size_t size) {
  return std::string((512 - size % 512) % 512, '\0');
}

// Fills in the checksum of a 512 byte block.
inline std::string tar_checksummed(std::string block) {
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

// A POSIX header; `size` is what it claims.
inline std::string tar_header(const TarPart& part, std::uint64_t size) {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, part.path.substr(0, 100));
  put(100, fmt::format("{:07o}", part.mode));
  put(108, fmt::format("{:07o}", part.uid & 07777777));
  put(116, fmt::format("{:07o}", part.gid & 07777777));
  put(124, fmt::format("{:011o}", size));
  put(136, fmt::format("{:011o}", part.mtime));
  block[156] = part.type;
  put(157, part.link.substr(0, 100));
  put(257, std::string("ustar\0", 6) + "00");
  return tar_checksummed(std::move(block));
}

inline std::string pax_record(std::string_view key, std::string_view value) {
  std::size_t length = key.size() + value.size() + 3;
  while (fmt::format("{}", length).size() + key.size() + value.size() + 3 != length)
    length = fmt::format("{}", length).size() + key.size() + value.size() + 3;
  return fmt::format("{} {}={}\n", length, key, value);
}

inline std::string tar_part(const TarPart& part) {
  std::string bytes;
  std::string extended;
  for (const auto& [key, value] : part.pax) extended += pax_record(key, value);
  if (!extended.empty()) {
    bytes += tar_header({.path = "pax", .type = 'x'}, extended.size());
    bytes += extended + tar_padding(extended.size());
  }
  bytes += tar_header(part, part.data.size());
  return bytes + part.data + tar_padding(part.data.size());
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

inline std::string tar_of(const std::vector<TarPart>& parts) {
  std::string bytes;
  for (const TarPart& part : parts) bytes += tar_part(part);
  return bytes + tar_end();
}

}  // namespace hearth::image
