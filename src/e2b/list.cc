// GET /sandboxes, GET /v2/sandboxes and GET /sandboxes/{id}.
#include <algorithm>
#include <utility>
#include <vector>

#include "e2b/answers.h"
#include "e2b/list_query.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/template_reference.h"
#include "e2b/view.h"

namespace hearth::e2b {
namespace {

struct Entry {
  Time started;
  std::string id;
  bool is_running = false;
  Object sandbox;
};

bool has_all(const Texts& metadata, const Texts& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& pair) {
    const auto found = metadata.find(pair.first);
    return found != metadata.end() && found->second == pair.second;
  });
}

// Of all that match but for their state: counting needs those of the other pages too.
std::vector<Entry> find_entries(const Core& core, const tenants::KeyHolder& holder,
                                const ListQuery& query) {
  Object wanted_template;
  if (query.template_reference) {
    wanted_template =
        find_template(core, holder, parse_template_reference(*query.template_reference));
    if (!wanted_template) return {};
  }
  std::vector<Entry> entries;
  for (Object& each : core.list_sandboxes(holder.ns)) {
    const bool is_running = state_text(state_of(*each)) == "running";
    if (is_running ? !query.wants_running : !query.wants_paused) continue;
    if (wanted_template && !is_made_of(*each, *wanted_template)) continue;
    const Time started = started_at(*each).value_or(Time());
    if (query.started_after && started < *query.started_after) continue;
    if (!query.metadata.empty() && !has_all(metadata_of(*each), query.metadata)) continue;
    std::string id(model::name_of(*each));
    entries.push_back({started, std::move(id), is_running, std::move(each)});
  }
  return entries;
}

bool comes_before(Order order, Time left_time, std::string_view left, Time right_time,
                  std::string_view right) {
  if (left_time != right_time)
    return order == Order::newest_first ? left_time > right_time : left_time < right_time;
  return left < right;
}

http::Response list(Core& core, const Call& call) {
  const ListQuery query = parse_list_query(call.request.query);
  std::vector<Entry> entries = find_entries(core, call.holder, query);
  const auto running = std::ranges::count(entries, true, &Entry::is_running);
  std::ranges::sort(entries, [&](const Entry& left, const Entry& right) {
    return comes_before(query.order, left.started, left.id, right.started, right.id);
  });
  if (query.cursor)
    std::erase_if(entries, [&](const Entry& each) {
      return !comes_before(query.order, query.cursor->started, query.cursor->id, each.started,
                           each.id);
    });
  model::JsonArray page;
  for (const Entry& each : entries) {
    if (page.size() == query.limit) break;
    page.push_back(listed_sandbox(core, *each.sandbox));
  }
  const std::size_t shown = page.size();
  http::Response response = answer_json(200, std::move(page));
  if (query.wants_running) response.headers.set("X-Total-Running", std::to_string(running));
  if (entries.size() > shown) {
    const Entry& last = entries[shown - 1];
    response.headers.set("X-Next-Token", render_cursor({last.started, last.id, query.order}));
  }
  return response;
}

// The first version: what runs, all of it.
http::Response list_running(Core& core, const Call& call) {
  ListQuery query;
  query.wants_paused = false;
  if (const auto text = call.query("metadata")) query.metadata = parse_metadata_filter(*text);
  std::vector<Entry> entries = find_entries(core, call.holder, query);
  std::ranges::sort(entries, [&](const Entry& left, const Entry& right) {
    return comes_before(query.order, left.started, left.id, right.started, right.id);
  });
  model::JsonArray all;
  for (const Entry& each : entries) all.push_back(listed_sandbox(core, *each.sandbox));
  return answer_json(200, std::move(all));
}

}  // namespace

void add_list_routes(Routes& routes, Core& core) {
  routes.add("GET", "/sandboxes", [&core](const Call& call) { return list_running(core, call); });
  routes.add("GET", "/v2/sandboxes", [&core](const Call& call) { return list(core, call); });
  routes.add("GET", "/sandboxes/{id}", [&core](const Call& call) {
    return answer_json(200, sandbox_detail(core, *call.sandbox(core)));
  });
}

}  // namespace hearth::e2b
