// Names that are made up by us, and names that are given to us.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

// `bytes` of the kernel's randomness in lower case hexadecimal.
std::string random_hex(std::size_t bytes);

// So many of a-z and 0-9, each as likely as any other.
std::string random_alphanumeric(std::size_t count);

// An id for a new sandbox: "sb-" and 16 characters of a-z2-7 (80 random bits).
std::string new_sandbox_id();

// A Kubernetes name (RFC 1123 label): 1 to 63 of a-z, 0-9 and '-', no '-' at either end. It is also
// safe as a file name, as a cgroup name and as a host name, which is why sandbox ids must be one.
bool is_label(std::string_view text);

}  // namespace hearth
