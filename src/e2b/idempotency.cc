#include "e2b/idempotency.h"

#include <algorithm>

#include <fmt/format.h>

#include "e2b/answers.h"
#include "e2b/state.h"
#include "e2b/words.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kByKey = "e2b-idempotency-key";
// As the SDKs check it.
constexpr std::size_t kMostKeyBytes = 255;

bool is_key(std::string_view text) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMostKeyBytes && std::ranges::all_of(text, is_fine);
}

// No namespace and no key has a blank.
std::string place_of(std::string_view ns, std::string_view key) {
  return fmt::format("{} {}", ns, key);
}

}  // namespace

std::optional<IdempotencyKey> parse_idempotency_key(const http::Request& request) {
  const std::string_view text = request.headers.value("Idempotency-Key");
  if (text.empty()) return {};
  if (!is_key(text))
    refuse(400, "the Idempotency-Key is to be 1 to {} lower case letters, digits and hyphens",
           kMostKeyBytes);
  return IdempotencyKey{.key = std::string(text), .request = model::name_hash(request.body)};
}

void index_idempotency_keys(client::WatchCache& sandboxes) {
  sandboxes.add_index(std::string(kByKey), [](const Json& sandbox) -> std::vector<std::string> {
    const std::string_view kept = model::annotation_of(sandbox, kIdempotencyAnnotation);
    if (kept.empty() || state_of(sandbox) == State::none) return {};
    return {place_of(model::namespace_of(sandbox), kept.substr(0, kept.find(' ')))};
  });
}

model::Key turn_of(std::string_view ns, const IdempotencyKey& key) {
  return {std::string(ns), fmt::format("key {}", key.key)};  // a name that no sandbox has
}

Object find_repeated(Core& core, std::string_view ns, const IdempotencyKey& key) {
  core.catch_up();
  for (const Object& each : core.sandboxes.find_by_index(kByKey, place_of(ns, key.key))) {
    const Object found = core.find_sandbox(ns, model::name_of(*each));
    if (!found) continue;
    if (!model::annotation_of(*found, kIdempotencyAnnotation).ends_with(" " + key.request))
      refuse(422, "the Idempotency-Key '{}' was used for another request", key.key);
    return found;
  }
  return nullptr;
}

void put_idempotency_key(const IdempotencyKey& key, Json& marks) {
  model::make_object_at(marks, {"metadata", "annotations"})[kIdempotencyAnnotation] =
      fmt::format("{} {}", key.key, key.request);
}

}  // namespace hearth::e2b
