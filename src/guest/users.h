// Who a command runs as: names looked up in the sandbox's own /etc/passwd and /etc/group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::guest {

struct User {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  // all of them, gid included
  std::string name;                   // empty for a bare uid
  std::string home = "/";
  std::string shell = "/bin/sh";
};

// `wanted` is a name, a uid, or either with ":group" behind it. A uid that the files do not list is
// taken as it is. Throws Error(invalid) for names that are not there and numbers that cannot be
// (not_found would read as "no such program" to whoever asked for a command). The two texts come
// from inside: broken lines are passed over.
User find_user(std::string_view passwd, std::string_view group, std::string_view wanted);

// The same, with the files of this file system. A missing file is an empty one. Thread-safe, as
// everything that says "here".
User find_user_here(std::string_view wanted);

// The groups that list this user as a member, and the one that is its own.
std::vector<std::uint32_t> memberships_here(const User& user);

// The name of a user or a group; the number as text where the files list none.
std::string user_name_here(std::uint32_t uid);
std::string group_name_here(std::uint32_t gid);

}  // namespace hearth::guest
