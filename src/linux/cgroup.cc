#include "linux/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_failure.h"
#include "linux/cgroup_folder_internal.h"
#include "linux/cgroup_spares_internal.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

constexpr Duration kKillTime = 1s;
// For processes that were reaped already but not yet let go of by the kernel.
constexpr Duration kSettleTime = 200ms;

constexpr const char* kLimited = "limited";
constexpr const char* kServing = "serving";
constexpr const char* kProcs = "cgroup.procs";

// A folder of ours: one path component that is neither hidden nor special.
void check_id(const std::string& id) {
  const bool fine = !id.empty() && id.front() != '.' && id.size() <= 255 &&
                    id.find_first_of(std::string_view("/\n\0", 3)) == std::string::npos;
  if (!fine) fail(Code::invalid, "'{}' cannot be the name of a cgroup", id);
}

std::vector<std::string> name_parts(const std::string& name) {
  std::vector<std::string> parts = split_words(name, '/');
  for (const std::string& part : parts) check_id(part);
  if (parts.empty() || name.front() == '/') {
    fail(Code::invalid, "'{}' cannot be the name of a cgroup", name);
  }
  return parts;
}

Fd open_folder(int dir_fd, const std::string& path) {
  return open_at(dir_fd, path, O_RDONLY | O_DIRECTORY);
}

// Hands controllers down to the children of a folder, as many as the host lets us: one that is not
// there (ENOENT), or held back because processes live in the folder itself (EBUSY), is not ours to
// have. What counts is what the file says afterwards.
void enable_controllers(int dir_fd) {
  const Fd file = open_at(dir_fd, "cgroup.subtree_control", O_WRONLY);
  // One write each: the kernel takes all of a line or nothing.
  for (const std::string_view word : {"+cpu", "+io", "+memory", "+pids"}) {
    [[maybe_unused]] const ssize_t written = ::write(file.get(), word.data(), word.size());
  }
}

// The folder `parts` below the mount point, made where it is missing.
Fd make_path(const CgroupHierarchy& hierarchy, const std::vector<std::string>& parts) {
  Fd folder = open_folder(AT_FDCWD, hierarchy.mount_point);
  if (hierarchy.v2) enable_controllers(folder.get());
  for (const std::string& part : parts) {
    make_cgroup_folder(folder.get(), part);
    folder = open_folder(folder.get(), part);
    if (hierarchy.v2) enable_controllers(folder.get());
  }
  return folder;
}

// Someone else's remove_tree() may take a shared part away between our making and our entering it.
Fd make_path_despite_others(const CgroupHierarchy& hierarchy,
                            const std::vector<std::string>& parts) {
  constexpr int kTries = 10;
  for (int tries = 1;; ++tries) {
    try {
      return make_path(hierarchy, parts);
    } catch (const Error& error) {
      if (error.code() != Code::not_found || tries == kTries) throw;
    }
  }
}

}  // namespace

CgroupTree::CgroupTree(std::string name, std::vector<Corner> corners)
    : name_(std::move(name)), corners_(std::move(corners)) {
  // Beside a v2 that is only for births and kills; and those two controllers tell what is clean.
  const bool is_hybrid = !v2_limits() && std::ranges::any_of(corners_, [](const Corner& corner) {
    return corner.hierarchy.v2;
  });
  if (!is_hybrid || !limits_memory() || !limits_pids()) return;
  std::vector<int> folders;
  for (const Corner& corner : corners_)
    if (corner.can_be_kept()) folders.push_back(corner.dir.get());
  spares_ = std::make_unique<CgroupSpares>(std::move(folders));
  spares_->remove_all();
}

CgroupTree::CgroupTree(CgroupTree&&) noexcept = default;
CgroupTree::~CgroupTree() = default;

