#include <algorithm>

#include "base/error.h"
#include "cli/checks.h"
#include "linux/cgroup_layout.h"

namespace hearth::cli {
namespace {

// CLONE_INTO_CGROUP.
constexpr KernelVersion kBornIntoCgroup{.major = 5, .minor = 7};

std::vector<linux::CgroupHierarchy> usable_hierarchies() {
  const auto present = linux::find_cgroup_hierarchies(read_or_empty("/proc/self/mountinfo"));
  const auto v2 = std::ranges::find(present, true, &linux::CgroupHierarchy::v2);
  std::vector<std::string> controllers;
  if (v2 != present.end()) {
    std::string line = read_or_empty(v2->mount_point + "/cgroup.controllers");
    line.erase(std::min(line.find('\n'), line.size()));
    controllers = linux::split_words(line);
  }
  return linux::choose_cgroup_hierarchies(present, controllers);
}

std::string describe(const linux::CgroupHierarchy& hierarchy) {
  return fmt::format("{} {} ({})", hierarchy.v2 ? "v2" : "v1", hierarchy.mount_point,
                     hierarchy.controllers.empty()
                         ? "no controllers"
                         : fmt::format("{}", fmt::join(hierarchy.controllers, " ")));
}

Check check_layout(const std::vector<linux::CgroupHierarchy>& hierarchies) {
  Check check{.name = "cgroups", .essential = true};
  for (const auto& hierarchy : hierarchies) {
    check.found += (check.found.empty() ? "" : ", ") + describe(hierarchy);
  }
  if (!hierarchies.empty()) return check;
  check.health = Health::missing;
  check.found = "no hierarchy that can be written to";
  check.lost = "processes of a sandbox could neither be counted nor ended together";
  check.fix = "mount -t cgroup2 cgroup2 /sys/fs/cgroup";
  return check;
}

Check check_birth(const std::vector<linux::CgroupHierarchy>& hierarchies) {
  Check check{.name = "born into a cgroup", .found = "clone3 with a v2 folder"};
  const bool has_v2 = std::ranges::any_of(hierarchies, &linux::CgroupHierarchy::v2);
  if (has_v2 && running_kernel() >= kBornIntoCgroup) return check;
  check.health = Health::degraded;
  check.found = has_v2 ? "the kernel is older than 5.7" : "no v2 hierarchy";
  check.lost = "making a sandbox takes some milliseconds more";
  check.fix =
      has_v2 ? "boot Linux 5.7 or newer" : "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified";
  return check;
}

// One of them has two names.
std::string_view name_in(const linux::CgroupHierarchy& hierarchy, std::string_view controller) {
  return controller == "io" && !hierarchy.v2 ? "blkio" : controller;
}

}  // namespace

Check describe_limit(const std::string& controller, const std::string& where) {
  Check check{.name = fmt::format("limit of {}", controller), .found = where};
  if (!where.empty()) return check;
  check.health = Health::degraded;
  check.found = "no hierarchy has this controller";
  check.lost = fmt::format("a sandbox can be made only without a limit of {} (0)", controller);
  check.fix = fmt::format("boot with cgroup_enable={0}, or hand {0} down in cgroup.subtree_control",
                          controller);
  return check;
}

std::vector<Check> check_cgroups() {
  const auto hierarchies = usable_hierarchies();
  std::vector<Check> checks = {check_layout(hierarchies)};
  for (const char* controller : {"memory", "cpu", "pids", "io"}) {
    const auto found =
        std::ranges::find_if(hierarchies, [&](const linux::CgroupHierarchy& hierarchy) {
          return std::ranges::find(hierarchy.controllers, name_in(hierarchy, controller)) !=
                 hierarchy.controllers.end();
        });
    const bool has = found != hierarchies.end();
    checks.push_back(describe_limit(controller, !has        ? ""
                                                : found->v2 ? "enforced by v2"
                                                            : "enforced by v1"));
  }
  checks.push_back(check_birth(hierarchies));
  return checks;
}

}  // namespace hearth::cli
