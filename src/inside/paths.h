// Paths as clients of a sandbox write them.
#pragma once

#include <string>
#include <string_view>

namespace hearth::inside {

// Without ".", "..", double or trailing slashes, by looking at the text alone. "." for nothing.
std::string clean_path(std::string_view path);

// "b" of "/a/b"; "/" of "/".
std::string_view base_name(std::string_view path);
// "/a" of "/a/b"; "/" of "/a" and "/".
std::string_view folder_of(std::string_view path);

struct PathRules {
  std::string_view home;     // of the user; where relative paths begin
  std::string_view working;  // what an empty path means; empty: the home
};
// An absolute, clean path. Throws Error(invalid) for another user's home ("~other"), and for a zero
// byte, at which the kernel would stop reading.
std::string expand_path(std::string_view path, const PathRules& rules);

}  // namespace hearth::inside
