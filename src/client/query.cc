#include "client/query.h"

#include "base/error.h"
#include "http/target.h"
#include "model/read_json.h"

namespace hearth::client {
namespace {

void add(std::string& query, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  query.append(query.empty() ? "" : "&")
      .append(name)
      .append("=")
      .append(http::percent_encode(value));
}

}  // namespace

EventKind event_kind(std::string_view type) {
  if (type == "ADDED") return EventKind::added;
  if (type == "MODIFIED") return EventKind::modified;
  if (type == "DELETED") return EventKind::deleted;
  if (type == "BOOKMARK") return EventKind::bookmark;
  fail(Code::invalid, "a watch sent an event of type '{}'", type);
}

std::string query_of(const ListOptions& options) {
  std::string query;
  add(query, "labelSelector", options.label_selector);
  add(query, "fieldSelector", options.field_selector);
  if (options.limit > 0) add(query, "limit", std::to_string(options.limit));
  add(query, "continue", options.continue_token);
  add(query, "resourceVersion", options.resource_version);
  return query;
}

std::string query_of(const WriteOptions& options) {
  std::string query;
  add(query, "fieldManager", options.manager);
  if (options.dry_run) add(query, "dryRun", "All");
  return query;
}

std::string query_of(const PatchOptions& options, PatchKind kind) {
  std::string query =
      query_of(WriteOptions{.manager = options.manager, .dry_run = options.dry_run});
  if (kind == PatchKind::apply && options.force) add(query, "force", "true");
  return query;
}

std::string query_of(const WatchOptions& options) {
  std::string query = "watch=true";
  add(query, "labelSelector", options.label_selector);
  add(query, "fieldSelector", options.field_selector);
  add(query, "resourceVersion", options.resource_version);
  if (options.bookmarks) add(query, "allowWatchBookmarks", "true");
  if (options.initial_events) {
    add(query, "sendInitialEvents", "true");
    add(query, "resourceVersionMatch", "NotOlderThan");
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count();
  if (seconds > 0) add(query, "timeoutSeconds", std::to_string(seconds));
  return query;
}

std::string_view content_type_of(PatchKind kind) {
  switch (kind) {
    case PatchKind::json:
      return "application/json-patch+json";
    case PatchKind::merge:
      return "application/merge-patch+json";
    case PatchKind::strategic:
      return "application/strategic-merge-patch+json";
    case PatchKind::apply:
      return "application/apply-patch+yaml";
  }
  return "application/json";
}

Json body_of(const DeleteOptions& options) {
  Json body = model::JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  model::JsonObject& object = body.as_object();
  if (!options.propagation.empty()) object["propagationPolicy"] = options.propagation;
  if (options.grace_seconds) object["gracePeriodSeconds"] = *options.grace_seconds;
  if (!options.uid.empty()) model::make_object_at(body, {"preconditions"})["uid"] = options.uid;
  if (!options.resource_version.empty())
    model::make_object_at(body, {"preconditions"})["resourceVersion"] = options.resource_version;
  return body;
}

List list_from_json(const Json& json, const ResourceId& resource) {
  List list;
  list.resource_version = model::text_at(json, {"metadata", "resourceVersion"});
  list.continue_token = model::text_at(json, {"metadata", "continue"});
  std::string kind(model::text_at(json, {"kind"}));
  if (kind.ends_with("List")) kind.resize(kind.size() - 4);
  const model::JsonArray* items = model::array_at(json, {"items"});
  if (!items) return list;
  list.items.reserve(items->size());
  for (const Json& item : *items) {
    Json& kept = list.items.emplace_back(item);
    if (!kept.is_object() || kept.get_object().contains("kind")) continue;
    kept.get_object()["kind"] = kind;
    kept.get_object()["apiVersion"] = resource.api_version();
  }
  return list;
}

std::optional<Event> parse_event(std::string_view line) {
  Json json = model::read_json(line);
  const std::string type(model::text_at(json, {"type"}));
  Json* object = model::find(json, {"object"});
  if (!object) fail(Code::invalid, "a watch sent a line without an object");
  if (type != "ERROR")
    return Event{event_kind(type), std::make_shared<const Json>(std::move(*object))};
  model::Status status = model::status_from_json(*object, 500);
  if (status.code == 410) return std::nullopt;
  throw model::StatusError(std::move(status));
}

}  // namespace hearth::client
