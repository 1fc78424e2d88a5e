// Limits: which make sense, and which this engine can give.
#pragma once

#include <cstdint>
#include <vector>

#include "linux/cgroup_layout.h"
#include "linux/resource_limits.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// Throws Error(invalid) for limits that no sandbox could live with.
void check(const Limits& limits);

// Throws Error(invalid) for what no host is called: labels with dots between them, as long as the
// kernel keeps it.
void check_hostname(const std::string& name);

// Throws Error(invalid) for logs of no use.
void check(const LogLimits& log);

// Throws Error: invalid for what is no limit, unavailable for more than we have ourselves. What is
// born in a sandbox can lower its limits and never raise them, and has ours to begin with.
void check(const std::vector<linux::ResourceLimit>& ulimits);

// With the default for what was not asked for.
std::vector<linux::ResourceLimit> complete(std::vector<linux::ResourceLimit> ulimits);

// How much a writable layer in memory may hold: less than the memory that it counts against, so
// that who fills it is told so (ENOSPC) before the kernel kills him. 0: no limit.
std::uint64_t layer_in_memory(const Limits& limits);

// Limits that a shell of the pool can be given after it was made. (Those on a disk may take a
// cgroup that shells of the pool do not have.)
bool can_be_given(const Limits& limits);

bool same_cgroup_limits(const Limits& one, const Limits& other);

// The part of them that cgroups enforce. `disk_fd` is a folder on the disk that they are about.
// Throws Error(unavailable) for a limit on that where there is none.
linux::CgroupLimits cgroup_limits(const Limits& limits, int disk_fd);

}  // namespace hearth::runtime
