// Which mounts make sense at all, whatever is on this machine.
#include <limits.h>

#include <set>

#include "base/error.h"
#include "base/id.h"
#include "runtime/volumes.h"

namespace hearth::runtime {
namespace {

constexpr std::uint64_t kLeastMemory = 4096;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMostTreeBytes = std::size_t{3} << 20;
constexpr std::uint32_t kMostFileMode = 0777;
constexpr std::uint32_t kMostFolderMode = 07777;
constexpr std::uint32_t kMostGroup = 65535;  // of those that a sandbox has

void check_target(const MountSpec& mount, std::set<std::string>& seen) {
  const std::string& target = mount.target;
  const bool plain =
      target.starts_with('/') && target.size() > 1 && target.size() < PATH_MAX &&
      target.find('\0') == std::string::npos && (target + "/").find("/../") == std::string::npos &&
      (target + "/").find("/./") == std::string::npos && target.find("//") == std::string::npos;
  if (!plain)
    fail(Code::invalid, "mount target '{}' is no absolute path without '.', '..' and '//'", target);
  // Programs that share memory need more of it than everybody gets.
  const bool is_shared_memory = target == "/dev/shm" && mount.kind != MountKind::file;
  for (const char* tree : {"/proc", "/sys", "/dev"}) {
    if (is_shared_memory) break;
    if (target == tree || (target + "/").starts_with(std::string(tree) + "/"))
      fail(Code::invalid, "nothing can be mounted on '{}'", target);
  }
  if (!seen.insert(target).second) fail(Code::invalid, "two mounts on '{}'", target);
}

// "a/b": nothing that leads elsewhere, nothing empty.
bool is_path_below(const std::string& path) {
  const std::string framed = "/" + path + "/";
  return !path.empty() && path.size() < PATH_MAX && path.find('\0') == std::string::npos &&
         framed.find("/../") == std::string::npos && framed.find("/./") == std::string::npos &&
         framed.find("//") == std::string::npos;
}

void check_tree(const MountSpec& mount) {
  std::size_t bytes = 0;
  for (const MountFile& file : mount.files) {
    if (!is_path_below(file.path))
      fail(Code::invalid, "'{}' is no path of a file below '{}'", file.path, mount.target);
    if (mount.changes && file.path.starts_with(".."))
      fail(Code::invalid, "'{}' begins as what is ours below '{}' does", file.path, mount.target);
    if (file.mode > kMostFileMode)
      fail(Code::invalid, "the mode {:o} of '{}' is none", file.mode, file.path);
    bytes += file.content.size();
  }
  if (bytes > kMostTreeBytes)
    fail(Code::invalid, "the files for '{}' have {} bytes; at most {}", mount.target, bytes,
         kMostTreeBytes);
}

void check_one(const MountSpec& mount) {
  if (mount.mode > kMostFolderMode) fail(Code::invalid, "the mode {:o} is none", mount.mode);
  if (mount.group > kMostGroup) fail(Code::invalid, "there is no group {} inside", mount.group);
  switch (mount.kind) {
    case MountKind::volume:
      if (!mount.sub_path.empty() && !is_path_below(mount.sub_path))
        fail(Code::invalid, "'{}' is no path below a volume", mount.sub_path);
      return check_volume_name(mount.source);
    case MountKind::tree:
      return check_tree(mount);
    case MountKind::host:
      if (!mount.source.starts_with('/') || mount.source.find('\0') != std::string::npos)
        fail(Code::invalid, "'{}' is no absolute path of this machine", mount.source);
      return;
    case MountKind::memory:
      if (mount.bytes < kLeastMemory)
        fail(Code::invalid, "a tmpfs of {} bytes on '{}' is too small; the least is {}",
             mount.bytes, mount.target, kLeastMemory);
      return;
    case MountKind::file:
      if (mount.content.size() > kMostFileBytes)
        fail(Code::invalid, "the file for '{}' has {} bytes; at most {}", mount.target,
             mount.content.size(), kMostFileBytes);
      return;
  }
}

}  // namespace

void check_volume_name(const std::string& name) {
  if (is_label(name)) return;
  fail(Code::invalid, "'{}' is no volume's name: 1 to 63 of a-z, 0-9 and '-', no '-' at either end",
       name);
}

void check(const std::vector<MountSpec>& mounts) {
  std::set<std::string> targets;
  for (const MountSpec& mount : mounts) {
    check_target(mount, targets);
    check_one(mount);
  }
}

}  // namespace hearth::runtime
