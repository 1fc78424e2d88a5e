// Creates that may arrive twice: a client that got no answer asks again with the same
// Idempotency-Key, and is given the sandbox that the first request made.
//
// The key is kept on the Sandbox, and counts in its team as long as that Sandbox is there: nothing
// else is remembered, by nobody.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "e2b/core.h"
#include "http/http.h"

namespace hearth::e2b {

struct IdempotencyKey {
  std::string key;
  std::string request;  // tells apart what was asked for with it
};

// Nothing where the request has none. Throws Refusal(400) for what can be no key.
std::optional<IdempotencyKey> parse_idempotency_key(const http::Request& request);

// Before the cache starts.
void index_idempotency_keys(client::WatchCache& sandboxes);

// Whoever has the turn is the only one who creates with this key.
model::Key turn_of(std::string_view ns, const IdempotencyKey& key);
// What was made with it; null for nothing. Throws Refusal(422) if something else was asked for
// then.
Object find_repeated(Core& core, std::string_view ns, const IdempotencyKey& key);

// As an annotation of the Sandbox.
void put_idempotency_key(const IdempotencyKey& key, Json& marks);

}  // namespace hearth::e2b
