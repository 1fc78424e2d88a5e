// Settings of the kernel that are a sandbox's own, being those of its namespaces.
#pragma once

#include <string>
#include <vector>

namespace hearth::guest {

// Each is NAME=value, "net.ipv4.tcp_fin_timeout=30". For a shell that nothing runs in yet: for a
// moment /proc/sys can be written. Throws Error(invalid) for what the kernel does not take.
void set_sysctls(const std::vector<std::string>& sysctls);

}  // namespace hearth::guest
