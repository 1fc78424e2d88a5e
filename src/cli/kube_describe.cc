// `hearth describe`: an object, what belongs to it, and what happened, on one page.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/time_text.h"
#include "cli/kube_text.h"
#include "cli/values.h"
#include "client/http_client.h"
#include "client/kinds.h"
#include "model/age.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"
#include "model/selector.h"
#include "model/template_ref.h"
#include "model/yaml_text.h"

namespace hearth::cli {
namespace {

using model::array_at;
using model::find;
using model::Json;
using model::JsonArray;
using model::number_at;
using model::text_at;

// A pool of thousands is a number, not a page.
constexpr std::size_t kMostRelated = 50;
constexpr std::size_t kMostEvents = 200;

std::string text_of(std::string_view text) {
  return std::string(text);
}

// Lines of names and values; empty values are left out.
class Fields {
 public:
  void add(std::string_view name, std::string value) {
    if (!value.empty()) rows_.push_back({text_of(name) + ":", std::move(value)});
  }
  // The first behind the name, the others below it.
  void add(std::string_view name, const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      rows_.push_back({i == 0 ? text_of(name) + ":" : "", values[i]});
  }
  std::string text() const {
    return rows_.empty() ? "" : format_table(rows_.front(), {rows_.begin() + 1, rows_.end()});
  }

