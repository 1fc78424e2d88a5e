// GET /sandboxes/{id}/logs and GET /v2/sandboxes/{id}/logs: what happened to a sandbox, from its
// conditions and from the events about it and its pod. What its commands write goes to whoever
// runs them.
//
// One that is not there has none, as it would be told of another team's: whoever follows the logs
// of a sandbox to its end has not failed.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "client/kinds.h"
#include "e2b/answers.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/view.h"
#include "model/agent_sandbox.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kMostEntries = 1000;
// From the least to the gravest.
constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
constexpr std::string_view kLifeLogger = "sandbox";

struct Entry {
  Time at;
  std::string_view level = "info";
  std::string logger;
  std::string message;
  JsonObject fields;  // of texts
};

std::vector<Entry> entries_of_life(const Json& sandbox, Time started) {
  std::vector<Entry> entries;
  entries.push_back({.at = started,
                     .level = "info",
                     .logger = std::string(kLifeLogger),
                     .message = "sandbox started",
                     .fields = {{"template", template_id_of(sandbox)}}});
  const auto* conditions = model::array_at(sandbox, {"status", "conditions"});
  if (conditions == nullptr) return entries;
  for (const Json& each : *conditions) {
    const auto at = parse_rfc3339(model::text_at(each, {"lastTransitionTime"}));
    // A warm sandbox was ready before it was somebody's; that is when its owner's story begins.
    if (!at) continue;
    entries.push_back({.at = std::max(*at, started),
                       .level = "info",
                       .logger = std::string(kLifeLogger),
                       .message = fmt::format("{} is {}", model::text_at(each, {"type"}),
                                              model::text_at(each, {"status"})),
                       .fields = {{"reason", model::text_at(each, {"reason"})},
                                  {"detail", model::text_at(each, {"message"})}}});
  }
  return entries;
}

std::optional<Time> time_of_event(const Json& event) {
  for (const std::string_view text :
       {model::text_at(event, {"series", "lastObservedTime"}), model::text_at(event, {"eventTime"}),
        model::text_at(event, {"deprecatedLastTimestamp"})})
    if (const auto time = parse_rfc3339(text)) return time;
  return model::created_at(event);
}

bool is_about(const Json& event, const Json& sandbox) {
  const std::string_view kind = model::text_at(event, {"regarding", "kind"});
  if (kind == "Sandbox")
    return model::text_at(event, {"regarding", "uid"}) == model::uid_of(sandbox);
  return kind == "Pod";
}

void add_events(Core& core, const Json& sandbox, Time since, std::vector<Entry>& entries) {
  const client::List events = core.parts.client.list_all(
      client::kEvents, {.ns = std::string(model::namespace_of(sandbox)),
                        .label_selector = {},
                        .field_selector = fmt::format("regarding.name={}", model::name_of(sandbox)),
                        .limit = 0,
                        .continue_token = {},
                        .resource_version = {}});
  for (const Json& event : events.items) {
    const auto at = time_of_event(event);
    // What came before was not this user's.
    if (!at || *at < since || !is_about(event, sandbox)) continue;
    entries.push_back({.at = *at,
                       .level = model::text_at(event, {"type"}) == "Warning" ? "warn" : "info",
                       .logger = std::string(model::text_at(event, {"reportingController"})),
                       .message = std::string(model::text_at(event, {"note"})),
                       .fields = {{"reason", model::text_at(event, {"reason"})},
                                  {"object", model::text_at(event, {"regarding", "kind"})}}});
  }
}

// A warm one had a life before it was anybody's; of a cold one, its start is told as well.
Time story_begins(const Json& sandbox, Time started) {
  if (model::label_of(sandbox, model::kLaunchTypeLabel) != "cold") return started;
  return std::min(started, model::created_at(sandbox).value_or(started));
}

// The oldest first; none where there is no sandbox.
std::vector<Entry> read_entries(Core& core, const Object& found) {
  if (!found) return {};
  const Json& sandbox = *found;
  const Time started = started_at(sandbox).value_or(Time());
  std::vector<Entry> entries = entries_of_life(sandbox, started);
  add_events(core, sandbox, story_begins(sandbox, started), entries);
  // Of one moment in the order in which they were found.
  std::vector<std::pair<Time, std::size_t>> order;
  for (const Entry& each : entries) order.emplace_back(each.at, order.size());
  std::ranges::sort(order);
  std::vector<Entry> sorted;
  for (const auto& [at, index] : order) sorted.push_back(std::move(entries[index]));
  return sorted;
}

