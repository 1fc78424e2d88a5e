// Templates: SandboxTemplates of the team. One object is one template with one build, which is the
// object itself.
#include <algorithm>
#include <map>
#include <utility>

#include "client/kinds.h"
#include "e2b/answers.h"
#include "e2b/birth.h"
#include "e2b/page.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/template_names.h"
#include "e2b/view.h"
#include "model/front_door.h"
#include "model/status.h"

namespace hearth::e2b {
namespace {

// Of a template's sandboxes that are there; those of the past are not counted by anybody.
struct Spawned {
  std::int64_t count = 0;
  Time last;
};
using SpawnedByTemplate = std::map<std::string, Spawned>;  // by origin_of

Spawned spawned_of(const SpawnedByTemplate& all, const Json& sandbox_template) {
  Spawned sum;
  for (const std::string& origin :
       {model::key_of(sandbox_template).text(), std::string(template_id(sandbox_template))}) {
    const auto found = all.find(origin);
    if (found == all.end()) continue;
    sum.count += found->second.count;
    sum.last = std::max(sum.last, found->second.last);
  }
  return sum;
}

SpawnedByTemplate count_spawned(const Core& core, std::string_view ns) {
  SpawnedByTemplate all;
  for (const Object& each : core.list_sandboxes(ns)) {
    Spawned& spawned = all[origin_of(*each)];
    ++spawned.count;
    spawned.last = std::max(spawned.last, started_at(*each).value_or(Time()));
  }
  return all;
}

std::vector<std::string> aliases_of(const Json& sandbox_template) {
  std::vector<std::string> aliases;
  for (const std::string& each : template_names(sandbox_template)) {
    std::string alias = each.substr(0, each.find(':'));
    if (std::ranges::find(aliases, alias) == aliases.end()) aliases.push_back(std::move(alias));
  }
  return aliases;
}

model::JsonArray full_aliases(const Json& sandbox_template) {
  model::JsonArray names;
  for (const std::string& each : aliases_of(sandbox_template))
    names.emplace_back(full_name(sandbox_template, each));
  return names;
}

// What a template and a list of templates say alike.
JsonObject template_answer(const Json& sandbox_template, const SpawnedByTemplate& all) {
  model::JsonArray aliases;
  for (const std::string& each : aliases_of(sandbox_template)) aliases.emplace_back(each);
  const std::string created = time_text(model::created_at(sandbox_template).value_or(Time()));
  const Spawned spawned = spawned_of(all, sandbox_template);
  return {{"templateID", template_id(sandbox_template)},
          {"public", is_public(sandbox_template)},
          {"aliases", std::move(aliases)},
          {"names", full_aliases(sandbox_template)},
          {"createdAt", created},
          {"updatedAt", created},
          {"lastSpawnedAt", spawned.count > 0 ? Json(time_text(spawned.last)) : Json(nullptr)},
          {"spawnCount", spawned.count}};
}

JsonObject listed_template(const Core& core, const Json& sandbox_template,
                           const SpawnedByTemplate& all) {
  const Size size = size_of(core, sandbox_template);
  JsonObject answer = template_answer(sandbox_template, all);
  answer["buildID"] = model::uid_of(sandbox_template);
  answer["cpuCount"] = size.cpu_count;
  answer["memoryMB"] = size.memory_mib;
  answer["diskSizeMB"] = size.disk_mib;
  answer["createdBy"] = nullptr;
  answer["buildCount"] = 1;
  answer["envdVersion"] = core.options.envd_version;
  answer["buildStatus"] = "ready";
  return answer;
}

void check_team(const Call& call) {
  const auto team = call.query("teamID");
  if (team && !team->empty() && *team != call.holder.team)
    refuse(403, "the API key is not one of team '{}'", *team);
}

// Snapshots have a list of their own.
std::vector<Object> list_own(const Core& core, const Call& call) {
  check_team(call);
  std::vector<Object> all = list_templates(core, call.holder.ns);
  std::erase_if(all, [](const Object& each) { return is_snapshot(*each); });
  return all;
}

http::Response answer_templates(const Core& core, const Call& call,
                                const std::vector<Object>& all) {
  const SpawnedByTemplate spawned = count_spawned(core, call.holder.ns);
  model::JsonArray entries;
  for (const Object& each : all) entries.push_back(listed_template(core, *each, spawned));
  return answer_json(200, std::move(entries));
}

http::Response list_first(const Core& core, const Call& call) {
  std::vector<Object> all = list_own(core, call);
  sort_newest_first(all);
  return answer_templates(core, call, all);
}

http::Response list(const Core& core, const Call& call) {
  const Page page = take_page(list_own(core, call), parse_page_query(call));
  http::Response response = answer_templates(core, call, page.objects);
  if (!page.next.empty()) response.headers.set("X-Next-Token", page.next);
  return response;
}

http::Response get(const Core& core, const Call& call) {
  // There is one build: whatever page is asked for, it fits.
  const PageQuery query = parse_page_query(call);
  const Object found = get_template(core, call.holder, call.request.parameter("id"));
  const Size size = size_of(core, *found);
  const std::string created = time_text(model::created_at(*found).value_or(Time()));
  JsonObject answer = template_answer(*found, count_spawned(core, call.holder.ns));
  answer["builds"] = model::JsonArray();
  if (!query.after)
    answer["builds"].get_array().push_back(JsonObject{{"buildID", model::uid_of(*found)},
                                                      {"status", "ready"},
                                                      {"createdAt", created},
                                                      {"updatedAt", created},
                                                      {"finishedAt", created},
                                                      {"cpuCount", size.cpu_count},
                                                      {"memoryMB", size.memory_mib},
                                                      {"diskSizeMB", size.disk_mib},
                                                      {"envdVersion", core.options.envd_version}});
  return answer_json(200, answer);
}

void remove_if_there(Core& core, const client::ResourceId& kind, const model::Key& key,
                     std::string_view uid) {
  try {
    core.parts.client.remove(
        kind, key.ns, key.name,
        {.propagation = {}, .uid = std::string(uid), .resource_version = {}, .grace_seconds = {}});
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
  }
}

http::Response remove(Core& core, const Call& call) {
  const Object found = get_own_template(core, call.holder, call.request.parameter("id"));
  const model::Key key = model::key_of(*found);
  const std::string uid(model::uid_of(*found));
  // Without its template a pool can do nothing but complain.
  if (const auto pool = find_pool(core, key.ns, *found))
    remove_if_there(core, client::kSandboxWarmPools, *pool, {});
  remove_if_there(core, client::kSandboxTemplates, key, uid);
  // Whoever asks next is told that it is gone.
  core.template_waits.until(
      key,
      [&](const Json* object) {
        return object == nullptr || model::uid_of(*object) != uid || model::is_deleting(*object);
      },
      core.options.settle_patience);
  return answer_nothing();
}

http::Response change(Core& core, const Call& call) {
  const auto is_to_be_public = call.body().flag("public");
  Object found = get_own_template(core, call.holder, call.request.parameter("id"));
  if (is_to_be_public && *is_to_be_public != is_public(*found)) {
    const Json value = *is_to_be_public ? Json("true") : Json(nullptr);
    patch_template(
        core, *found,
        JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{model::kPublicLabel, value}}}}}});
  }
  return answer_json(200, JsonObject{{"names", full_aliases(*found)}});
}

