#include "access/escalation.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using model::text_at;

// A role of a few kilobytes can stand for billions of combinations of its verbs, groups, resources
// and names. A real one has hundreds.
constexpr std::size_t kMostCombinations = 10'000;
constexpr std::size_t kMostLines = 50;

struct Target {
  std::string resource;  // "roles", "clusterrolebindings", ...
  std::string ns;
  std::string name;

  [[noreturn]] void refuse(std::string_view why) const {
    model::throw_forbidden({std::string(kRbacGroup), resource}, name, why);
  }
};

// What one rule may come to: a verb on one thing.
struct Thing {
  std::string_view group;
  std::string_view resource;
  std::string_view name;
  std::string_view url;
};

bool covers_resource(const std::vector<std::string>& owned, std::string_view resource) {
  if (has_word(owned, "*") || has_word(owned, resource)) return true;
  const std::size_t slash = resource.find('/');
  return slash != std::string_view::npos &&
         has_word(owned, fmt::format("*{}", resource.substr(slash)));
}

bool covers(const Rule& owned, std::string_view verb, const Thing& thing) {
  if (!has_word(owned.verbs, "*") && !has_word(owned.verbs, verb)) return false;
  if (!thing.url.empty()) {
    return std::ranges::any_of(owned.urls,
                               [&](const std::string& url) { return covers_url(url, thing.url); });
  }
  const bool named =
      owned.names.empty() || (!thing.name.empty() && has_word(owned.names, thing.name));
  return named && (has_word(owned.groups, "*") || has_word(owned.groups, thing.group)) &&
         covers_resource(owned.resources, thing.resource);
}

std::string go_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(json_quote(text));
  return fmt::format("[{}]", fmt::join(quoted, " "));
}

std::string describe(const Thing& thing, const std::vector<std::string>& verbs) {
  if (!thing.url.empty())
    return fmt::format("{{NonResourceURLs:[{}], Verbs:{}}}", json_quote(thing.url), go_list(verbs));
  std::string names;
  if (!thing.name.empty()) names = fmt::format("ResourceNames:[{}], ", json_quote(thing.name));
  return fmt::format("{{APIGroups:[{}], Resources:[{}], {}Verbs:{}}}", json_quote(thing.group),
                     json_quote(thing.resource), names, go_list(verbs));
}

std::vector<Thing> things_of(const Rule& rule) {
  const std::vector<std::string> any_name = {""};
  const std::vector<std::string>& names = rule.names.empty() ? any_name : rule.names;
  std::vector<Thing> things;
  if (rule.verbs.empty()) return things;  // grants nothing, and counts for nothing
  for (const std::string& group : rule.groups)
    for (const std::string& resource : rule.resources)
      for (const std::string& name : names)
        things.push_back({.group = group, .resource = resource, .name = name});
  for (const std::string& url : rule.urls) things.push_back({.url = url});
  return things;
}

std::size_t combinations(const Rule& rule) {
  // Each factor is bounded by the size of a request, and so far from overflowing.
  const std::size_t names = std::max<std::size_t>(rule.names.size(), 1);
  const std::size_t things =
      std::min<std::size_t>(rule.groups.size() * rule.resources.size(), kMostCombinations + 1);
  return (things * names + rule.urls.size()) * rule.verbs.size();
}

// What of `granted` no single rule of `owned` covers, as lines for people.
std::set<std::string> missing_rights(const std::vector<const Rule*>& owned,
                                     const std::vector<Rule>& granted) {
  std::set<std::string> lines;
  for (const Rule& rule : granted) {
    for (const Thing& thing : things_of(rule)) {
      std::vector<std::string> verbs = rule.verbs;
      std::erase_if(verbs, [&](const std::string& verb) {
        return std::ranges::any_of(owned,
                                   [&](const Rule* own) { return covers(*own, verb, thing); });
      });
      if (!verbs.empty()) lines.insert(describe(thing, verbs));
      if (lines.size() >= kMostLines) return lines;
    }
  }
  return lines;
}

