#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "linux/cgroup_folder_internal.h"
#include "linux/cgroup_layout.h"
#include "linux/cgroup_spares_internal.h"
#include "linux/fd.h"

namespace hearth::linux {
namespace {

// Hidden, so that no unit is called like that and no list shows them.
constexpr std::string_view kPrefix = ".spare-";
// Some 30 KiB of the kernel's memory each.
constexpr std::size_t kMostSpares = 256;
// That an earlier life may have left: pages of files that it was the first to read, and what the
// kernel sets aside for each processor. The next one has that much less.
constexpr std::uint64_t kMostLeftBytes = std::uint64_t{1} << 20;
// Folders of cgroups without folders in them.
constexpr nlink_t kNoFolders = 2;

bool has_nothing_in_it(int dir_fd) {
  struct stat status{};
  return ::fstat(dir_fd, &status) == 0 && status.st_nlink == kNoFolders &&
         number_in(dir_fd, "pids.current").value_or(0) == 0 &&
         read_cgroup_file(dir_fd, "tasks").empty();
}

// The peak begins anew; that is a write, and the last thing that is asked.
bool has_clean_memory(int dir_fd) {
  const auto used = number_in(dir_fd, "memory.usage_in_bytes");
  if (!used) return true;  // another controller's
  if (*used > kMostLeftBytes) return false;
  if (flat_keyed_value(read_cgroup_file(dir_fd, "memory.oom_control"), "oom_kill") != 0)
    return false;
  const Fd peak(::openat(dir_fd, "memory.max_usage_in_bytes", O_WRONLY | O_CLOEXEC));
  return peak && ::write(peak.get(), "0", 1) == 1;
}

bool is_clean(int folder_fd, const std::string& id) {
  const Fd leaf(::openat(folder_fd, id.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return leaf && has_nothing_in_it(leaf.get()) && has_clean_memory(leaf.get());
}

}  // namespace

bool CgroupSpares::keep(const std::string& id) {
  for (const int folder : folders_)
    if (!is_clean(folder, id)) return false;
  const std::string name = names_.with([](Names& names) {
    return names.free.size() < kMostSpares ? fmt::format("{}{}", kPrefix, names.next++)
                                           : std::string();
  });
  if (name.empty() || !rename_all(id, name)) return false;
  names_.with([&](Names& names) { names.free.push_back(name); });
  return true;
}

bool CgroupSpares::take(const std::string& id) {
  const std::string name = names_.with([](Names& names) {
    if (names.free.empty()) return std::string();
    std::string last = std::move(names.free.back());
    names.free.pop_back();
    return last;
  });
  return !name.empty() && rename_all(name, id);
}

// All or nothing: where one part cannot have its name, the others go.
bool CgroupSpares::rename_all(const std::string& from, const std::string& to) const {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    if (::renameat(folders_[i], from.c_str(), folders_[i], to.c_str()) == 0) continue;
    for (std::size_t done = 0; done < i; ++done) kill_and_remove_cgroup_folder(folders_[done], to);
    for (std::size_t left = i; left < folders_.size(); ++left)
      kill_and_remove_cgroup_folder(folders_[left], from);
    return false;
  }
  return true;
}

void CgroupSpares::remove_all() {
  names_.with([](Names& names) { names.free.clear(); });
  for (const int folder : folders_)
    for (const std::string& name : list_hidden_cgroup_folders(folder))
      if (name.starts_with(kPrefix)) kill_and_remove_cgroup_folder(folder, name);
}

}  // namespace hearth::linux