http::Response find_alias(const Core& core, const Call& call) {
  const std::string& text = call.request.parameter("alias");
  const TemplateReference reference = parse_template_reference(text);
  if (const Object found = find_template(core, call.holder, reference))
    return answer_json(
        200, JsonObject{{"templateID", template_id(*found)}, {"public", is_public(*found)}});
  if (is_foreign_template(core, call.holder, reference))
    refuse(403, "template '{}' belongs to another team", text);
  refuse(404, "template '{}' not found", text);
}

std::vector<std::string> with_tags(std::string_view alias, const std::vector<std::string>& tags) {
  if (tags.empty()) refuse(400, "the field 'tags' is required");
  std::vector<std::string> names;
  for (const std::string& each : tags) {
    check_tag(each);
    names.push_back(parse_template_reference(std::string(alias) + ":" + each).full_name());
  }
  return names;
}

http::Response add_tags(Core& core, const Call& call) {
  const Body body = call.body();
  const std::string target = body.get_text("target");
  const auto tags = body.list("tags").value_or(std::vector<std::string>());
  const TemplateReference reference = parse_new_name(call.holder, target);
  const std::vector<std::string> names = with_tags(reference.alias, tags);
  const auto turn = take_turn_at_names(core, call.holder.ns);
  const Object found = get_own_template(core, call.holder, target);
  give_names(core, call.holder.ns, model::name_of(*found), names);
  model::JsonArray given;
  for (const std::string& each : names) given.emplace_back(each.substr(each.find(':') + 1));
  return answer_json(201,
                     JsonObject{{"tags", std::move(given)}, {"buildID", model::uid_of(*found)}});
}

