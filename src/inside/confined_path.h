// A folder, and paths below it that stay below it.
//
// Links are followed for as long as they stay inside: relative ones, and absolute ones that name
// the root itself. Everything is done with descriptors, one name after the other, and no call
// follows a link by itself: what is swapped between a look and a use makes the use fail, and never
// leads outside.
//
// Works as the guest, which is root inside; what it makes is given to the user it was made for.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "guest/users.h"
#include "linux/fd.h"

namespace hearth::inside {

// Where a path leads, and what was there at that moment.
struct Place {
  enum class Kind { nothing, file, folder, other };

  Kind kind = Kind::nothing;
  struct stat status{};            // of what is there
  std::vector<std::string> names;  // from the root down, no links; empty: the root
  std::size_t existing = 0;        // so many of them are folders that are there
  linux::Fd folder;                // the deepest of these (O_PATH)

  bool is_root() const { return names.empty(); }
};

class ConfinedRoot {
 public:
  // An absolute path. Made when it is missing: the folder itself is `owner`'s. Throws Error.
  ConfinedRoot(const std::string& path, const guest::User& owner);

  // `path` is relative: slashes in front are passed over. Its last name is followed too, if it is a
  // link. What is not there is still checked: a path that would lead outside is forbidden whether
  // it exists or not. Throws Error: forbidden, not_found (links in a circle), invalid (longer than
  // a path can be, or with a zero byte), conflict (changed while it was looked at).
  Place locate(std::string_view path) const;

  // The folder that the last name of a place is in or will be in, with what is missing on the way
  // made, 0755. Not for the root. Throws Error: invalid (something on the way is no folder).
  linux::Fd make_parent(const Place& place, const guest::User& owner) const;

  // Removes what is there: a folder only when it is empty, or with all that is in it. Of the root
  // only what is in it, and only `with_content`. Throws Error: not_found, conflict (not empty).
  void remove(const Place& place, bool with_content) const;

 private:
  struct Walk;
  void step(Walk& walk, const std::string& name) const;
  void follow(Walk& walk, const std::string& name) const;
  linux::Fd open_below(const std::vector<std::string>& names, std::size_t count) const;

  linux::Fd root_;
  std::vector<std::string> spellings_;  // of the root: as it was asked for, and without links
};

// What is there, for reading. Throws Error: not_found, invalid (no regular file), conflict.
linux::Fd open_for_reading(const Place& place);

// A file that takes another one's place when it is finished, and nobody's when it is not.
class NewFile {
 public:
  // In `folder_fd`, which is borrowed, with a name of its own: `prefix` and something random. Mode
  // and owner are set before the first byte.
  NewFile(int folder_fd, std::string_view prefix, unsigned mode, const guest::User& owner);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  void write(std::string_view piece) { linux::write_all(file_.get(), piece); }
  // On disk, and then in the place of `name`. Throws Error(invalid) where a folder is in the way.
  void finish(const std::string& name);

 private:
  int folder_fd_;
  std::string name_;  // empty when it has its final one
  linux::Fd file_;
};

}  // namespace hearth::inside
