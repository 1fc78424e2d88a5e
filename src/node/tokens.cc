#include "node/tokens.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr Duration kMostAge = std::chrono::hours(24);

}  // namespace

std::string_view account_of(const Json& pod) {
  const std::string_view name = text_at(pod, {"spec", "serviceAccountName"});
  return name.empty() ? "default" : name;
}

std::string Tokens::get(const Json& pod, std::string_view audience, std::int64_t seconds) {
  const Wish wish{std::string(model::uid_of(pod)), std::string(account_of(pod)),
                  std::string(audience), seconds};
  const Kept old = kept_.with([&](auto& kept) {
    const auto found = kept.find(wish);
    return found == kept.end() ? Kept() : found->second;
  });
  const Time now = clock_.now();
  if (!old.token.empty() && now < old.renew_at) return old.token;
  try {
    const Kept fresh = request(pod, wish);
    kept_.with([&](auto& kept) { kept[wish] = fresh; });
    return fresh.token;
  } catch (const Error& error) {
    if (old.token.empty() || now >= old.ends) throw;
    log::warning("a token is not renewed yet",
                 {{"pod", model::name_of(pod)}, {"error", error.what()}});
    return old.token;
  }
}

void Tokens::forget(std::string_view pod_uid) {
  kept_.with([&](auto& kept) {
    std::erase_if(kept, [&](const auto& one) { return one.first.pod_uid == pod_uid; });
  });
}

Tokens::Kept Tokens::request(const Json& pod, const Wish& wish) {
  JsonObject spec{{"expirationSeconds", wish.seconds},
                  {"boundObjectRef", JsonObject{{"apiVersion", "v1"},
                                                {"kind", "Pod"},
                                                {"name", model::name_of(pod)},
                                                {"uid", wish.pod_uid}}}};
  spec["audiences"] = wish.audience.empty() ? JsonArray() : JsonArray{wish.audience};
  const Time begin = clock_.now();
  const Json answer =
      client_.post(client::kServiceAccounts, model::namespace_of(pod), wish.account, "token",
                   JsonObject{{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", std::move(spec)}});
  const std::string_view token = text_at(answer, {"status", "token"});
  if (token.empty())
    fail(Code::unavailable, "no token came for service account '{}'", wish.account);
  // The server may have given it another life than was asked for.
  const std::int64_t seconds =
      model::number_at(answer, {"spec", "expirationSeconds"}).value_or(wish.seconds);
  const Duration life = std::chrono::seconds(std::max<std::int64_t>(seconds, 0));
  return {.token = std::string(token),
          .renew_at = begin + std::min<Duration>(life * 4 / 5, kMostAge),
          .ends = begin + life};
}

}  // namespace hearth::node