void check_granted(const User& user, const std::vector<Rule>& granted, const Target& target,
                   const Rules& rules) {
  std::size_t total = 0;
  for (const Rule& rule : granted) total += combinations(rule);
  if (total > kMostCombinations) {
    target.refuse(
        fmt::format("more than {} combinations of verbs and resources; only a user who "
                    "may escalate can grant so many",
                    kMostCombinations));
  }
  const auto missing = missing_rights(rules.of(user, target.ns), granted);
  if (missing.empty()) return;
  target.refuse(
      fmt::format("user {} (groups={}) is attempting to grant RBAC permissions not currently "
                  "held:\n{}",
                  json_quote(user.name), go_list(user.groups), fmt::join(missing, "\n")));
}

bool is_allowed(const User& user, std::string_view verb, const Target& on, const Rules& rules) {
  return rules
      .decide({.user = user,
               .verb = std::string(verb),
               .group = std::string(kRbacGroup),
               .version = "*",
               .resource = on.resource,
               .ns = on.ns,
               .name = on.name})
      .allowed;
}

bool gathers_others(const Json& role) {
  const JsonArray* selectors = model::array_at(role, {"aggregationRule", "clusterRoleSelectors"});
  return selectors != nullptr && !selectors->empty();
}

void check_role(const User& user, const Json& role, const Json* old, const Target& target,
                const Rules& rules) {
  Target escalated = target;
  if (old == nullptr) escalated.name.clear();  // as for a create, whose path has no name
  if (is_allowed(user, "escalate", escalated, rules)) return;
  check_granted(user, parse_rules(role), target, rules);
  if (!gathers_others(role) && (old == nullptr || !gathers_others(*old))) return;
  const std::vector<Rule> everything = {{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}},
                                        {.verbs = {"*"}, .urls = {"*"}}};
  if (!missing_rights(rules.of(user, {}), everything).empty())
    target.refuse("must have cluster-admin privileges to use the aggregationRule");
}

void check_binding(const User& user, const Json& binding, const Target& target,
                   const Rules& rules) {
  const bool to_role = text_at(binding, {"roleRef", "kind"}) == "Role";
  const Target role{.resource = to_role ? "roles" : "clusterroles",
                    .ns = target.ns,
                    .name = std::string(text_at(binding, {"roleRef", "name"}))};
  if (is_allowed(user, "bind", role, rules)) return;
  const auto* granted = rules.find_role(to_role ? target.ns : std::string(), role.name);
  if (granted == nullptr)
    model::throw_not_found({std::string(kRbacGroup), role.resource}, role.name);
  check_granted(user, *granted, target, rules);
}

// Garbage collection changes these, and may not be stopped by what it cleans up.
bool differs_in_owners_only(Json next, Json old) {
  for (const std::string_view member :
       {"ownerReferences", "finalizers", "managedFields", "resourceVersion"}) {
    model::erase_at(next, {"metadata", member});
    model::erase_at(old, {"metadata", member});
  }
  return model::is_same(next, old);
}

}  // namespace

void check_escalation(const User& user, const Json& object, const Json* old, const Rules& rules) {
  const std::string_view kind = text_at(object, {"kind"});
  const bool is_role = kind == "Role" || kind == "ClusterRole";
  const bool is_binding = kind == "RoleBinding" || kind == "ClusterRoleBinding";
  if ((!is_role && !is_binding) || user.is_in(kMasters)) return;
  if (old != nullptr && differs_in_owners_only(object, *old)) return;
  Target target{.name = std::string(text_at(object, {"metadata", "name"}))};
  target.resource = kind == "Role"          ? "roles"
                    : kind == "ClusterRole" ? "clusterroles"
                    : kind == "RoleBinding" ? "rolebindings"
                                            : "clusterrolebindings";
  if (!kind.starts_with("Cluster")) {
    target.ns = text_at(object, {"metadata", "namespace"});
    // Or a Role would be looked for among the ClusterRoles.
    if (target.ns.empty()) model::throw_bad_request("namespace is required");
  }
  if (is_role) {
    check_role(user, object, old, target, rules);
  } else {
    check_binding(user, object, target, rules);
  }
}

}  // namespace hearth::access
