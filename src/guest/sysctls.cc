#include "guest/sysctls.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::guest {
namespace {

constexpr const char* kTree = "/proc/sys";
// What belongs to a namespace that a sandbox has of its own. (So does "user.", which is a wall.)
constexpr std::string_view kOwn[] = {"net.", "kernel.shm", "kernel.msg", "kernel.sem",
                                     "fs.mqueue."};

void remount(unsigned long read_only) {
  constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount(nullptr, kTree, nullptr, MS_REMOUNT | MS_BIND | kInert | read_only, nullptr) != 0)
    throw_errno("remount '{}'", kTree);
}

void set(const std::string& sysctl) {
  const std::size_t equals = sysctl.find('=');
  if (equals == std::string::npos) fail(Code::invalid, "sysctl '{}' is not NAME=value", sysctl);
  std::string path = sysctl.substr(0, equals);
  const bool is_own =
      std::ranges::any_of(kOwn, [&](std::string_view prefix) { return path.starts_with(prefix); });
  if (!is_own || path.find('/') != std::string::npos)
    fail(Code::invalid, "'{}' is no sysctl of a sandbox", path);
  std::ranges::replace(path, '.', '/');
  const std::string value = sysctl.substr(equals + 1);
  const linux::Fd file(
      ::open(fmt::format("{}/{}", kTree, path).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0)
    fail(Code::invalid, "sysctl '{}': {}", sysctl, errno_text(errno));
}

}  // namespace

void set_sysctls(const std::vector<std::string>& sysctls) {
  if (sysctls.empty()) return;
  remount(0);
  // One that fails ends the shell, and with it the tree.
  for (const std::string& sysctl : sysctls) set(sysctl);
  remount(MS_RDONLY);
}

}  // namespace hearth::guest
