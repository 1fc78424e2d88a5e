// Folders of the cgroup file system: made, read, emptied by force, removed. Private to
// cgroup.cc, cgroup_leaf.cc and cgroup_spares.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::linux {

// Waits a little longer each time it is asked: first only lets others run, at most 2 ms. The
// kernel's own notification would come up to 10 ms late (kernel/cgroup/cgroup.c,
// CGROUP_FILE_NOTIFY_MIN_INTV), so files are read again instead.
class Backoff {
 public:
  void wait();

 private:
  int round_ = 0;
};

// What a file of a folder holds; nothing at all where there is no such file (any more).
std::string read_cgroup_file(int dir_fd, const std::string& file);
// The number that it begins with; nothing where there is no such file, or no number in it.
std::optional<std::uint64_t> number_in(int dir_fd, const std::string& file);

bool has_cgroup_file(int dir_fd, const std::string& file);

// The names of the folders in a folder, without those that begin with '.', unsorted.
std::vector<std::string> list_cgroup_folders(int dir_fd);
// Those.
std::vector<std::string> list_hidden_cgroup_folders(int dir_fd);

// True when it was made, false when it was there.
bool make_cgroup_folder(int dir_fd, const std::string& name);

// Removes the folder if it is there: at once when it is empty, else when what is in it has ended
// by itself. False when it has not by the deadline.
bool remove_cgroup_folder(int dir_fd, const std::string& name, Deadline deadline);

// Removes a folder with all below it if that is possible now; otherwise kills everything in it and
// returns false, for the caller to try again.
bool kill_and_remove_cgroup_folder(int dir_fd, const std::string& name);

}  // namespace hearth::linux
