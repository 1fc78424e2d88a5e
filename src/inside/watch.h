// What happens in a folder, as inotify(7) tells it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "linux/fd.h"

namespace hearth::inside {

// Crosses no boundary as a number.
enum class Change { create, write, remove, rename, chmod };

struct WatchEvent {
  std::string name;  // relative to the folder that is watched; "." is that itself
  Change change = Change::create;
};

// One folder, or all below it: those that are new are watched as soon as drain() hears of them, and
// what is in them by then is told of too. Not thread-safe.
class Watcher {
 public:
  // Throws Error: not_found, invalid (it is no folder), exhausted (there are too many).
  Watcher(std::string path, bool recursive);

  // All that has happened so far, in order. Throws Error(exhausted) when some of it was lost,
  // because nobody asked for too long; it goes on with what happens from then on.
  void drain(const std::function<void(WatchEvent)>& each);

  // Readable when something happened.
  int fd() const { return inotify_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Raw {
    int watch = 0;
    std::uint32_t mask = 0;
    std::uint32_t cookie = 0;
    std::string name;
  };

  bool add(const std::string& folder);
  void add_tree(const std::string& folder, const std::function<void(WatchEvent)>* each);
  void handle(const Raw& raw, const std::function<void(WatchEvent)>& each);
  void handle_folder(const Raw& raw, const std::string& name,
                     const std::function<void(WatchEvent)>& each);
  void rename_tree(const std::string& from, const std::string& to);
  void forget_tree(const std::string& folder);
  std::string whole(const std::string& folder) const;

  std::string path_;
  bool recursive_;
  linux::Fd inotify_;
  std::map<int, std::string> folders_;                // by watch; relative, "" for path_
  std::set<std::string> told_;                        // before their event came
  std::map<std::uint32_t, std::string> on_the_move_;  // folders, by cookie
};

// Whether a path is on a file system that other machines change too, which inotify never hears of
// (NFS, CIFS, FUSE). Throws Error(not_found).
bool is_network_mount(const std::string& path);

}  // namespace hearth::inside
