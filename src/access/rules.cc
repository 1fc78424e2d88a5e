#include "access/rules.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using model::array_at;
using model::text_at;

enum class SubjectKind : char { user = 'u', group = 'g' };

// Namespaces have no NUL, so that no name can be taken for another's.
std::string key_of(std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + name.size() + 1);
  return key.append(ns).append(1, '\0').append(name);
}

std::string subject_key(std::string_view ns, SubjectKind kind, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + name.size() + 2);
  return key.append(ns).append(1, '\0').append(1, static_cast<char>(kind)).append(name);
}

std::vector<std::string> texts_at(const Json& json, std::string_view member) {
  std::vector<std::string> texts;
  if (const JsonArray* array = array_at(json, {member})) {
    for (const Json& one : *array)
      if (one.is_string()) texts.emplace_back(one.get_string());
  }
  return texts;
}

bool is_one_of(std::string_view text, const JsonArray* values) {
  return values != nullptr && std::ranges::any_of(*values, [&](const Json& value) {
           return value.is_string() && std::string_view(value.get_string()) == text;
         });
}

// One line of a label selector's matchExpressions.
bool holds(const Json& expression, const Json& labels) {
  const std::string_view operation = text_at(expression, {"operator"});
  const Json* label = model::find(labels, {text_at(expression, {"key"})});
  const bool present = label != nullptr && label->is_string();
  if (operation == "Exists") return present;
  if (operation == "DoesNotExist") return !present;
  const bool listed = present && is_one_of(label->get_string(), array_at(expression, {"values"}));
  if (operation == "In") return listed;
  return operation == "NotIn" && !listed;
}

bool selects(const Json& selector, const Json& role) {
  const Json* found = model::find(role, {"metadata", "labels"});
  static const Json kNone = JsonObject();
  const Json& labels = found == nullptr ? kNone : *found;
  if (const JsonObject* wanted = model::object_at(selector, {"matchLabels"})) {
    for (const auto& [key, value] : *wanted) {
      if (!value.is_string() || text_at(labels, {key}) != std::string_view(value.get_string()) ||
          model::find(labels, {key}) == nullptr)
        return false;
    }
  }
  const JsonArray* expressions = array_at(selector, {"matchExpressions"});
  return expressions == nullptr || std::ranges::all_of(*expressions, [&](const Json& expression) {
           return holds(expression, labels);
         });
}

const JsonArray* aggregation_of(const Json& role) {
  return array_at(role, {"aggregationRule", "clusterRoleSelectors"});
}

// The rules of a role and, if it gathers others', theirs instead of its own. `seen` ends circles.
void gather(const Json& role, const std::vector<const Json*>& all, std::set<const Json*>& seen,
            std::vector<Rule>& rules) {
  if (!seen.insert(&role).second) return;
  const JsonArray* selectors = aggregation_of(role);
  if (selectors == nullptr) {
    for (Rule& rule : parse_rules(role)) rules.push_back(std::move(rule));
    return;
  }
  for (const Json* other : all) {
    const bool chosen = std::ranges::any_of(
        *selectors, [&](const Json& selector) { return selects(selector, *other); });
    if (chosen) gather(*other, all, seen, rules);
  }
}

struct Subject {
  SubjectKind kind;
  std::string name;
  std::string description;
};

// Nothing for kinds that are unknown and accounts without a namespace.
std::optional<Subject> parse_subject(const Json& json, std::string_view binding_ns) {
  const std::string_view kind = text_at(json, {"kind"});
  const std::string_view name = text_at(json, {"name"});
  if (name.empty()) return std::nullopt;
  if (kind == "User" || kind == "Group") {
    return Subject{kind == "User" ? SubjectKind::user : SubjectKind::group, std::string(name),
                   fmt::format("{} {}", kind, json_quote(name))};
  }
  if (kind != "ServiceAccount") return std::nullopt;
  std::string_view ns = text_at(json, {"namespace"});
  if (ns.empty()) ns = binding_ns;
  std::string user = account_user_name(ns, name);
  if (!parse_account_name(user)) return std::nullopt;
  return Subject{SubjectKind::user, std::move(user),
                 fmt::format("ServiceAccount {}", json_quote(fmt::format("{}/{}", name, ns)))};
}

