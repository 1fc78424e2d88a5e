#include <linux/capability.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "cli/checks.h"
#include "cli/values.h"
#include "linux/capabilities.h"
#include "linux/cgroup_layout.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// The engine's own files are small, but a full disk ends every engine.
constexpr std::uint64_t kComfortableBytes = std::uint64_t{1} << 30;

// Where the shell would find it, and in the folders of administrators; empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = std::string(path == nullptr ? "" : path) + ":/usr/sbin:/sbin";
  for (const std::string& folder : linux::split_words(folders, ':')) {
    const std::string file = folder + '/' + name;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Check check_root() {
  Check check{.name = "root", .essential = true};
  if (::geteuid() == 0) {
    check.found = "running as root";
    return check;
  }
  const std::string sudo = find_program("sudo");
  if (!sudo.empty()) {
    check.found = fmt::format("not root, but {} is there", sudo);
    return check;
  }
  check.health = Health::missing;
  check.found = fmt::format("user {}, and no sudo", ::geteuid());
  check.lost = "nobody can start hearth-runtime, which makes the sandboxes";
  check.fix = "run 'hearth up' as root, or install sudo";
  return check;
}

Check check_sys_resource() {
  Check check{.name = "CAP_SYS_RESOURCE", .found = "present"};
  if (linux::has_capability(CAP_SYS_RESOURCE)) return check;
  if (::geteuid() != 0) {
    check.found = "hearth-runtime will have it as root";
    return check;
  }
  check.health = Health::degraded;
  check.found = "root without it: are we in a container?";
  check.lost = "limits of open files cannot be raised, which bounds the number of sandboxes";
  check.fix = "start the container with this capability";
  return check;
}

Check check_merged_usr() {
  Check check{.name = "merged /usr",
              .found = "/bin, /sbin and /lib are links into /usr",
              .essential = true};
  std::error_code error;
  for (const char* folder : {"/bin", "/sbin", "/lib"}) {
    if (fs::is_symlink(folder, error)) continue;
    check.health = Health::missing;
    check.found = fmt::format("{} is no link into /usr", folder);
    check.lost = "image 'host', this machine's own /usr, cannot be made";
    check.fix = "apt-get install usrmerge";
  }
  return check;
}

Check check_python() {
  Check check{.name = "python3", .found = "/usr/bin/python3"};
  if (::access("/usr/bin/python3", X_OK) == 0) return check;
  check.health = Health::degraded;
  check.found = "not in /usr/bin";
  check.lost = "no Python in sandboxes of image 'host', and no demonstration";
  check.fix = "apt-get install python3";
  return check;
}

Check check_disk(const std::string& state_dir) {
  fs::path existing = state_dir;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path())
    existing = existing.parent_path();
  Check check{.name = "disk"};
  struct statvfs space{};
  if (::statvfs(existing.c_str(), &space) != 0) {
    check.health = Health::degraded;
    check.found = fmt::format("'{}': {}", existing.string(), errno_text(errno));
    check.lost = "the engine may have nowhere to keep its state";
    check.fix = "name another folder with --state-dir";
    return check;
  }
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  check.found = fmt::format("{} free for {}", format_size(free_bytes), state_dir);
  if (free_bytes >= kComfortableBytes) return check;
  check.health = Health::degraded;
  check.lost = "the engine cannot keep its state when the disk is full";
  check.fix = "make room, or name another folder with --state-dir";
  return check;
}

// What disks of sandboxes and volumes with a size are made with.
Check check_disks() {
  Check check{.name = "disks", .found = "loop devices and mkfs.ext4"};
  const bool loop_devices = ::access("/dev/loop-control", F_OK) == 0;
  if (loop_devices && !find_program("mkfs.ext4").empty()) return check;
  check.health = Health::degraded;
  check.found = loop_devices ? "no mkfs.ext4" : "no loop devices";
  check.lost = "no writable layers on the disk (--disk-on disk), no volumes with a size";
  check.fix = loop_devices ? "apt-get install e2fsprogs" : "modprobe loop";
  return check;
}

Check check_program(const char* name, bool essential, const char* lost) {
  Check check{.name = fmt::format("program {}", name), .essential = essential};
  const auto folder = fs::read_symlink("/proc/self/exe").parent_path();
  check.found = folder / name;
  if (::access(check.found.c_str(), X_OK) == 0) return check;
  check.health = Health::missing;
  check.found = fmt::format("not in {}", folder.string());
  check.lost = lost;
  check.fix = "install it beside hearth";
  return check;
}

Check check_engine(const std::string& state_dir) {
  Check check{.name = "engine"};
  try {
    const runtime::Hello hello = runtime::RuntimeClient(state_dir).hello();
    check.found = fmt::format("version {} runs on {}", hello.version, state_dir);
    if (hello.version == HEARTH_VERSION) return check;
    check.health = Health::degraded;
    check.lost = "this program and the engine may not understand each other";
    check.fix = "end it with SIGTERM and start 'hearth up' again; sandboxes live on";
  } catch (const Error& error) {
    check.health = Health::missing;
    check.found = error.what();
    check.lost = "nothing, unless you expected one to run";
    check.fix = "hearth up";
  }
  return check;
}

Check check_tool(const char* name) {
  Check check{.name = fmt::format("tool {}", name), .found = find_program(name)};
  if (!check.found.empty()) return check;
  check.health = Health::missing;
  check.found = "not installed";
  check.lost = "benchmarks are not compared with it";
  check.fix =
      fmt::format("apt-get install {}", std::string_view(name) == "bwrap" ? "bubblewrap" : name);
  return check;
}

}  // namespace

std::vector<Check> check_machine(const std::string& state_dir) {
  std::vector<Check> checks = {check_root(),           check_sys_resource(),  check_merged_usr(),
                               check_python(),         check_disk(state_dir), check_disks(),
                               check_engine(state_dir)};
  checks.push_back(check_program("hearth-runtime", true, "nobody makes sandboxes"));
  checks.push_back(check_program("hearth-guest", true, "nothing runs inside sandboxes"));
  checks.push_back(check_program("hearth-unpack", false, "no image but 'host': none is unpacked"));
  for (const char* tool : {"crun", "runc", "bwrap"}) checks.push_back(check_tool(tool));
  return checks;
}

}  // namespace hearth::cli
