// What `hearth doctor` looks at. Looking changes nothing: no folder, no cgroup, no namespace is
// made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

enum class Health {
  ok,
  degraded,  // works, with less than there could be
  missing,
};
std::string_view to_string(Health health);

struct Check {
  std::string name;
  Health health = Health::ok;
  std::string found;
  std::string lost;        // without it; empty where nothing is
  std::string fix;         // what to do about it
  bool essential = false;  // no sandbox without it
};

// The kernel: version, namespaces, file systems, seccomp, pidfds.
std::vector<Check> check_kernel();
// Cgroups: the layout, each limit, being born into one.
std::vector<Check> check_cgroups();
// What sandboxes' networks need.
std::vector<Check> check_network();
// The rest of the machine: root, /usr, disk, our programs, engine, tools to compare with.
std::vector<Check> check_machine(const std::string& state_dir);

// Numbers of a release such as "6.1.0-18-amd64"; zeros for text that is none.
struct KernelVersion {
  int major = 0;
  int minor = 0;

  auto operator<=>(const KernelVersion&) const = default;
};
KernelVersion parse_kernel_release(std::string_view release);
KernelVersion running_kernel();

// Whether the text of /proc/filesystems names the file system.
bool has_file_system(std::string_view filesystems, std::string_view name);

// For one limit: enforced by `where`, or by nothing when that is empty.
Check describe_limit(const std::string& controller, const std::string& where);

// An empty text for a file that is not there or not ours to read.
std::string read_or_empty(const std::string& path);

}  // namespace hearth::cli
