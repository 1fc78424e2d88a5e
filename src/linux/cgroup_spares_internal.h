// Leaves of v1 hierarchies that were used, and are as good as new: the next unit gets them by
// another name.
//
// Taking a memory cgroup apart has the kernel look through the lists of every file system that is
// mounted anywhere, which is milliseconds where there are a thousand sandboxes (Linux 6.18,
// mm/list_lru.c). What is not clean goes as ever: one that something still runs in, that has
// folders in it, that more memory is charged to than is worth a mention, that has killed for want
// of memory. v2 has no renaming, and what is born into a cgroup that was killed dies at birth: none
// is kept.
//
// Nobody has them open: the guest joins and closes its descriptors before it hears of an
// assignment. The kernel counts in them from zero, or nobody reads what it counts (linux/cgroup.cc,
// usage). Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"

namespace hearth::linux {

class CgroupSpares {
 public:
  // Folders that units are made in, one in each hierarchy; borrowed.
  explicit CgroupSpares(std::vector<int> folders) : folders_(std::move(folders)) {}

  // True: it is clean, and gone by this name. False: it is as it was, or a part of it is gone.
  bool keep(const std::string& id);
  // True: there was one, and it has this name now. Its limits are those of its last life.
  bool take(const std::string& id);
  // Also what an earlier life has left. Throws Error.
  void remove_all();

 private:
  bool rename_all(const std::string& from, const std::string& to) const;

  const std::vector<int> folders_;
  struct Names {
    std::vector<std::string> free;
    std::uint64_t next = 0;
  };
  Guarded<Names> names_;
};

}  // namespace hearth::linux
