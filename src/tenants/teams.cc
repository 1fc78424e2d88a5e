#include "tenants/teams.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/id.h"
#include "client/kinds.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "tenants/api_keys.h"
#include "tenants/system_internal.h"

namespace hearth::tenants {
namespace {

using model::Json;
using model::JsonObject;

struct LimitWord {
  std::string_view annotation;
  std::optional<std::int64_t> LimitChanges::* change;
  std::int64_t Limits::* limit;
};

constexpr std::array<LimitWord, 5> kWords = {{
    {"hearth.dev/limit-sandboxes", &LimitChanges::sandboxes, &Limits::sandboxes},
    {"hearth.dev/limit-creates-per-second", &LimitChanges::creates_per_second,
     &Limits::creates_per_second},
    {"hearth.dev/limit-lifetime-seconds", &LimitChanges::lifetime_seconds,
     &Limits::lifetime_seconds},
    {"hearth.dev/limit-cpu-millis", &LimitChanges::cpu_millis, &Limits::cpu_millis},
    {"hearth.dev/limit-memory-mib", &LimitChanges::memory_mib, &Limits::memory_mib},
}};

std::int64_t parse_limit(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && number > 0 ? number : 0;
}

// Whose own namespaces these are; a team in them would see their secrets.
bool is_reserved(std::string_view name) {
  return name == model::kSystemNamespace || name.starts_with("kube-");
}

void require_team_name(const std::string& name) {
  if (!is_label(name))
    fail(Code::invalid,
         "'{}' is no name for a team: 1 to 63 of a-z, 0-9 and '-', no '-' at either end", name);
  if (is_reserved(name)) fail(Code::invalid, "'{}' is a namespace of the system, no team", name);
}

Json namespace_for(const std::string& name, const LimitChanges& limits) {
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Namespace"},
                    {"metadata", JsonObject{{"name", name},
                                            {"labels", JsonObject{{model::kTeamLabel, name}}},
                                            {"annotations", annotations_of(limits)}}}};
}

Team require_team(const Json& ns) {
  auto team = team_of(ns);
  if (!team) fail(Code::conflict, "the namespace '{}' is being deleted", model::name_of(ns));
  return std::move(*team);
}

Team patch_namespace(client::Client& client, const std::string& name, JsonObject metadata) {
  return require_team(client.patch(client::kNamespaces, "", name, client::PatchKind::merge,
                                   JsonObject{{"metadata", std::move(metadata)}}));
}

}  // namespace

LimitChanges limits_on(const Json& object) {
  LimitChanges limits;
  const JsonObject* annotations = model::object_at(object, {"metadata", "annotations"});
  if (annotations == nullptr) return limits;
  for (const LimitWord& word : kWords) {
    if (const Json* value = annotations->if_contains(word.annotation))
      limits.*word.change =
          value->is_string() ? parse_limit(std::string_view(value->get_string())) : 0;
  }
  return limits;
}

JsonObject annotations_of(const LimitChanges& limits) {
  JsonObject annotations;
  for (const LimitWord& word : kWords) {
    if (const auto& limit = limits.*word.change)
      annotations[word.annotation] = std::to_string(*limit);
  }
  return annotations;
}

Limits replaced(Limits limits, const LimitChanges& by) {
  for (const LimitWord& word : kWords)
    if (const auto& limit = by.*word.change) limits.*word.limit = *limit;
  return limits;
}

Limits narrowed(Limits limits, const LimitChanges& by) {
  for (const LimitWord& word : kWords)
    if (const auto& limit = by.*word.change)
      limits.*word.limit = std::min(limits.*word.limit, *limit);
  return limits;
}

std::optional<Team> team_of(const Json& ns) {
  const std::string_view name = model::name_of(ns);
  const bool is_team =
      name == kDefaultTeam || (!name.empty() && model::label_of(ns, model::kTeamLabel) == name);
  if (!is_team || is_reserved(name) || model::is_deleting(ns)) return std::nullopt;
  return Team{.name = std::string(name),
              .ns = std::string(name),
              .limits = replaced(Limits{}, limits_on(ns))};
}

Team create_team(client::Client& client, const std::string& name, const LimitChanges& limits) {
  require_team_name(name);
  const Json wanted = namespace_for(name, limits);
  if (const auto made = create_if_absent(client, client::kNamespaces, wanted))
    return require_team(*made);
  if (team_of(client.get(client::kNamespaces, "", name)))
    fail(Code::already_exists, "there is a team '{}' already", name);
  return patch_namespace(
      client, name,
      {{"labels", JsonObject{{model::kTeamLabel, name}}}, {"annotations", annotations_of(limits)}});
}

std::optional<Team> find_team(client::Client& client, const std::string& name) {
  if (!is_label(name)) return std::nullopt;
  const auto ns = client.find(client::kNamespaces, "", name);
  return ns ? team_of(*ns) : std::nullopt;
}

std::vector<Team> list_teams(client::Client& client) {
  std::vector<Team> teams;
  for (const Json& ns : client.list_all(client::kNamespaces, {}).items)
    if (auto team = team_of(ns)) teams.push_back(std::move(*team));
  std::ranges::sort(teams, {}, &Team::name);
  return teams;
}

Team change_limits(client::Client& client, const std::string& name, const LimitChanges& limits) {
  if (!find_team(client, name)) fail(Code::not_found, "there is no team '{}'", name);
  return patch_namespace(client, name, {{"annotations", annotations_of(limits)}});
}

bool remove_team(client::Client& client, const std::string& name) {
  if (name == kDefaultTeam) fail(Code::invalid, "the team '{}' cannot be removed", name);
  if (!find_team(client, name)) return false;
  // Keys first: nobody makes another sandbox while the namespace ends.
  for (const KeyInfo& key : list_keys(client, name)) revoke_key(client, key.id);
  client.remove(client::kNamespaces, "", name);
  return true;
}

}  // namespace hearth::tenants