bool matches_resource(const Rule& rule, const Attributes& wanted) {
  if (has_word(rule.resources, "*")) return true;
  if (wanted.subresource.empty()) return has_word(rule.resources, wanted.resource);
  return has_word(rule.resources, wanted.resource + "/" + wanted.subresource) ||
         has_word(rule.resources, "*/" + wanted.subresource);
}

// As a real server does: messages end up in pages of dashboards.
std::string without_markup(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string denial(const Attributes& wanted) {
  const std::string user = json_quote(wanted.user.name);
  if (!wanted.is_resource)
    return fmt::format("User {} cannot {} path {}", user, wanted.verb, json_quote(wanted.path));
  std::string resource = wanted.resource;
  if (!wanted.subresource.empty()) resource.append("/").append(wanted.subresource);
  const std::string what = fmt::format("User {} cannot {} resource {} in API group {}", user,
                                       wanted.verb, json_quote(resource), json_quote(wanted.group));
  if (wanted.ns.empty()) return what + " at the cluster scope";
  return fmt::format("{} in the namespace {}", what, json_quote(wanted.ns));
}

}  // namespace

void throw_denied(const Attributes& attributes, const Decision& decision) {
  std::string why = without_markup(denial(attributes));
  if (!decision.reason.empty()) why.append(": ").append(decision.reason);
  if (attributes.is_resource)
    model::throw_forbidden({attributes.group, attributes.resource}, attributes.name, why);
  throw model::StatusError(
      {.code = 403, .reason = "Forbidden", .message = "forbidden: " + why, .has_details = true});
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool covers_url(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

bool Rule::allows(const Attributes& wanted) const {
  if (!has_word(verbs, "*") && !has_word(verbs, wanted.verb)) return false;
  if (!wanted.is_resource) {
    return std::ranges::any_of(
        urls, [&](const std::string& url) { return covers_url(url, wanted.path); });
  }
  return (has_word(groups, "*") || has_word(groups, wanted.group)) &&
         matches_resource(*this, wanted) && (names.empty() || has_word(names, wanted.name));
}

std::vector<Rule> parse_rules(const Json& role) {
  std::vector<Rule> rules;
  const JsonArray* listed = array_at(role, {"rules"});
  for (std::size_t i = 0; listed != nullptr && i < listed->size(); ++i) {
    const Json& rule = (*listed)[i];
    rules.push_back({.verbs = texts_at(rule, "verbs"),
                     .groups = texts_at(rule, "apiGroups"),
                     .resources = texts_at(rule, "resources"),
                     .names = texts_at(rule, "resourceNames"),
                     .urls = texts_at(rule, "nonResourceURLs")});
  }
  return rules;
}

Json to_json(const Rule& rule) {
  JsonObject json;
  const auto add = [&](std::string_view member, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    JsonArray array;
    for (const std::string& text : texts) array.emplace_back(text);
    json[member] = std::move(array);
  };
  add("verbs", rule.verbs);
  add("apiGroups", rule.groups);
  add("resources", rule.resources);
  add("resourceNames", rule.names);
  add("nonResourceURLs", rule.urls);
  return json;
}

RbacObjects sort_by_kind(const std::vector<Json>& objects) {
  RbacObjects sorted;
  for (const Json& object : objects) {
    const std::string_view kind = text_at(object, {"kind"});
    if (kind == "Role") sorted.roles.push_back(&object);
    if (kind == "ClusterRole") sorted.cluster_roles.push_back(&object);
    if (kind == "RoleBinding") sorted.role_bindings.push_back(&object);
    if (kind == "ClusterRoleBinding") sorted.cluster_role_bindings.push_back(&object);
  }
  return sorted;
}

Rules::Rules(const RbacObjects& objects) {
  add_roles(objects);
  for (const Json* binding : objects.cluster_role_bindings) add_binding(*binding, {});
  for (const Json* binding : objects.role_bindings) {
    // Without a namespace it would be one for the whole cluster.
    const std::string_view ns = text_at(*binding, {"metadata", "namespace"});
    if (!ns.empty()) add_binding(*binding, ns);
  }
}

void Rules::add_roles(const RbacObjects& objects) {
  for (const Json* role : objects.roles) {
    const std::string_view ns = text_at(*role, {"metadata", "namespace"});
    if (ns.empty()) continue;
    roles_[key_of(ns, text_at(*role, {"metadata", "name"}))] =
        std::make_shared<const std::vector<Rule>>(parse_rules(*role));
  }
  for (const Json* role : objects.cluster_roles) {
    std::vector<Rule> rules;
    std::set<const Json*> seen;
    gather(*role, objects.cluster_roles, seen, rules);
    roles_[key_of({}, text_at(*role, {"metadata", "name"}))] =
        std::make_shared<const std::vector<Rule>>(std::move(rules));
  }
}

void Rules::add_binding(const Json& binding, std::string_view ns) {
  const std::string_view kind = text_at(binding, {"roleRef", "kind"});
  const std::string_view role = text_at(binding, {"roleRef", "name"});
  if (kind != "ClusterRole" && (kind != "Role" || ns.empty())) return;
  const auto found = roles_.find(key_of(kind == "Role" ? ns : std::string_view(), role));
  const RuleList rules = found == roles_.end() ? nullptr : found->second;

  std::string name(text_at(binding, {"metadata", "name"}));
  if (!ns.empty()) name.append("/").append(ns);
  const std::string source =
      rules == nullptr
          ? fmt::format("{}.{} {} not found", kind == "Role" ? "role" : "clusterrole", kRbacGroup,
                        json_quote(role))
          : fmt::format("{} {} of {} {}", ns.empty() ? "ClusterRoleBinding" : "RoleBinding",
                        json_quote(name), kind, json_quote(role));
  const JsonArray* subjects = array_at(binding, {"subjects"});
  for (std::size_t i = 0; subjects != nullptr && i < subjects->size(); ++i) {
    const auto subject = parse_subject((*subjects)[i], ns);
    if (!subject) continue;
    std::string told = rules == nullptr ? source : source + " to " + subject->description;
    granted_[subject_key(ns, subject->kind, subject->name)].push_back({rules, std::move(told)});
  }
}

// Calls visitor(grant) for all that is granted to the user until it returns true.
template <typename Visitor>
bool Rules::visit(const User& user, std::string_view ns, const Visitor& visitor) const {
  const auto visit_subject = [&](std::string_view scope, SubjectKind kind, std::string_view name) {
    const auto found = granted_.find(subject_key(scope, kind, name));
    return found != granted_.end() && std::ranges::any_of(found->second, visitor);
  };
  const auto visit_scope = [&](std::string_view scope) {
    if (visit_subject(scope, SubjectKind::user, user.name)) return true;
    return std::ranges::any_of(user.groups, [&](const std::string& group) {
      return visit_subject(scope, SubjectKind::group, group);
    });
  };
  return visit_scope({}) || (!ns.empty() && visit_scope(ns));
}

Decision Rules::decide(const Attributes& wanted) const {
  if (wanted.user.is_in(kMasters)) return {.allowed = true};
  Decision decision;
  std::vector<std::string> missing;
  const std::string_view ns = wanted.is_resource ? std::string_view(wanted.ns) : "";
  decision.allowed = visit(wanted.user, ns, [&](const Grant& grant) {
    if (grant.rules == nullptr) {
      missing.push_back(grant.source);
      return false;
    }
    const bool allowed =
        std::ranges::any_of(*grant.rules, [&](const Rule& rule) { return rule.allows(wanted); });
    if (allowed) decision.reason = "RBAC: allowed by " + grant.source;
    return allowed;
  });
  if (!decision.allowed && missing.size() == 1) decision.reason = "RBAC: " + missing.front();
  if (!decision.allowed && missing.size() > 1)
    decision.reason = fmt::format("RBAC: [{}]", fmt::join(missing, ", "));
  return decision;
}

std::vector<const Rule*> Rules::of(const User& user, std::string_view ns) const {
  std::vector<const Rule*> rules;
  visit(user, ns, [&](const Grant& grant) {
    if (grant.rules != nullptr)
      for (const Rule& rule : *grant.rules) rules.push_back(&rule);
    return false;
  });
  return rules;
}

const std::vector<Rule>* Rules::find_role(std::string_view ns, std::string_view name) const {
  const auto found = roles_.find(key_of(ns, name));
  return found == roles_.end() ? nullptr : found->second.get();
}

}  // namespace hearth::access