CgroupTree CgroupTree::open(const std::string& name) {
  const std::vector<std::string> parts = name_parts(name);
  const std::vector<CgroupHierarchy> present =
      find_cgroup_hierarchies(read_file("/proc/thread-self/mountinfo", 16 << 20));

  std::vector<std::string> v2_controllers;
  for (const CgroupHierarchy& hierarchy : present) {
    if (!hierarchy.v2) continue;
    const Fd folder = make_path_despite_others(hierarchy, parts);
    v2_controllers = split_words(read_file_at(folder.get(), "cgroup.subtree_control"));
  }

  std::vector<Corner> corners;
  for (CgroupHierarchy& hierarchy : choose_cgroup_hierarchies(present, v2_controllers)) {
    Fd dir = make_path_despite_others(hierarchy, parts);
    corners.push_back({.hierarchy = std::move(hierarchy), .dir = std::move(dir)});
  }
  if (corners.empty()) fail(Code::unavailable, "no cgroup hierarchy is mounted for writing");
  return {name, std::move(corners)};
}

bool CgroupTree::has_controller(std::string_view controller) const {
  return std::ranges::any_of(
      corners_, [&](const Corner& corner) { return corner.hierarchy.has(controller); });
}

bool CgroupTree::v2_limits() const {
  return std::ranges::any_of(corners_, [](const Corner& corner) {
    return corner.hierarchy.v2 && !corner.hierarchy.controllers.empty();
  });
}

std::string CgroupTree::describe() const {
  std::vector<std::string> v1;
  std::string v2;
  for (const auto& [hierarchy, dir] : corners_) {
    if (hierarchy.v2) {
      v2 = hierarchy.controllers.empty()
               ? "v2 (no controllers)"
               : fmt::format("v2 {}", fmt::join(hierarchy.controllers, ","));
    } else {
      v1.insert(v1.end(), hierarchy.controllers.begin(), hierarchy.controllers.end());
    }
  }
  if (v1.empty()) return v2;
  std::ranges::sort(v1);
  return fmt::format("v1 {}{}{}", fmt::join(v1, ","), v2.empty() ? "" : " + ", v2);
}

void CgroupTree::require_controllers(const CgroupLimits& limits) const {
  const auto require = [this](bool wanted, std::string_view controller) {
    if (!wanted || has_controller(controller)) return;
    fail(Code::unavailable, "this host cannot limit it: no cgroup controller '{}' ({})", controller,
         describe());
  };
  require(limits.memory_bytes != 0, "memory");
  require(limits.cpu_millis != 0, "cpu");
  require(limits.pids != 0, "pids");
  if (!has_controller("blkio")) require(limits.io.any(), "io");
}

// A leaf of v2 that limits: the two folders in it.
void Cgroup::divide(Leaf& leaf, uid_t owner) {
  for (const char* part : {kLimited, kServing}) make_cgroup_folder(leaf.dir.get(), part);
  enable_controllers(leaf.dir.get());
  leaf.limited = open_folder(leaf.dir.get(), kLimited);
  leaf.serving = open_folder(leaf.dir.get(), kServing);
  if (owner == 0) return;
  // Who is born elsewhere than his parent needs the right to write here and at what is above both.
  for (const int folder : {leaf.dir.get(), leaf.limited.get()}) {
    if (::fchownat(folder, kProcs, owner, static_cast<gid_t>(-1), 0) != 0)
      throw_errno("give a cgroup to user {}", owner);
  }
}

Cgroup CgroupTree::create(const std::string& id, const CgroupLimits& limits, uid_t owner) {
  check_id(id);
  require_controllers(limits);

  std::vector<const Corner*> made;
  OnFailure undo([&] {
    for (const Corner* corner : made) kill_and_remove_cgroup_folder(corner->dir.get(), id);
  });
  std::vector<Cgroup::Leaf> leaves;
  // Whoever leaves a limit as it is wants a leaf that has none.
  const bool sets_all = limits.memory_bytes != 0 && limits.cpu_millis != 0 && limits.pids != 0;
  const bool is_spare = spares_ && sets_all && spares_->take(id);
  for (const Corner& corner : corners_)
    if (is_spare && corner.can_be_kept()) made.push_back(&corner);
  for (const Corner& corner : corners_) {
    if (corner.hierarchy.on_demand && !limits.io.any()) continue;
    const bool is_there = is_spare && corner.can_be_kept();
    if (!is_there && !make_cgroup_folder(corner.dir.get(), id)) {
      fail(Code::already_exists, "cgroup '{}/{}' exists", name_, id);
    }
    if (!is_there) made.push_back(&corner);
    leaves.push_back({.hierarchy = corner.hierarchy, .dir = open_folder(corner.dir.get(), id)});
    if (corner.hierarchy.v2 && !corner.hierarchy.controllers.empty())
      Cgroup::divide(leaves.back(), owner);
  }
  Cgroup cgroup(std::move(leaves));
  is_spare ? cgroup.replace_limits(limits) : cgroup.set_limits(limits);
  undo.release();
  return cgroup;
}