JsonObject render(const Entry& entry) {
  JsonObject fields = entry.fields;
  fields["logger"] = entry.logger;
  return {{"timestamp", time_text(entry.at)},
          {"level", entry.level},
          {"message", entry.message},
          {"fields", std::move(fields)}};
}

// The first version's: a JSON text, which the command line takes apart.
JsonObject render_line(const Entry& entry) {
  JsonObject line{{"level", entry.level},
                  {"logger", entry.logger},
                  {"message", entry.message},
                  {"timestamp", time_text(entry.at)}};
  for (const auto& [key, value] : entry.fields) line[key] = value;
  return {{"timestamp", time_text(entry.at)}, {"line", model::to_text(line)}};
}

// Milliseconds since 1970, which a Time can hold.
std::optional<Time> query_time(const Call& call, std::string_view name) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000'000;
  const auto milliseconds = call.query_number(name, 0, kMost);
  if (!milliseconds) return {};
  return Time(std::chrono::milliseconds(*milliseconds));
}

std::size_t query_limit(const Call& call) {
  return static_cast<std::size_t>(
      call.query_number("limit", 0, kMostEntries).value_or(kMostEntries));
}

http::Response logs_first(Core& core, const Call& call) {
  const auto start = query_time(call, "start");
  const std::size_t limit = query_limit(call);
  const Object sandbox = call.find_sandbox(core);
  model::JsonArray lines;
  model::JsonArray entries;
  for (const Entry& each : read_entries(core, sandbox)) {
    if (start && each.at < *start) continue;
    if (lines.size() == limit) break;
    lines.push_back(render_line(each));
    entries.push_back(render(each));
  }
  return answer_json(200,
                     JsonObject{{"logs", std::move(lines)}, {"logEntries", std::move(entries)}});
}

struct LogQuery {
  std::optional<Time> cursor;
  bool is_forward = true;
  std::size_t limit = 0;
  std::size_t least_level = 0;
  std::string search;
};

LogQuery parse_log_query(const Call& call) {
  LogQuery query;
  query.cursor = query_time(call, "cursor");
  query.limit = query_limit(call);
  query.search = call.query("search").value_or("");
  const std::string direction = call.query("direction").value_or("");
  if (!direction.empty() && direction != "forward" && direction != "backward")
    refuse(400, "'{}' is no direction; there are forward and backward", direction);
  query.is_forward = direction != "backward";
  if (const std::string level = call.query("level").value_or(""); !level.empty()) {
    const auto found = std::ranges::find(kLevels, level);
    if (found == kLevels.end())
      refuse(400, "'{}' is no level; there are debug, info, warn and error", level);
    query.least_level = static_cast<std::size_t>(found - kLevels.begin());
  }
  return query;
}

bool is_wanted(const Entry& entry, const LogQuery& query) {
  if (query.cursor && (query.is_forward ? entry.at < *query.cursor : entry.at > *query.cursor))
    return false;
  const auto level =
      static_cast<std::size_t>(std::ranges::find(kLevels, entry.level) - kLevels.begin());
  return level >= query.least_level && entry.message.find(query.search) != std::string::npos;
}

http::Response logs(Core& core, const Call& call) {
  const LogQuery query = parse_log_query(call);
  std::vector<Entry> all = read_entries(core, call.find_sandbox(core));
  if (!query.is_forward) std::ranges::reverse(all);
  model::JsonArray entries;
  for (const Entry& each : all) {
    if (entries.size() == query.limit) break;
    if (is_wanted(each, query)) entries.push_back(render(each));
  }
  return answer_json(200, JsonObject{{"logs", std::move(entries)}});
}

}  // namespace

void add_log_routes(Routes& routes, Core& core) {
  routes.add("GET", "/sandboxes/{id}/logs",
             [&core](const Call& call) { return logs_first(core, call); });
  routes.add("GET", "/v2/sandboxes/{id}/logs",
             [&core](const Call& call) { return logs(core, call); });
}

}  // namespace hearth::e2b
