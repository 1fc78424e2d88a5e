#include "apiserver/crds.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/kinds_internal.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

using Names = std::set<std::string, std::less<>>;

struct UsedNames {
  Names resources;  // plurals, singulars, short names
  Names kinds;      // kinds and kinds of lists
};

void add_short_names(Names& names, const JsonObject& from) {
  if (const JsonArray* list = array_in(from, "shortNames"))
    for (const Json& name : *list)
      if (const auto* text = name.if_string()) names.emplace(text->data(), text->size());
}

UsedNames used_names(std::string_view group, const std::vector<Json>& others) {
  UsedNames used;
  for (const schema::BuiltinKind& kind : schema::builtin_kinds()) {
    if (kind.group != group) continue;
    used.resources.insert({kind.plural, kind.singular});
    used.resources.insert(kind.short_names.begin(), kind.short_names.end());
    used.kinds.insert({kind.kind, kind.kind + "List"});
  }
  for (const Json& other : others) {
    if (model::text_at(other, {"spec", "group"}) != group) continue;
    const JsonObject& names = as_object(model::find(other, {"status", "acceptedNames"}));
    used.resources.emplace(text_in(names, "plural"));
    used.resources.emplace(text_in(names, "singular"));
    add_short_names(used.resources, names);
    used.kinds.emplace(text_in(names, "kind"));
    used.kinds.emplace(text_in(names, "listKind"));
  }
  return used;
}

struct Condition {
  std::string_view type;
  bool is_true = false;
  std::string_view reason;
  std::string message;
};

// The names that a CRD gets, and the condition that says whether it got all.
class Naming {
 public:
  Naming(const JsonObject& wanted, const JsonObject& accepted, const UsedNames& used)
      : wanted_(wanted), accepted_(accepted) {
    take("plural", used.resources, "PluralConflict");
    take("singular", used.resources, "SingularConflict");
    take_short_names(used.resources);
    take("kind", used.kinds, "KindConflict");
    take("listKind", used.kinds, "ListKindConflict");
    copy("categories");
  }

  const JsonObject& accepted() const { return accepted_; }
  const Condition& condition() const { return condition_; }

 private:
  void take(std::string_view name, const Names& used, std::string_view reason) {
    const std::string_view value = text_in(wanted_, name);
    if (value != text_in(accepted_, name) && used.contains(value))
      refuse(reason, in_use(value));
    else
      copy(name);
  }
  void take_short_names(const Names& used) {
    Names mine;
    add_short_names(mine, accepted_);
    Names asked;
    add_short_names(asked, wanted_);
    std::vector<std::string> conflicts;
    for (const std::string& name : asked)
      if (!mine.contains(name) && used.contains(name)) conflicts.push_back(in_use(name));
    if (conflicts.empty())
      copy("shortNames");
    else if (conflicts.size() == 1)
      refuse("ShortNamesConflict", conflicts.front());
    else
      refuse("ShortNamesConflict", fmt::format("[{}]", fmt::join(conflicts, ", ")));
  }
  void copy(std::string_view name) {
    if (const Json* value = wanted_.if_contains(name))
      accepted_[name] = *value;
    else
      accepted_.erase(name);
  }
  void refuse(std::string_view reason, std::string message) {
    condition_ = {"NamesAccepted", false, reason, std::move(message)};
  }
  static std::string in_use(std::string_view name) {
    return fmt::format("{} is already in use", json_quote(name));
  }

  const JsonObject& wanted_;
  JsonObject accepted_;
  Condition condition_{"NamesAccepted", true, "NoConflicts", "no conflicts found"};
};

const JsonObject* find_condition(const Json& crd, std::string_view type) {
  if (const JsonArray* conditions = model::array_at(crd, {"status", "conditions"}))
    for (const Json& one : *conditions)
      if (text_in(as_object(one), "type") == type) return &one.get_object();
  return nullptr;
}

Json condition_json(const Condition& condition, const Json& crd, std::string_view now) {
  const std::string_view status = condition.is_true ? "True" : "False";
  const JsonObject* old = find_condition(crd, condition.type);
  const bool is_same = old && text_in(*old, "status") == status;
  return JsonObject{
      {"type", condition.type},
      {"status", status},
      {"lastTransitionTime", is_same ? text_in(*old, "lastTransitionTime") : now},
      {"reason", condition.reason},
      {"message", condition.message},
  };
}

