#include "linux/resource_limits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"

namespace hearth::linux {
namespace {

struct Resource {
  std::string_view name;
  std::uint32_t number;
};

constexpr std::array<Resource, RLIM_NLIMITS> kResources = {{
    {.name = "as", .number = RLIMIT_AS},
    {.name = "core", .number = RLIMIT_CORE},
    {.name = "cpu", .number = RLIMIT_CPU},
    {.name = "data", .number = RLIMIT_DATA},
    {.name = "fsize", .number = RLIMIT_FSIZE},
    {.name = "locks", .number = RLIMIT_LOCKS},
    {.name = "memlock", .number = RLIMIT_MEMLOCK},
    {.name = "msgqueue", .number = RLIMIT_MSGQUEUE},
    {.name = "nice", .number = RLIMIT_NICE},
    {.name = "nofile", .number = RLIMIT_NOFILE},
    {.name = "nproc", .number = RLIMIT_NPROC},
    {.name = "rss", .number = RLIMIT_RSS},
    {.name = "rtprio", .number = RLIMIT_RTPRIO},
    {.name = "rttime", .number = RLIMIT_RTTIME},
    {.name = "sigpending", .number = RLIMIT_SIGPENDING},
    {.name = "stack", .number = RLIMIT_STACK},
}};

}  // namespace

std::optional<std::uint32_t> find_resource(std::string_view name) {
  const auto* const found = std::ranges::find(kResources, name, &Resource::name);
  if (found == kResources.end()) return std::nullopt;
  return found->number;
}

std::string_view resource_name(std::uint32_t resource) {
  const auto* const found = std::ranges::find(kResources, resource, &Resource::number);
  if (found == kResources.end()) fail(Code::invalid, "there is no resource {} to limit", resource);
  return found->name;
}

std::string all_resource_names() {
  std::vector<std::string_view> names;
  for (const Resource& resource : kResources) names.push_back(resource.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

ResourceLimit own_limit(std::uint32_t resource) {
  rlimit64 limit{};
  if (::prlimit64(0, static_cast<__rlimit_resource>(resource), nullptr, &limit) != 0)
    throw_errno("look up our own limit of {}", resource_name(resource));
  return {.resource = resource, .soft = limit.rlim_cur, .hard = limit.rlim_max};
}

void raise_own_limit(std::uint32_t resource) {
  const ResourceLimit now = own_limit(resource);
  const rlimit64 most{.rlim_cur = now.hard, .rlim_max = now.hard};
  if (::prlimit64(0, static_cast<__rlimit_resource>(resource), &most, nullptr) != 0)
    throw_errno("raise the limit '{}'", resource_name(resource));
}

}  // namespace hearth::linux
