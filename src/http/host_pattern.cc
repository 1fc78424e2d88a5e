#include "http/host_pattern.h"

#include <algorithm>

namespace hearth::http {
namespace {

// Of DNS, as text.
constexpr std::size_t kMostName = 253;
constexpr std::size_t kMostLabel = 63;
constexpr std::string_view kAllBelow = "*.";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// With the underscore, which names of services have.
bool is_label(std::string_view label) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
  };
  return !label.empty() && label.size() <= kMostLabel && label.front() != '-' &&
         label.back() != '-' && std::ranges::all_of(label, is_good);
}

}  // namespace

bool is_host_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.starts_with(kAllBelow)) text.remove_prefix(kAllBelow.size());
  if (text.size() > kMostName) return false;
  std::string_view label;
  for (std::size_t at = 0; at <= text.size(); at += label.size() + 1) {
    label = text.substr(at, text.find('.', at) - at);
    if (!is_label(label)) return false;
  }
  return !std::ranges::all_of(label, is_digit);
}

bool matches_host(std::string_view pattern, std::string_view host) {
  if (pattern == "*") return true;
  if (!pattern.starts_with(kAllBelow)) return host == pattern;
  const std::string_view below = pattern.substr(1);  // with its dot
  return host.size() > below.size() && host.ends_with(below);
}

}  // namespace hearth::http
