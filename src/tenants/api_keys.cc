#include "tenants/api_keys.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/id.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "http/http.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "tenants/digest_internal.h"
#include "tenants/key_secret_internal.h"
#include "tenants/system_internal.h"

namespace hearth::tenants {
namespace {

using model::Json;

// How long a write may take to come back through the watch: milliseconds, unless it is broken.
constexpr Duration kEchoPatience = std::chrono::seconds(2);

client::WatchCacheOptions keys_only() {
  client::WatchCacheOptions options;
  options.ns = model::kSystemNamespace;
  options.field_selector = "type=" + std::string(model::kApiKeyType);
  return options;
}

void require_id(const std::string& id) {
  if (!is_label(id)) fail(Code::invalid, "'{}' is no id of a key", id);
}

}  // namespace

IssuedKey issue_key(client::Client& client, const NewKey& wanted) {
  require_key_name(wanted.name);
  if (!find_team(client, wanted.team)) fail(Code::not_found, "there is no team '{}'", wanted.team);
  if (list_keys(client, wanted.team).size() >= kMostKeys)
    fail(Code::exhausted, "team '{}' has {} keys; revoke some", wanted.team, kMostKeys);
  std::string key = std::string(kKeyPrefix) + random_hex(kKeyDigits / 2);
  const auto made = create_in_system(client, client::kSecrets, key_secret(key, wanted));
  // 64 bits of a hash were the same: this happens to nobody.
  if (!made) fail(Code::conflict, "there is another key of the same id; try again");
  auto kept = parse_key_secret(*made);
  HEARTH_ASSERT(kept);
  return {.key = std::move(key), .info = std::move(kept->info)};
}

std::vector<KeyInfo> list_keys(client::Client& client, const std::string& team) {
  client::ListOptions options;
  options.ns = model::kSystemNamespace;
  if (!team.empty()) options.label_selector = std::string(model::kTeamLabel) + "=" + team;
  std::vector<KeyInfo> keys;
  for (const Json& secret : client.list_all(client::kSecrets, options).items)
    if (auto kept = parse_key_secret(secret)) keys.push_back(std::move(kept->info));
  std::ranges::sort(keys, [](const KeyInfo& left, const KeyInfo& right) {
    return std::tie(left.created, left.id) < std::tie(right.created, right.id);
  });
  return keys;
}

std::optional<KeyInfo> find_key(client::Client& client, const std::string& id) {
  require_id(id);
  const auto secret = client.find(client::kSecrets, model::kSystemNamespace, secret_name_of(id));
  if (!secret) return std::nullopt;
  auto kept = parse_key_secret(*secret);
  if (!kept) return std::nullopt;
  return std::move(kept->info);
}

KeyInfo rename_key(client::Client& client, const std::string& id, const std::string& name) {
  require_key_name(name);
  if (!find_key(client, id)) fail(Code::not_found, "there is no key '{}'", id);
  const Json patch = model::JsonObject{
      {"metadata",
       model::JsonObject{{"annotations", model::JsonObject{{kKeyNameAnnotation, name}}}}}};
  const Json renamed = client.patch(client::kSecrets, model::kSystemNamespace, secret_name_of(id),
                                    client::PatchKind::merge, patch);
  auto kept = parse_key_secret(renamed);
  if (!kept) fail(Code::not_found, "there is no key '{}'", id);
  return std::move(kept->info);
}

bool revoke_key(client::Client& client, const std::string& id) {
  // Not any Secret there: what is no key is not ours to delete.
  if (!find_key(client, id)) return false;
  try {
    client.remove(client::kSecrets, model::kSystemNamespace, secret_name_of(id));
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
    return false;
  }
  return true;
}

struct ApiKeys::State {
  State(client::Client& the_client, const Clock& the_clock)
      : client(the_client),
        clock(the_clock),
        secrets(the_client, client::kSecrets, keys_only()),
        namespaces(the_client, client::kNamespaces) {}

  void put(const Json& secret) {
    auto kept = parse_key_secret(secret);
    if (!kept) return drop(secret);
    const std::lock_guard lock(mutex);
    ids[secret_name_of(kept->info.id)] = kept->hash;
    keys.insert_or_assign(kept->hash, std::move(kept->info));
    changed.notify_all();
  }

