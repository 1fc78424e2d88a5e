#include "network/pool.h"

#include <charconv>

#include "base/error.h"
#include "base/id.h"
#include "network/services.h"

namespace hearth::network {
namespace {

constexpr std::size_t kLongestTag = 32;
constexpr unsigned kGenerations = 26;

// FNV-1a: the same in every life and in every build.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  }
  return hash;
}

}  // namespace

Names names_of(const std::string& tag) {
  if (!is_label(tag) || tag.size() > kLongestTag) {
    fail(Code::invalid, "'{}' cannot be the tag of a network: a label of at most {}", tag,
         kLongestTag);
  }
  const std::string brief = fmt::format("h{:05x}", hash_of(tag) & 0xfffff);
  return {.table = "hearth-" + tag, .link_prefix = brief + "-", .gateway_label = "lo:" + brief};
}

std::string link_name(const Names& names, std::uint32_t index, unsigned generation) {
  const char letter = static_cast<char>('a' + generation % kGenerations);
  return fmt::format("{}{}{}", names.link_prefix, index, letter);
}

std::optional<std::uint32_t> find_index(const Names& names, std::string_view link) {
  if (!link.starts_with(names.link_prefix)) return std::nullopt;
  link.remove_prefix(names.link_prefix.size());
  if (link.size() < 2 || link.back() < 'a' || link.back() > 'z') return std::nullopt;
  link.remove_suffix(1);
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(link.data(), link.data() + link.size(), index);
  if (error != std::errc() || end != link.data() + link.size()) return std::nullopt;
  return index;
}

std::vector<Cidr> pool_candidates(std::string_view tag) {
  std::vector<Cidr> candidates;
  const auto add = [&](std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t at = 0; at < count; ++at) {
      const std::uint32_t which = (hash_of(tag) + at) % count;
      const Cidr candidate{.address = first + (which << 16), .prefix = 16};
      if (!candidate.overlaps(kServiceRange)) candidates.push_back(candidate);
    }
  };
  add(0x0a000000, 256);  // 10.0.0.0/8
  add(0xac100000, 16);   // 172.16.0.0/12
  add(0x64400000, 64);   // 100.64.0.0/10
  return candidates;
}

std::uint32_t gateway_of(const Cidr& pool) {
  return pool.address + 1;
}

std::uint32_t address_of(const Cidr& pool, std::uint32_t index) {
  return gateway_of(pool) + 1 + index;
}

std::uint32_t room_in(const Cidr& pool) {
  constexpr std::uint64_t kNotForSandboxes = 3;  // the first, the gateway's, and the last
  const std::uint64_t size = std::uint64_t{1} << (32 - pool.prefix);
  return size <= kNotForSandboxes ? 0 : static_cast<std::uint32_t>(size - kNotForSandboxes);
}

}  // namespace hearth::network
