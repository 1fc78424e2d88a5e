#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "cli/checks.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::cli {
namespace {

// mount_setattr(2), which shows layers through a mapping of ids.
constexpr KernelVersion kLeast{.major = 5, .minor = 12};
constexpr KernelVersion kOverlayInUserNamespace{.major = 5, .minor = 11};
constexpr KernelVersion kOverlayOnIdmapped{.major = 5, .minor = 19};

std::string version_text(KernelVersion version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

Check check_at_least(const std::string& name, KernelVersion least, const std::string& lost) {
  const KernelVersion running = running_kernel();
  Check check{.name = name, .found = "kernel " + version_text(running), .essential = true};
  if (running >= least) return check;
  check.health = Health::missing;
  check.lost = lost;
  check.fix = fmt::format("boot Linux {} or newer", version_text(least));
  return check;
}

Check check_namespace(const char* kind) {
  Check check{.name = fmt::format("namespace {}", kind), .essential = true};
  if (::access(fmt::format("/proc/self/ns/{}", kind).c_str(), F_OK) != 0) {
    check.health = Health::missing;
    check.found = "not in this kernel";
    check.lost = "sandboxes would share it with the machine, so none is made";
    check.fix = "boot a kernel of a usual distribution";
    return check;
  }
  check.found = "present";
  return check;
}

Check check_user_namespaces() {
  Check check = check_namespace("user");
  const std::string most = read_or_empty("/proc/sys/user/max_user_namespaces");
  if (check.health != Health::ok || most.empty()) return check;
  check.found = fmt::format("present, at most {}", most.substr(0, most.find('\n')));
  if (most.starts_with("0")) {
    check.health = Health::missing;
    check.lost = "root inside would be root outside, so no sandbox is made";
    check.fix = "sysctl user.max_user_namespaces=65536";
  }
  return check;
}

Check check_overlay() {
  Check check{.name = "overlayfs", .found = "present", .essential = true};
  if (has_file_system(read_or_empty("/proc/filesystems"), "overlay")) return check;
  check.health = Health::missing;
  check.found = "not in /proc/filesystems";
  check.lost = "a sandbox has nothing to write to";
  check.fix = "modprobe overlay";
  return check;
}

Check check_seccomp() {
  Check check{.name = "seccomp filter", .essential = true};
  const std::string actions = read_or_empty("/proc/sys/kernel/seccomp/actions_avail");
  check.found = actions.substr(0, actions.find('\n'));
  if (actions.find("errno") != std::string::npos) return check;
  check.health = Health::missing;
  check.found = "not in this kernel";
  check.lost = "commands could ask the kernel for anything, so none is run";
  check.fix = "boot a kernel with CONFIG_SECCOMP_FILTER";
  return check;
}

Check check_pidfd() {
  Check check{.name = "pidfd", .found = "present", .essential = true};
  try {
    if (linux::Pidfd::find(::getpid())) return check;
  } catch (const Error& error) {
    check.found = error.what();
  }
  check.health = Health::missing;
  check.lost = "a process could be mistaken for another one";
  check.fix = "boot Linux 5.3 or newer";
  return check;
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::degraded:
      return "degraded";
    case Health::missing:
      break;
  }
  return "missing";
}

std::string read_or_empty(const std::string& path) {
  try {
    return linux::read_file(path);
  } catch (const Error&) {
    return {};
  }
}

KernelVersion parse_kernel_release(std::string_view release) {
  KernelVersion version;
  const char* const end = release.data() + release.size();
  const auto [dot, error] = std::from_chars(end - release.size(), end, version.major);
  if (error != std::errc() || dot == end || *dot != '.') return {};
  if (std::from_chars(dot + 1, end, version.minor).ec != std::errc()) return {};
  return version;
}

KernelVersion running_kernel() {
  utsname name{};
  if (::uname(&name) != 0) throw_errno("ask for the kernel's name");
  return parse_kernel_release(name.release);
}

bool has_file_system(std::string_view filesystems, std::string_view name) {
  // "nodev\toverlay\n": the name stands last on its line.
  while (!filesystems.empty()) {
    const std::size_t end = std::min(filesystems.find('\n'), filesystems.size());
    const std::string_view line = filesystems.substr(0, end);
    if (line.substr(line.find('\t') + 1) == name) return true;
    filesystems.remove_prefix(std::min(end + 1, filesystems.size()));
  }
  return false;
}

std::vector<Check> check_kernel() {
  std::vector<Check> checks = {check_at_least("kernel", kLeast, "sandboxes cannot be built")};
  checks.push_back(check_user_namespaces());
  for (const char* kind : {"mnt", "pid", "net", "ipc", "uts", "cgroup"})
    checks.push_back(check_namespace(kind));
  checks.push_back(check_overlay());
  checks.push_back(check_at_least("overlay in a user namespace", kOverlayInUserNamespace,
                                  "sandboxes cannot have files of their own"));
  checks.push_back(check_at_least("idmapped mounts below overlay", kOverlayOnIdmapped,
                                  "files of the image would belong to nobody inside"));
  checks.push_back(check_seccomp());
  checks.push_back(check_pidfd());
  return checks;
}

}  // namespace hearth::cli
