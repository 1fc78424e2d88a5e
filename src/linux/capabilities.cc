#include "linux/capabilities.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace hearth::linux {
namespace {

// By number, see linux/capability.h.
constexpr std::array<std::string_view, 41> kNames = {"CHOWN",
                                                     "DAC_OVERRIDE",
                                                     "DAC_READ_SEARCH",
                                                     "FOWNER",
                                                     "FSETID",
                                                     "KILL",
                                                     "SETGID",
                                                     "SETUID",
                                                     "SETPCAP",
                                                     "LINUX_IMMUTABLE",
                                                     "NET_BIND_SERVICE",
                                                     "NET_BROADCAST",
                                                     "NET_ADMIN",
                                                     "NET_RAW",
                                                     "IPC_LOCK",
                                                     "IPC_OWNER",
                                                     "SYS_MODULE",
                                                     "SYS_RAWIO",
                                                     "SYS_CHROOT",
                                                     "SYS_PTRACE",
                                                     "SYS_PACCT",
                                                     "SYS_ADMIN",
                                                     "SYS_BOOT",
                                                     "SYS_NICE",
                                                     "SYS_RESOURCE",
                                                     "SYS_TIME",
                                                     "SYS_TTY_CONFIG",
                                                     "MKNOD",
                                                     "LEASE",
                                                     "AUDIT_WRITE",
                                                     "AUDIT_CONTROL",
                                                     "SETFCAP",
                                                     "MAC_OVERRIDE",
                                                     "MAC_ADMIN",
                                                     "SYSLOG",
                                                     "WAKE_ALARM",
                                                     "BLOCK_SUSPEND",
                                                     "AUDIT_READ",
                                                     "PERFMON",
                                                     "BPF",
                                                     "CHECKPOINT_RESTORE"};
static_assert(kNames[CAP_SYS_ADMIN] == "SYS_ADMIN");
static_assert(kNames[CAP_CHECKPOINT_RESTORE] == "CHECKPOINT_RESTORE");

constexpr int kMost = 64;  // bits in the kernel's sets

char upper_case(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

struct Sets {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[2] = {};  // the low and the high 32 bits
};

}  // namespace

CapabilitySet CapabilitySet::parse(const std::vector<std::string>& names) {
  CapabilitySet set;
  for (const std::string& name : names) {
    std::string plain = name;
    std::ranges::transform(plain, plain.begin(), upper_case);
    if (plain.starts_with("CAP_")) plain.erase(0, 4);
    const auto found = std::ranges::find(kNames, plain);
    if (found == kNames.end()) fail(Code::invalid, "'{}' is no capability", name);
    set.add(static_cast<int>(found - kNames.begin()));
  }
  return set;
}

std::vector<std::string> CapabilitySet::names() const {
  std::vector<std::string> names;
  for (int capability = 0; capability < kMost; ++capability) {
    if (!has(capability)) continue;
    const auto index = static_cast<std::size_t>(capability);
    names.push_back(index < kNames.size() ? fmt::format("CAP_{}", kNames[index])
                                          : fmt::format("CAP_{}", capability));
  }
  return names;
}

CapabilitySet default_capabilities() {
  return {CAP_CHOWN,   CAP_DAC_OVERRIDE,     CAP_FOWNER,  CAP_FSETID,
          CAP_KILL,    CAP_SETGID,           CAP_SETUID,  CAP_SETPCAP,
          CAP_SETFCAP, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_CHROOT};
}

int limit_bounding_set(CapabilitySet keep) noexcept {
  for (int capability = 0; capability < kMost; ++capability) {
    if (keep.has(capability)) continue;
    if (::syscall(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    // The kernel knows fewer than 64: EINVAL marks their end.
    if (errno == EINVAL) return 0;
    // Without SETPCAP: fine, if there was nothing to drop.
    const int error = errno;
    if (::syscall(SYS_prctl, PR_CAPBSET_READ, capability, 0, 0, 0) != 0) return error;
  }
  return 0;
}

int limit_capabilities(CapabilitySet keep) noexcept {
  const int error = limit_bounding_set(keep);
  return error != 0 ? error : give_up_capabilities(keep);
}

int give_up_capabilities(CapabilitySet keep) noexcept {
  // EINVAL: a kernel before 4.3, which has none.
  if (::syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
      errno != EINVAL) {
    return errno;
  }

  Sets sets;
  if (::syscall(SYS_capget, &sets.header, sets.halves) != 0) return errno;
  for (int half = 0; half < 2; ++half) {
    auto& bits = sets.halves[half];
    bits.permitted &= static_cast<std::uint32_t>(keep.bits() >> (32 * half));
    bits.effective = bits.permitted;
    bits.inheritable = 0;
  }
  return ::syscall(SYS_capset, &sets.header, sets.halves) == 0 ? 0 : errno;
}

bool has_capability(int capability) noexcept {
  Sets sets;
  if (::syscall(SYS_capget, &sets.header, sets.halves) != 0) return false;
  return (sets.halves[capability / 32].effective >> (capability % 32) & 1) != 0;
}

}  // namespace hearth::linux
