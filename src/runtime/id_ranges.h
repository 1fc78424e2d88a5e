// Ranges of user and group ids, one for each sandbox: what is root in one is nobody in all others
// and on the host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "linux/fd.h"
#include "linux/namespaces.h"

namespace hearth::runtime {

// 64 Ki ids each, as images expect, far above what accounts and other engines use.
inline constexpr std::uint32_t kIdsPerSandbox = 65536;
inline constexpr std::uint32_t kFirstId = 0x1000'0000;
inline constexpr std::uint32_t kIdSlots = 0x6000;

linux::IdRange ids_of_slot(std::uint32_t slot);

// Thread-safe. Ranges that are in use by another engine on this machine are not known here: each
// engine begins at a place of its own (`seed`), so that they meet only when the machine is full.
class IdRanges {
 public:
  explicit IdRanges(std::uint32_t seed) : seed_(seed % kIdSlots) {}

  // Throws Error(exhausted).
  std::uint32_t acquire();
  // For a sandbox that was found alive.
  void mark_used(std::uint32_t slot);
  void release(std::uint32_t slot);

  // A user namespace with the slot's mapping, to show layers' owners through. Kept and shared: it
  // is a table of numbers, nobody ever enters it.
  int mapping_fd(std::uint32_t slot);

 private:
  struct Slots {
    std::set<std::uint32_t> used;
    std::vector<std::uint32_t> released;  // the most recent one is the warmest
    std::uint32_t next = 0;
    std::map<std::uint32_t, linux::Fd> mappings;
  };

  std::uint32_t seed_;
  Guarded<Slots> slots_;
};

}  // namespace hearth::runtime