  void drop(const Json& secret) {
    const std::lock_guard lock(mutex);
    const auto found = ids.find(std::string(model::name_of(secret)));
    if (found == ids.end()) return;
    keys.erase(found->second);
    ids.erase(found);
    changed.notify_all();
  }

  void set_team(const Json& ns) {
    auto team = team_of(ns);
    if (!team) return drop_team(ns);
    const std::lock_guard lock(mutex);
    teams.insert_or_assign(team->name, std::move(*team));
    changed.notify_all();
  }

  void drop_team(const Json& ns) {
    const std::lock_guard lock(mutex);
    const auto found = teams.find(model::name_of(ns));
    if (found != teams.end()) teams.erase(found);
  }

  template <typename Holds>
  void wait_until(Holds holds) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kEchoPatience, holds);
  }

  client::Client& client;
  const Clock& clock;
  mutable std::mutex mutex;  // guards what follows, up to the caches
  std::condition_variable changed;
  std::unordered_map<std::string, KeyInfo> keys;     // by hash
  std::unordered_map<std::string, std::string> ids;  // name of the Secret to hash
  std::map<std::string, Team, std::less<>> teams;
  client::WatchCache secrets;
  client::WatchCache namespaces;
};

ApiKeys::ApiKeys(client::Client& client, const Clock& clock)
    : state_(std::make_unique<State>(client, clock)) {
  State* const state = state_.get();
  state->secrets.add_handlers(
      {.on_add = [state](const client::Object& now) { state->put(*now); },
       .on_update = [state](const client::Object&, const client::Object& now) { state->put(*now); },
       .on_delete = [state](const client::Object& last) { state->drop(*last); }});
  state->namespaces.add_handlers(
      {.on_add = [state](const client::Object& now) { state->set_team(*now); },
       .on_update = [state](const client::Object&,
                            const client::Object& now) { state->set_team(*now); },
       .on_delete = [state](const client::Object& last) { state->drop_team(*last); }});
}

ApiKeys::~ApiKeys() {
  stop();
}

void ApiKeys::start() {
  state_->namespaces.start();
  state_->secrets.start();
}

bool ApiKeys::wait_synced(Duration patience) const {
  return state_->namespaces.wait_synced(patience) && state_->secrets.wait_synced(patience);
}

void ApiKeys::stop() {
  state_->secrets.stop();
  state_->namespaces.stop();
}

std::optional<KeyHolder> ApiKeys::find(std::string_view key) const {
  if (!is_key_text(key)) return std::nullopt;
  const std::string hash = sha256_hex(key);
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->keys.find(hash);
  if (found == state_->keys.end() || !http::equal_constant_time(found->first, hash))
    return std::nullopt;
  const KeyInfo& info = found->second;
  if (info.expires && *info.expires <= state_->clock.now()) return std::nullopt;
  const auto team = state_->teams.find(info.team);
  if (team == state_->teams.end()) return std::nullopt;
  return KeyHolder{.id = info.id,
                   .name = info.name,
                   .team = team->second.name,
                   .ns = team->second.ns,
                   .limits = narrowed(team->second.limits, info.limits),
                   .team_creates_per_second = team->second.limits.creates_per_second};
}

IssuedKey ApiKeys::issue(const NewKey& wanted) {
  IssuedKey issued = issue_key(state_->client, wanted);
  const std::string hash = sha256_hex(issued.key);
  state_->wait_until([&] { return state_->keys.contains(hash); });
  return issued;
}

bool ApiKeys::revoke(const std::string& id) {
  if (!revoke_key(state_->client, id)) return false;
  const std::string name = secret_name_of(id);
  state_->wait_until([&] { return !state_->ids.contains(name); });
  return true;
}

std::optional<Team> ApiKeys::find_team(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->teams.find(name);
  if (found == state_->teams.end()) return std::nullopt;
  return found->second;
}

std::vector<Team> ApiKeys::teams() const {
  std::vector<Team> all;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, team] : state_->teams) all.push_back(team);
  return all;
}

}  // namespace hearth::tenants
