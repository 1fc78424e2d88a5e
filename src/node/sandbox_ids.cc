#include "node/sandbox_ids.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

constexpr std::string_view kPrefix = "pod-";
constexpr std::size_t kUidDigits = 32;
constexpr std::size_t kHashDigits = 8;
constexpr std::size_t kMostAttemptDigits = 10;
// Where a uid has its dashes, counted in digits.
constexpr std::size_t kDashes[] = {8, 12, 16, 20};

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string with_dashes(std::string_view digits) {
  std::string uid;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (std::ranges::find(kDashes, i) != std::end(kDashes)) uid += '-';
    uid += digits[i];
  }
  return uid;
}

}  // namespace

std::string SandboxName::id() const {
  std::string digits = pod_uid;
  std::erase(digits, '-');
  return fmt::format("{}{}-{}-{}", kPrefix, digits, container_hash, attempt);
}

SandboxName name_sandbox(std::string_view pod_uid, std::string_view container, unsigned attempt) {
  std::string digits(pod_uid);
  std::erase(digits, '-');
  if (digits.size() != kUidDigits || !is_hex(digits) || with_dashes(digits) != pod_uid)
    fail(Code::invalid, "'{}' is no uid of a pod", pod_uid);
  return {.pod_uid = std::string(pod_uid),
          .container_hash = model::name_hash(container),
          .attempt = attempt};
}

std::optional<SandboxName> parse_sandbox_name(std::string_view id) {
  constexpr std::size_t kHashAt = kPrefix.size() + kUidDigits + 1;
  constexpr std::size_t kAttemptAt = kHashAt + kHashDigits + 1;
  if (!id.starts_with(kPrefix) || id.size() <= kAttemptAt) return std::nullopt;
  if (id.size() > kAttemptAt + kMostAttemptDigits) return std::nullopt;
  if (id[kHashAt - 1] != '-' || id[kAttemptAt - 1] != '-') return std::nullopt;
  const std::string_view digits = id.substr(kPrefix.size(), kUidDigits);
  const std::string_view hash = id.substr(kHashAt, kHashDigits);
  const std::string_view attempt = id.substr(kAttemptAt);
  SandboxName name{.pod_uid = with_dashes(digits), .container_hash = std::string(hash)};
  const auto read = std::from_chars(attempt.begin(), attempt.end(), name.attempt);
  if (read.ec != std::errc() || read.ptr != attempt.end()) return std::nullopt;
  if (!is_hex(digits) || !is_hex(hash) || name.id() != id) return std::nullopt;
  return name;
}

}  // namespace hearth::node