// A CRD that was established stays so while another claims its new names.
Condition established(const Json& crd, const Condition& naming, std::string_view problem) {
  if (!problem.empty()) return {"Established", false, "NotServed", std::string(problem)};
  if (naming.is_true || is_established(crd))
    return {"Established", true, "InitialNamesAccepted", "the initial names have been accepted"};
  return {"Established", false, "NotAccepted", "not all names are accepted"};
}

JsonArray stored_versions(const Json& crd) {
  JsonArray versions;
  if (const JsonArray* known = model::array_at(crd, {"status", "storedVersions"}))
    versions = *known;
  const std::string_view current = storage_version(crd);
  const auto is_current = [&](const Json& one) {
    return one.is_string() && one.get_string() == current;
  };
  if (!current.empty() && std::none_of(versions.begin(), versions.end(), is_current))
    versions.emplace_back(current);
  return versions;
}

// "v2beta3" as something that can be compared; the best is the largest.
struct KubeVersion {
  int stage = -1;  // alpha, beta, or neither; -1: not one of these at all
  unsigned major = 0;
  unsigned minor = 0;

  auto operator<=>(const KubeVersion&) const = default;
};

bool read_number(std::string_view& text, unsigned& number) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

KubeVersion parse_version(std::string_view text) {
  constexpr std::string_view kStages[] = {"alpha", "beta"};
  KubeVersion version;
  if (!text.starts_with('v')) return {};
  text.remove_prefix(1);
  if (!read_number(text, version.major)) return {};
  if (text.empty()) {
    version.stage = 2;
    return version;
  }
  for (int stage = 0; stage < 2; ++stage) {
    if (!text.starts_with(kStages[stage])) continue;
    text.remove_prefix(kStages[stage].size());
    version.stage = stage;
    return read_number(text, version.minor) && text.empty() ? version : KubeVersion{};
  }
  return {};
}

}  // namespace

Json crd_status(const Json& crd, const std::vector<Json>& others, std::string_view now,
                std::string_view problem) {
  const Naming naming(as_object(model::find(crd, {"spec", "names"})),
                      as_object(model::find(crd, {"status", "acceptedNames"})),
                      used_names(model::text_at(crd, {"spec", "group"}), others));
  JsonArray conditions{
      condition_json(naming.condition(), crd, now),
      condition_json(established(crd, naming.condition(), problem), crd, now),
  };
  // Conditions that others wrote stay.
  if (const JsonArray* old = model::array_at(crd, {"status", "conditions"}))
    for (const Json& one : *old) {
      const std::string_view type = text_in(as_object(one), "type");
      if (type != "NamesAccepted" && type != "Established") conditions.push_back(one);
    }
  return JsonObject{{"conditions", std::move(conditions)},
                    {"acceptedNames", naming.accepted()},
                    {"storedVersions", stored_versions(crd)}};
}

bool is_established(const Json& crd) {
  const JsonObject* condition = find_condition(crd, "Established");
  return condition && text_in(*condition, "status") == "True";
}

std::string_view storage_version(const Json& crd) {
  if (const JsonArray* versions = model::array_at(crd, {"spec", "versions"}))
    for (const Json& version : *versions)
      if (model::is_true_at(version, {"storage"})) return model::text_at(version, {"name"});
  return {};
}

bool is_preferred_version(std::string_view left, std::string_view right) {
  const KubeVersion first = parse_version(left);
  const KubeVersion second = parse_version(right);
  return first == second ? left < right : first > second;
}

std::string deprecation_warning(const Json& crd, std::string_view version) {
  const std::string_view group = model::text_at(crd, {"spec", "group"});
  const std::string_view kind = model::text_at(crd, {"spec", "names", "kind"});
  std::string_view better;
  if (const JsonArray* versions = model::array_at(crd, {"spec", "versions"}))
    for (const Json& one : *versions) {
      const std::string_view name = model::text_at(one, {"name"});
      if (model::is_true_at(one, {"served"}) && !model::is_true_at(one, {"deprecated"}) &&
          is_preferred_version(name, version) &&
          (better.empty() || is_preferred_version(name, better)))
        better = name;
    }
  std::string text = fmt::format("{}/{} {} is deprecated", group, version, kind);
  if (!better.empty()) text += fmt::format("; use {}/{} {}", group, better, kind);
  return text;
}

}  // namespace hearth::apiserver
