// Namespaces as descriptors: made without moving the caller, opened, entered. Everything throws
// Error and may be called from any thread of a process with many.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::linux {

// User and group ids first .. first + count - 1 of the parent namespace.
struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const IdRange&) const = default;
};

// Ids inside .. inside + range.count - 1 are `range`.
struct IdMap {
  std::uint32_t inside = 0;
  IdRange range;
};

// A user namespace whose ids 0 .. count - 1 are `range`, for users and groups alike; setgroups(2)
// stays allowed in it. Nobody lives there: it exists as long as the descriptor, or a mount or a
// namespace made from it.
Fd make_user_namespace(IdRange range);
// The same, with maps of any kind.
Fd make_user_namespace(IdMap users, IdMap groups);

// Maps the ids of a process that was just cloned with CLONE_NEWUSER. Can be done once per process.
void write_id_maps(pid_t pid, IdRange range);
// For those who have no /proc: here is one.
void write_id_maps(int proc_fd, pid_t pid, IdRange range);

// A network namespace with nothing but its loopback link, which is down.
Fd make_net_namespace();

// `type` as in /proc/<pid>/ns: "net", "user", "mnt", ...
Fd open_namespace(pid_t pid, const char* type);

// Moves the calling thread. `type` is a CLONE_NEW... flag, or 0 for whatever the descriptor is.
void enter_namespace(int namespace_fd, int type);

// Names the host that a process lives on, which is not ours.
void set_hostname_of(const Pidfd& process, const std::string& hostname);

// What tells one namespace from another while both exist.
std::uint64_t namespace_inode(int namespace_fd);

}  // namespace hearth::linux