 private:
  std::vector<Row> rows_;
};

// The texts in an array, or those that its objects have as `member`.
std::vector<std::string> texts_of(const JsonArray* array, std::string_view member = {}) {
  std::vector<std::string> texts;
  if (array == nullptr) return texts;
  for (const Json& value : *array)
    if (const Json* text = member.empty() ? &value : find(value, {member});
        text && text->is_string())
      texts.emplace_back(text->as_string());
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string amounts_text(const Json& container, std::string_view of) {
  std::vector<std::string> amounts;
  for (const std::string_view what : {"cpu", "memory"}) {
    const Json* amount = find(container, {"resources", of, what});
    if (amount == nullptr) continue;
    const std::string text =
        amount->is_string() ? std::string(amount->as_string()) : model::to_text(*amount);
    amounts.push_back(fmt::format("{} {}", what, text));
  }
  return joined(amounts);
}

std::string container_text(const Json& container) {
  std::string text =
      fmt::format("{}: {}", text_at(container, {"name"}), text_at(container, {"image"}));
  const std::string limits = amounts_text(container, "limits");
  const std::string requests = amounts_text(container, "requests");
  if (!requests.empty() && requests != limits) text += fmt::format("; asks for {}", requests);
  if (!limits.empty()) text += fmt::format("; gets at most {}", limits);
  std::vector<std::string> words;
  for (const std::string_view of : {"command", "args"})
    for (const std::string& word : texts_of(array_at(container, {of})))
      words.push_back(shell_quote(word));
  if (!words.empty()) text += fmt::format("; runs {}", fmt::join(words, " "));
  return text;
}

std::vector<std::string> containers_text(const JsonArray* containers) {
  std::vector<std::string> texts;
  if (containers != nullptr)
    for (const Json& container : *containers) texts.push_back(container_text(container));
  return texts;
}

std::string moment_text(std::string_view time, Time now) {
  const auto moment = parse_rfc3339(time);
  if (!moment) return text_of(time);
  return *moment > now ? fmt::format("{} (in {})", time, format_age(*moment - now))
                       : fmt::format("{} ({} ago)", time, format_age(now - *moment));
}

void add_sandbox(Fields& fields, const Json& object, Time now) {
  fields.add("Mode", text_of(text_at(object, {"spec", "operatingMode"})));
  fields.add("Containers",
             containers_text(array_at(object, {"spec", "podTemplate", "spec", "containers"})));
  fields.add("Volumes",
             joined(texts_of(array_at(object, {"spec", "volumeClaimTemplates"}), "name")));
  const std::string_view end = text_at(object, {"spec", "shutdownTime"});
  if (!end.empty()) fields.add("Ends", moment_text(end, now));
  fields.add("Launch", text_of(model::label_of(object, model::kLaunchTypeLabel)));
  fields.add("Address", joined(texts_of(array_at(object, {"status", "podIPs"}))));
  fields.add("DNS name", text_of(text_at(object, {"status", "serviceFQDN"})));
  fields.add("Node", text_of(text_at(object, {"status", "nodeName"})));
}

void add_claim(Fields& fields, const Json& object, Time now) {
  fields.add("Pool", text_of(text_at(object, {"spec", "warmPoolRef", "name"})));
  fields.add("Template", text_of(text_at(object, {"spec", "sandboxTemplateRef", "name"})));
  fields.add("When empty", text_of(text_at(object, {"spec", "whenEmpty"})));
  // Values may be secrets.
  fields.add("Environment", joined(texts_of(array_at(object, {"spec", "env"}), "name")));
  fields.add("Files", joined(texts_of(array_at(object, {"spec", "files"}), "path")));
  const std::string_view end = text_at(object, {"spec", "lifecycle", "shutdownTime"});
  if (!end.empty()) fields.add("Ends", moment_text(end, now));
  if (const auto lease = number_at(object, {"spec", "lifecycle", "leaseDurationSeconds"}))
    fields.add("Lease", format_age(std::chrono::seconds(*lease)));
  fields.add("Sandbox", text_of(text_at(object, {"status", "sandbox", "name"})));
  fields.add("Address", joined(texts_of(array_at(object, {"status", "sandbox", "podIPs"}))));
}

std::string members_text(const Json& pool) {
  return fmt::format("{} ready, {} there, {} desired",
                     number_at(pool, {"status", "readyReplicas"}).value_or(0),
                     number_at(pool, {"status", "replicas"}).value_or(0),
                     number_at(pool, {"spec", "replicas"}).value_or(1));
}

void add_pool(Fields& fields, const Json& object, Time /*now*/) {
  fields.add("Template", text_of(text_at(object, {"spec", "sandboxTemplateRef", "name"})));
  fields.add("Members", members_text(object));
  fields.add("Update", text_of(text_at(object, {"spec", "updateStrategy", "type"})));
}

void add_template(Fields& fields, const Json& object, Time /*now*/) {
  fields.add("Containers",
             containers_text(array_at(object, {"spec", "podTemplate", "spec", "containers"})));
  fields.add("Volumes",
             joined(texts_of(array_at(object, {"spec", "volumeClaimTemplates"}), "name")));
  fields.add("Service", model::is_true_at(object, {"spec", "service"}) ? "yes" : "no");
  fields.add("Network", text_of(text_at(object, {"spec", "networkPolicyManagement"})));
  fields.add("Claims' env", text_of(text_at(object, {"spec", "envVarsInjectionPolicy"})));
}

void add_pod(Fields& fields, const Json& object, Time /*now*/) {
  fields.add("Phase", text_of(text_at(object, {"status", "phase"})));
  fields.add("Containers", containers_text(array_at(object, {"spec", "containers"})));
  fields.add("Address", joined(texts_of(array_at(object, {"status", "podIPs"}), "ip")));
  fields.add("Node", text_of(text_at(object, {"spec", "nodeName"})));
}

// Null for a kind whose spec is shown as it is.
void (*find_own_fields(std::string_view kind))(Fields&, const Json&, Time) {
  if (kind == "Sandbox") return add_sandbox;
  if (kind == "SandboxClaim") return add_claim;
  if (kind == "SandboxWarmPool") return add_pool;
  if (kind == "SandboxTemplate") return add_template;
  return kind == "Pod" ? add_pod : nullptr;
}

std::string head_text(const ApiKind& kind, const Json& object, Time now) {
  Fields fields;
  fields.add("Name", text_of(model::name_of(object)));
  fields.add("Namespace", text_of(model::namespace_of(object)));
  fields.add("Kind", fmt::format("{} ({})", kind.kind, kind.resource.api_version()));
  fields.add("Age", model::age_since(text_at(object, {"metadata", "creationTimestamp"}), now));
  if (model::is_deleting(object))
    fields.add("Deleted", moment_text(text_at(object, {"metadata", "deletionTimestamp"}), now));
  std::vector<std::string> labels;
  for (const auto& [name, value] : model::labels_of(object)) labels.push_back(name + "=" + value);
  fields.add("Labels", labels);
  if (const auto owner = model::controller_of(object))
    fields.add("Owner", owner->kind + "/" + owner->name);
  if (auto* const add_own = find_own_fields(kind.kind)) add_own(fields, object, now);
  return fields.text();
}

std::string spec_text(const Json& object) {
  const Json* spec = find(object, {"spec"});
  if (spec == nullptr) return {};
  std::string text = "\nSpec:\n  ";
  for (const char c : model::to_yaml(*spec))
    text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return text.substr(0, text.size() - 2);
}

std::string conditions_text(const Json& object, Time now) {
  const JsonArray* conditions = array_at(object, {"status", "conditions"});
  if (conditions == nullptr || conditions->empty()) return {};
  std::vector<Row> rows;
  for (const Json& condition : *conditions)
    rows.push_back({text_of(text_at(condition, {"type"})), text_of(text_at(condition, {"status"})),
                    text_of(text_at(condition, {"reason"})),
                    model::age_since(text_at(condition, {"lastTransitionTime"}), now),
                    text_of(text_at(condition, {"message"}))});
  return "\n" + format_table({"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows);
}

struct Related {
  Json object;
  bool is_child = true;  // its events are part of the story
};

// Collects what belongs to an object. What may not be read, or is gone, is left out.
class Relatives {
 public:
  explicit Relatives(client::Client& api) : api_(api) {}

  std::vector<Related> of(const ApiKind& kind, const Json& object) {
    ns_ = text_of(model::namespace_of(object));
    if (kind.kind == "Sandbox") {
      add_owner(object);
      add_children_of_sandbox(object);
    } else if (kind.kind == "SandboxClaim") {
      add(client::kSandboxWarmPools, text_at(object, {"spec", "warmPoolRef", "name"}), false);
      if (const Json* sandbox =
              add(client::kSandboxes, text_at(object, {"status", "sandbox", "name"}), true))
        add_children_of_sandbox(Json(*sandbox));
    } else if (kind.kind == "SandboxWarmPool") {
      add_template_of(object);
      add_controlled(
          client::kSandboxes, object,
          fmt::format("{}={}", model::kPoolLabel, model::name_hash(model::name_of(object))));
    } else if (kind.kind == "SandboxTemplate") {
      add_pools_of(model::name_of(object));
    } else {
      add_owner(object);
    }
    return std::move(found_);
  }

 private:
  const Json* add(const client::ResourceId& resource, std::string_view name, bool is_child) {
    if (name.empty()) return nullptr;
    auto object = attempt([&] { return api_.find(resource, ns_, name); });
    if (!object) return nullptr;
    found_.push_back({.object = std::move(*object), .is_child = is_child});
    return &found_.back().object;
  }

  // Perhaps of another namespace.
  void add_template_of(const Json& pool) {
    const model::Key key = model::template_key_of(pool);
    auto object = attempt([&] { return api_.find(client::kSandboxTemplates, key.ns, key.name); });
    if (object) found_.push_back({.object = std::move(*object), .is_child = false});
  }

  void add_owner(const Json& object) {
    const auto owner = model::controller_of(object);
    if (!owner) return;
    if (owner->kind == "SandboxClaim") add(client::kSandboxClaims, owner->name, false);
    if (owner->kind == "SandboxWarmPool") add(client::kSandboxWarmPools, owner->name, false);
    if (owner->kind == "Sandbox") add(client::kSandboxes, owner->name, false);
  }

  void add_children_of_sandbox(const Json& sandbox) {
    const std::string_view pod = model::annotation_of(sandbox, model::kPodNameAnnotation);
    add(client::kPods, pod.empty() ? model::name_of(sandbox) : pod, true);
    add(client::kServices, text_at(sandbox, {"status", "service"}), true);
    if (array_at(sandbox, {"spec", "volumeClaimTemplates"}) != nullptr)
      add_controlled(client::kPersistentVolumeClaims, sandbox, {});
  }

  void add_controlled(const client::ResourceId& resource, const Json& owner,
                      const std::string& selector) {
    for (const Json& object : list(resource, selector))
      if (model::is_controlled_by(object, model::uid_of(owner))) found_.push_back({object});
  }

  void add_pools_of(std::string_view name) {
    for (const Json& pool : list(client::kSandboxWarmPools, {}))
      if (text_at(pool, {"spec", "sandboxTemplateRef", "name"}) == name)
        found_.push_back({.object = pool, .is_child = false});
  }

  std::vector<Json> list(const client::ResourceId& resource, const std::string& selector) {
    const client::ListOptions options{.ns = ns_, .label_selector = selector};
    auto list = attempt([&] { return std::optional(api_.list_all(resource, options)); });
    return list ? std::move(list->items) : std::vector<Json>();
  }

  template <typename F>
  auto attempt(const F& ask) -> decltype(ask()) {
    try {
      return ask();
    } catch (const model::StatusError& error) {
      if (error.status().code != 403 && error.status().code != 404) throw;
      return std::nullopt;
    }
  }

  client::Client& api_;
  std::string ns_;
  std::vector<Related> found_;
};

std::string state_text(const Json& object) {
  const std::string_view kind = text_at(object, {"kind"});
  if (model::is_deleting(object)) return "ending";
  if (kind == "SandboxWarmPool") return members_text(object);
  if (kind == "Pod" && !model::is_condition_true(object, "Ready"))
    return text_of(text_at(object, {"status", "phase"}));
  if (kind == "Service") return text_of(text_at(object, {"spec", "clusterIP"}));
  const Json* ready = model::find_condition(object, "Ready");
  if (ready == nullptr) return text_of(text_at(object, {"status", "phase"}));
  if (text_at(*ready, {"status"}) == "True") return "Ready";
  return fmt::format("not ready: {}", text_at(*ready, {"reason"}));
}

std::string related_text(const std::vector<Related>& related, Time now) {
  if (related.empty()) return {};
  std::vector<Row> rows;
  for (const Related& one : related) {
    if (rows.size() == kMostRelated) break;
    rows.push_back({text_of(text_at(one.object, {"kind"})), text_of(model::name_of(one.object)),
                    model::age_since(text_at(one.object, {"metadata", "creationTimestamp"}), now),
                    state_text(one.object)});
  }
  std::string text = "\n" + format_table({"RELATED", "NAME", "AGE", "STATE"}, rows);
  if (related.size() > kMostRelated)
    text += fmt::format("and {} more\n", related.size() - kMostRelated);
  return text;
}

// The last time that it happened: old and new writers of events use different members.
Time moment_of(const Json& event) {
  Time last{};
  const auto look = [&](model::Path path) {
    if (const auto time = parse_rfc3339(text_at(event, path))) last = std::max(last, *time);
  };
  look({"series", "lastObservedTime"});
  look({"deprecatedLastTimestamp"});
  look({"eventTime"});
  if (last == Time{}) look({"metadata", "creationTimestamp"});
  return last;
}

std::string events_text(client::Client& api, const Json& object,
                        const std::vector<Related>& related, Time now) {
  std::set<std::string, std::less<>> uids = {text_of(model::uid_of(object))};
  for (const Related& one : related)
    if (one.is_child) uids.emplace(model::uid_of(one.object));
  std::multimap<Time, Json> events;  // those of one moment in the order of their names
  for (const Json& event :
       api.list_all(client::kEvents, {.ns = text_of(model::namespace_of(object))}).items)
    if (uids.contains(text_at(event, {"regarding", "uid"})))
      events.emplace(moment_of(event), event);
  if (events.empty()) return "\nNo events.\n";
  while (events.size() > kMostEvents) events.erase(events.begin());
  std::vector<Row> rows;
  for (const auto& [time, event] : events) {
    const std::int64_t count = number_at(event, {"series", "count"})
                                   .value_or(number_at(event, {"deprecatedCount"}).value_or(1));
    rows.push_back(
        {model::age_text(now - time), text_at(event, {"type"}) == "Warning" ? "!" : "",
         fmt::format("{}/{}", text_at(event, {"regarding", "kind"}),
                     text_at(event, {"regarding", "name"})),
         text_of(text_at(event, {"reason"})),
         text_of(text_at(event, {"note"})) + (count > 1 ? fmt::format(" ({} times)", count) : "")});
  }
  return "\n" + format_table({"EVENTS", "", "ABOUT", "REASON", "WHAT HAPPENED"}, rows);
}

}  // namespace

std::string describe(client::Client& api, const ApiKind& kind, const Json& object, Time now) {
  std::string text = head_text(kind, object, now);
  if (find_own_fields(kind.kind) == nullptr) text += spec_text(object);
  text += conditions_text(object, now);
  const std::vector<Related> related = Relatives(api).of(kind, object);
  text += related_text(related, now);
  return text + events_text(api, object, related, now);
}

int describe_object(const DescribeOptions& options) {
  Cluster cluster(options.cluster);
  const ApiKind kind = find_kind(options.kind, cluster);
  const Json object = cluster.api->get(
      kind.resource, kind.resource.namespaced ? cluster.ns : std::string(), options.name);
  std::fputs(describe(*cluster.api, kind, object, SystemClock().now()).c_str(), stdout);
  return 0;
}

}  // namespace hearth::cli
