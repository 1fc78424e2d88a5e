// Capabilities, see capabilities(7): a set of them, and giving up all others for good.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::linux {

// A set of CAP_... numbers.
class CapabilitySet {
 public:
  constexpr CapabilitySet() = default;
  constexpr CapabilitySet(std::initializer_list<int> capabilities) {
    for (const int capability : capabilities) add(capability);
  }
  static constexpr CapabilitySet from_bits(std::uint64_t bits) {
    CapabilitySet set;
    set.bits_ = bits;
    return set;
  }
  // "CAP_CHOWN", "chown": as people write them. Throws Error(invalid) naming the unknown one.
  static CapabilitySet parse(const std::vector<std::string>& names);

  constexpr void add(int capability) { bits_ |= std::uint64_t{1} << capability; }
  constexpr void remove(int capability) { bits_ &= ~(std::uint64_t{1} << capability); }
  constexpr bool has(int capability) const { return (bits_ >> capability & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint64_t bits() const { return bits_; }
  // "CAP_CHOWN" and so on, by number; "CAP_63" for one without a name yet.
  std::vector<std::string> names() const;

  bool operator==(const CapabilitySet&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

// What root in a container is used to having: Docker's documented default without MKNOD and
// AUDIT_WRITE. MKNOD makes device nodes, which is the host's disk wherever no user namespace and no
// device controller stands in between; AUDIT_WRITE writes into the host's audit log, which knows no
// namespaces.
CapabilitySet default_capabilities();

// Gives up every capability outside `keep` for the calling thread and all it will ever execute:
// out of the bounding set, permitted and effective become `keep` as far as they were permitted,
// inheritable and ambient become empty (a filled inheritable set hands capabilities to unprivileged
// users by way of file capabilities, CVE-2022-24769; root does not need it). Needs SETPCAP. Returns
// 0 or an errno; allocates nothing, takes no lock: for between clone and exec.
int limit_capabilities(CapabilitySet keep) noexcept;

// Its two halves. The bounding set says what can be had by executing a program, which matters to
// threads and children only if it was limited before they were made: once is enough.
int limit_bounding_set(CapabilitySet keep) noexcept;
int give_up_capabilities(CapabilitySet keep) noexcept;

// In the effective set of the calling thread.
bool has_capability(int capability) noexcept;

}  // namespace hearth::linux
