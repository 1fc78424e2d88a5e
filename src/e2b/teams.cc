// GET /teams, and a team's API keys.
#include <algorithm>

#include "e2b/answers.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "tenants/api_keys.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// The command line asks with what it calls a token of its user; an API key is one as well.
std::string key_of_request(const http::Request& request) {
  const std::string_view authorization = request.headers.value("Authorization");
  if (authorization.size() > kBearer.size() &&
      http::equal_ignoring_case(authorization.substr(0, kBearer.size()), kBearer))
    return std::string(authorization.substr(kBearer.size()));
  return std::string(request.headers.value("X-API-Key"));
}

http::Response list_teams(const Core& core, const http::Request& request) {
  const std::string key = key_of_request(request);
  const auto holder = core.parts.keys.find(key);
  if (!holder)
    refuse(401, "the API key is missing or not valid: send it as 'Authorization: Bearer KEY'");
  return answer_json(
      200,
      model::JsonArray{JsonObject{
          {"teamID", holder->team}, {"name", holder->team}, {"apiKey", key}, {"isDefault", true}}});
}

JsonObject render(const tenants::KeyInfo& info) {
  return {{"id", info.id},
          {"name", info.name},
          {"mask", JsonObject{{"prefix", tenants::kKeyPrefix},
                              {"valueLength", tenants::kKeyDigits},
                              {"maskedValuePrefix", info.first},
                              {"maskedValueSuffix", info.last}}},
          {"createdAt", time_text(info.created.value_or(Time()))},
          {"createdBy", nullptr},
          {"lastUsed", nullptr}};
}

http::Response list_keys(const Core& core, const Call& call) {
  model::JsonArray all;
  for (const tenants::KeyInfo& each : tenants::list_keys(core.parts.client, call.holder.team))
    all.push_back(render(each));
  return answer_json(200, std::move(all));
}

// A key can make none that may do more or lives longer than itself.
http::Response create_key(const Core& core, const Call& call) {
  const std::string name = call.body().get_text("name");
  const auto own = tenants::find_key(core.parts.client, call.holder.id);
  if (!own) refuse(401, "the API key is not valid");
  const tenants::IssuedKey issued = core.parts.keys.issue(
      {.team = call.holder.team, .name = name, .limits = own->limits, .expires = own->expires});
  JsonObject answer = render(issued.info);
  answer["key"] = issued.key;
  return answer_json(201, answer);
}

// The key that the path's {id} names. One with limits of its own has a say in itself only.
tenants::KeyInfo get_key(const Core& core, const Call& call) {
  const std::string& id = call.request.parameter("id");
  const bool can_be = id.size() <= 64 && std::ranges::all_of(id, [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                      });
  const auto found = can_be ? tenants::find_key(core.parts.client, id) : std::nullopt;
  if (!found || found->team != call.holder.team) refuse(404, "API key '{}' not found", id);
  if (found->id == call.holder.id) return *found;
  const auto own = tenants::find_key(core.parts.client, call.holder.id);
  if (!own || !own->limits.is_empty() || own->expires)
    refuse(403, "an API key with limits of its own cannot change others");
  return *found;
}

http::Response rename_key(const Core& core, const Call& call) {
  const std::string name = call.body().get_text("name");
  tenants::rename_key(core.parts.client, get_key(core, call).id, name);
  return answer_nothing();
}

http::Response remove_key(const Core& core, const Call& call) {
  const tenants::KeyInfo key = get_key(core, call);
  if (!core.parts.keys.revoke(key.id)) refuse(404, "API key '{}' not found", key.id);
  return answer_nothing();
}

}  // namespace

void add_team_routes(Routes& routes, Core& core) {
  routes.add_open("GET", "/teams",
                  [&core](const http::Request& request) { return list_teams(core, request); });
  routes.add("GET", "/api-keys", [&core](const Call& call) { return list_keys(core, call); });
  routes.add("POST", "/api-keys", [&core](const Call& call) { return create_key(core, call); });
  routes.add("PATCH", "/api-keys/{id}",
             [&core](const Call& call) { return rename_key(core, call); });
  routes.add("DELETE", "/api-keys/{id}",
             [&core](const Call& call) { return remove_key(core, call); });
}

}  // namespace hearth::e2b
