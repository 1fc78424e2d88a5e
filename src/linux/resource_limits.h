// Limits of a single process, see getrlimit(2): their names, and what this process has itself.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::linux {

inline constexpr std::uint64_t kUnlimited = RLIM64_INFINITY;

struct ResourceLimit {
  std::uint32_t resource = RLIMIT_NOFILE;  // RLIMIT_...
  std::uint64_t soft = kUnlimited;         // what holds; the process may raise it up to...
  std::uint64_t hard = kUnlimited;         // ...this, which it may only lower

  bool operator==(const ResourceLimit&) const = default;
};

// "nofile" for RLIMIT_NOFILE, and so on. Nothing where there is none of that name.
std::optional<std::uint32_t> find_resource(std::string_view name);

// Throws Error(invalid) for a number that is none.
std::string_view resource_name(std::uint32_t resource);

// For people: "as, core, cpu, ...".
std::string all_resource_names();

// Of the calling process. Throws Error.
ResourceLimit own_limit(std::uint32_t resource);
// The calling process gets all that it may have: soft becomes hard. Throws Error.
void raise_own_limit(std::uint32_t resource);

}  // namespace hearth::linux