std::optional<Cgroup> CgroupTree::find(const std::string& id) const {
  check_id(id);
  std::vector<Cgroup::Leaf> leaves;
  for (const Corner& corner : corners_) {
    const bool there = has_cgroup_file(corner.dir.get(), id);
    if (!there && corner.hierarchy.on_demand) continue;
    if (!there) return std::nullopt;
    leaves.push_back({.hierarchy = corner.hierarchy, .dir = open_folder(corner.dir.get(), id)});
    if (!corner.hierarchy.v2 || corner.hierarchy.controllers.empty()) continue;
    Cgroup::Leaf& leaf = leaves.back();
    if (!has_cgroup_file(leaf.dir.get(), kServing)) return std::nullopt;
    leaf.limited = open_folder(leaf.dir.get(), kLimited);
    leaf.serving = open_folder(leaf.dir.get(), kServing);
  }
  return Cgroup(std::move(leaves));
}

std::vector<std::string> CgroupTree::list() const {
  std::vector<std::string> ids;
  for (const Corner& corner : corners_) {
    for (std::string& id : list_cgroup_folders(corner.dir.get())) ids.push_back(std::move(id));
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

void CgroupTree::remove(const std::string& id) {
  check_id(id);
  std::vector<const Corner*> first;
  std::vector<const Corner*> rest;
  for (const Corner& corner : corners_) (corner.hierarchy.v2 ? first : rest).push_back(&corner);
  // What is in v2 no more is nowhere any more.
  remove_from(std::move(first), id);
  if (spares_ && spares_->keep(id))
    std::erase_if(rest, [](const Corner* corner) { return corner->can_be_kept(); });
  remove_from(std::move(rest), id);
}

void CgroupTree::remove_from(std::vector<const Corner*> left, const std::string& id) {
  Backoff backoff;
  const Deadline deadline = Deadline::after(kKillTime);
  while (true) {
    std::erase_if(left, [&](const Corner* corner) {
      return kill_and_remove_cgroup_folder(corner->dir.get(), id);
    });
    if (left.empty()) return;
    if (deadline.passed()) {
      fail(Code::timeout, "remove cgroup '{}/{}': what runs in it does not end", name_, id);
    }
    backoff.wait();
  }
}

void CgroupTree::remove_tree() {
  if (const auto ids = list(); !ids.empty()) {
    fail(Code::conflict, "cgroup '{}' still holds '{}'", name_, ids.front());
  }
  if (spares_) spares_->remove_all();
  const std::vector<std::string> parts = name_parts(name_);
  const Deadline deadline = Deadline::after(kSettleTime);
  for (const auto& [hierarchy, dir] : corners_) {
    // Upwards from the folder itself: the mount may no longer be in our namespace.
    Fd above = open_folder(dir.get(), "..");
    if (!remove_cgroup_folder(above.get(), parts.back(), deadline)) {
      fail(Code::conflict, "cgroup '{}' is still in use", name_);
    }
    // The parts above may be shared with others: theirs as long as they are not empty.
    for (std::size_t i = parts.size() - 1; i > 0; --i) {
      above = open_folder(above.get(), "..");
      if (::unlinkat(above.get(), parts[i - 1].c_str(), AT_REMOVEDIR) != 0) break;
    }
  }
}

}  // namespace hearth::linux
