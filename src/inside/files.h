// Files of the sandbox, as its surfaces show and change them.
//
// Works as the guest, which is root inside and sees nothing of the outside; what it makes is then
// given to the user it was made for. Paths are absolute and clean (paths.h). Nothing here waits for
// a file that never answers. Errors: not_found, already_exists, invalid (it is something else than
// was asked for), conflict (links in a circle), exhausted (no room).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "linux/fd.h"

struct stat;

namespace hearth::inside {

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

using Metadata = std::map<std::string, std::string>;

struct Entry {
  // Of what a link leads to.
  enum class Kind { other, file, folder };

  std::string name;
  std::string path;
  Kind kind = Kind::other;
  std::uint32_t mode = 0;  // the nine permission bits, also of what a link leads to
  bool is_link = false;
  // Of a link itself, all that follows.
  std::int64_t size = 0;
  std::string permissions;  // "-rw-r--r--", as Go writes them
  std::string owner;        // names; numbers where there is none
  std::string group;
  Time modified{};
  // Where a link leads in the end; itself, if that is nowhere.
  std::optional<std::string> link_target;
  Metadata metadata;
};

// "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx", "Dcrw-rw-rw-".
std::string permission_text(std::uint32_t mode);

// Looks names up once for many entries.
class Names {
 public:
  const std::string& user(std::uint32_t uid);
  const std::string& group(std::uint32_t gid);

 private:
  std::map<std::uint32_t, std::string> users_;
  std::map<std::uint32_t, std::string> groups_;
};

Entry describe(const std::string& path, Names& names);

// Calls `each` for what is in a folder, and in the folders in it, `depth` levels deep: a folder
// before what is in it, in the order of their names. Links are not followed, except `path`.
void list(const std::string& path, std::uint32_t depth, const std::function<void(Entry)>& each);

// With all folders on the way that are missing. False when it was there already.
bool make_folder(const std::string& path, Owner owner);

// rename(2), also of folders of a layer below (folder_move.h); makes the folders on the way.
void move(const std::string& from, const std::string& to, Owner owner);

// A file, or a folder with everything in it. What is not there is success.
void remove(const std::string& path);

// Where links in a path lead; nothing where they lead nowhere.
std::optional<std::string> resolve(const std::string& path);

}  // namespace hearth::inside
