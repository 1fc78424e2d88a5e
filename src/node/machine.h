// What the kernel tells of this machine in its text files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::node {

// Without the line's end. Empty where there is no such file.
std::string read_or_nothing(const std::string& path);
// The first number in a text; 0 where there is none.
std::uint64_t number_in(std::string_view text);
// The value behind NAME in lines such as "NAME=value" or "NAME: value".
std::string value_of(std::string_view text, std::string_view name);

struct Amount {
  std::uint64_t capacity = 0;  // 0: not known
  std::uint64_t available = 0;
};

// Of the file system that the path is on.
Amount read_disk(const std::string& path);
Amount read_memory();
Amount read_processes();

}  // namespace hearth::node