http::Response remove_tags(Core& core, const Call& call) {
  const Body body = call.body();
  const std::string text = body.get_text("name");
  const auto tags = body.list("tags").value_or(std::vector<std::string>());
  const TemplateReference name = parse_new_name(call.holder, text);
  const std::vector<std::string> names = with_tags(name.alias, tags);
  const auto turn = take_turn_at_names(core, call.holder.ns);
  const auto all = list_templates(core, call.holder.ns);
  const auto has_alias = [&](const Object& each) {
    const std::vector<std::string> aliases = aliases_of(*each);
    return std::ranges::find(aliases, name.alias) != aliases.end();
  };
  if (std::ranges::none_of(all, has_alias)) refuse(404, "template '{}' not found", text);
  for (const std::string& each : names)
    if (each.ends_with(":" + std::string(kDefaultTag)) &&
        core.templates.find(call.holder.ns, name.alias))
      refuse(400, "'{}' is the name of the template itself; delete the template instead", each);
  take_names(core, call.holder.ns, names);
  return answer_nothing();
}

// Every tag behind one of its aliases, on whichever build of the same team.
http::Response list_tags(const Core& core, const Call& call) {
  const Object found = get_template(core, call.holder, call.request.parameter("id"));
  const std::vector<std::string> aliases = aliases_of(*found);
  std::map<std::string, Object> tags;
  for (const Object& each : list_templates(core, model::namespace_of(*found)))
    for (const std::string& name : template_names(*each)) {
      const auto colon = name.find(':');
      const bool is_meant = std::ranges::find(aliases, name.substr(0, colon)) != aliases.end();
      const bool is_visible = model::namespace_of(*each) == call.holder.ns || is_public(*each);
      if (is_meant && is_visible) tags.emplace(name.substr(colon + 1), each);
    }
  model::JsonArray entries;
  for (const auto& [tag, each] : tags)
    entries.push_back(
        JsonObject{{"tag", tag},
                   {"buildID", model::uid_of(*each)},
                   {"createdAt", time_text(model::created_at(*each).value_or(Time()))}});
  return answer_json(200, std::move(entries));
}

}  // namespace

void add_template_routes(Routes& routes, Core& core) {
  routes.add("GET", "/templates", [&core](const Call& call) { return list_first(core, call); });
  routes.add("GET", "/v2/templates", [&core](const Call& call) { return list(core, call); });
  routes.add("GET", "/templates/{id}", [&core](const Call& call) { return get(core, call); });
  routes.add("DELETE", "/templates/{id}", [&core](const Call& call) { return remove(core, call); });
  for (const char* pattern : {"/templates/{id}", "/v2/templates/{id}"})
    routes.add("PATCH", pattern, [&core](const Call& call) { return change(core, call); });
  routes.add("GET", "/templates/aliases/{alias}",
             [&core](const Call& call) { return find_alias(core, call); });
  routes.add("POST", "/templates/tags", [&core](const Call& call) { return add_tags(core, call); });
  routes.add("DELETE", "/templates/tags",
             [&core](const Call& call) { return remove_tags(core, call); });
  routes.add("GET", "/templates/{id}/tags",
             [&core](const Call& call) { return list_tags(core, call); });
}

}  // namespace hearth::e2b
