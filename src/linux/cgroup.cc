#include "linux/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_failure.h"
#include "linux/cgroup_folder_internal.h"

namespace hearth::linux {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFreezeTime = 2s;
constexpr Duration kKillTime = 1s;
// For processes that were reaped already but not yet let go of by the kernel.
constexpr Duration kSettleTime = 200ms;

constexpr const char* kLimited = "limited";
constexpr const char* kServing = "serving";
constexpr const char* kProcs = "cgroup.procs";
constexpr const char* kTasks = "tasks";  // v1 only

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

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

std::uint64_t number_in(int dir_fd, const std::string& file) {
  const std::string text = read_cgroup_file(dir_fd, file);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Cgroup::Cgroup(std::vector<Leaf> leaves) : leaves_(std::move(leaves)) {}

const Cgroup::Leaf* Cgroup::find_v2() const {
  const auto v2 = std::ranges::find_if(leaves_, [](const Leaf& leaf) { return leaf.hierarchy.v2; });
  return v2 == leaves_.end() ? nullptr : &*v2;
}

int Cgroup::v2_dir_fd() const {
  const Leaf* v2 = find_v2();
  return v2 == nullptr ? -1 : v2->limited_dir();
}

int Cgroup::serving_dir_fd() const {
  const Leaf* v2 = find_v2();
  if (v2 == nullptr) return -1;
  return v2->serving ? v2->serving.get() : v2->dir.get();
}

bool Cgroup::v2_limits() const {
  const Leaf* v2 = find_v2();
  return v2 != nullptr && v2->limited;
}

std::vector<Fd> Cgroup::open_join_files() const {
  std::vector<Fd> files;
  for (const Leaf& leaf : leaves_) {
    if (!leaf.hierarchy.v2) files.push_back(open_at(leaf.dir.get(), kTasks, O_WRONLY));
  }
  return files;
}

const Cgroup::Leaf* Cgroup::find_leaf(std::string_view controller) const {
  for (const Leaf& leaf : leaves_) {
    if (contains(leaf.hierarchy.controllers, controller)) return &leaf;
  }
  return nullptr;
}

void Cgroup::set_limits(const CgroupLimits& limits) {
  for (const Leaf& leaf : leaves_)
    apply(leaf, leaf.hierarchy.v2 ? v2_settings(limits) : v1_settings(limits));
}

void Cgroup::lift_io_limits(const std::string& device) {
  const CgroupIoLimits none{.device = device};
  for (const Leaf& leaf : leaves_)
    apply(leaf, leaf.hierarchy.v2 ? v2_io_settings(none) : v1_io_settings(none));
}

void Cgroup::apply(const Leaf& leaf, const std::vector<CgroupSetting>& settings) {
  for (const CgroupSetting& setting : settings) {
    if (!contains(leaf.hierarchy.controllers, setting.controller)) continue;
    if (setting.optional && !has_cgroup_file(leaf.limited_dir(), setting.file)) continue;
    write_file_at(leaf.limited_dir(), setting.file, setting.text);
  }
}

void Cgroup::freeze() {
  const Leaf* leaf = find_v2();
  const int v2 = leaf == nullptr ? -1 : leaf->dir.get();
  const Leaf* v1 = find_leaf("freezer");
  if (v2 < 0 && v1 == nullptr) fail(Code::unavailable, "this host has no cgroup freezer");
  if (v2 >= 0) {
    write_file_at(v2, "cgroup.freeze", "1");
  } else {
    write_file_at(v1->dir.get(), "freezer.state", "FROZEN");
  }

  Backoff backoff;
  const Deadline deadline = Deadline::after(kFreezeTime);
  while (!frozen()) {
    if (deadline.passed()) break;
    backoff.wait();
  }
  if (frozen()) return;
  thaw();
  fail(Code::timeout, "freeze a cgroup: not every process in it would stop");
}

bool Cgroup::frozen() const {
  if (const Leaf* v2 = find_v2())
    return flat_keyed_value(read_cgroup_file(v2->dir.get(), "cgroup.events"), "frozen") == 1;
  const Leaf* v1 = find_leaf("freezer");
  return v1 != nullptr && read_cgroup_file(v1->dir.get(), "freezer.state") == "FROZEN\n";
}

void Cgroup::thaw() {
  if (const Leaf* v2 = find_v2()) {
    write_file_at(v2->dir.get(), "cgroup.freeze", "0");
  } else if (const Leaf* v1 = find_leaf("freezer")) {
    write_file_at(v1->dir.get(), "freezer.state", "THAWED");
  } else {
    fail(Code::unavailable, "this host has no cgroup freezer");
  }
}

CgroupUsage Cgroup::usage() const {
  CgroupUsage usage;
  if (const Leaf* memory = find_leaf("memory")) {
    const int dir = memory->limited_dir();
    const bool v2 = memory->hierarchy.v2;
    usage.memory_bytes = number_in(dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    // memory.peak: Linux 5.19.
    usage.memory_peak_bytes = number_in(dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    usage.oom_kills = flat_keyed_value(
        read_cgroup_file(dir, v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
  }
  if (const Leaf* pids = find_leaf("pids")) {
    usage.pids = number_in(pids->limited_dir(), "pids.current");
  }
  // A v2 cgroup knows its CPU time even without the controller.
  if (const int v2 = v2_dir_fd(); v2 >= 0) {
    usage.cpu_usec = flat_keyed_value(read_cgroup_file(v2, "cpu.stat"), "usage_usec");
  } else if (const Leaf* cpu = find_leaf("cpu")) {
    usage.cpu_usec = number_in(cpu->dir.get(), "cpuacct.usage") / 1000;
  }
  return usage;
}

CgroupTree::CgroupTree(std::string name, std::vector<Corner> corners)
    : name_(std::move(name)), corners_(std::move(corners)) {}

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
  return std::ranges::any_of(corners_, [&](const Corner& corner) {
    return contains(corner.hierarchy.controllers, controller);
  });
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
  for (const Corner& corner : corners_) {
    if (corner.hierarchy.on_demand && !limits.io.any()) continue;
    if (!make_cgroup_folder(corner.dir.get(), id)) {
      fail(Code::already_exists, "cgroup '{}/{}' exists", name_, id);
    }
    made.push_back(&corner);
    leaves.push_back({.hierarchy = corner.hierarchy, .dir = open_folder(corner.dir.get(), id)});
    if (corner.hierarchy.v2 && !corner.hierarchy.controllers.empty())
      Cgroup::divide(leaves.back(), owner);
  }
  Cgroup cgroup(std::move(leaves));
  cgroup.set_limits(limits);
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
  std::vector<const Corner*> left;
  left.reserve(corners_.size());
  for (const Corner& corner : corners_) left.push_back(&corner);
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
