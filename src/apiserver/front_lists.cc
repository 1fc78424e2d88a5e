#include <charconv>
#include <random>

#include <fmt/format.h>

#include "apiserver/front.h"
#include "apiserver/kept.h"
#include "apiserver/negotiation.h"
#include "apiserver/table.h"
#include "base/base64.h"
#include "base/json_text.h"
#include "model/read_json.h"
#include "model/yaml_text.h"

namespace hearth::apiserver {
namespace {

const model::GroupKind kListOptions{"meta.k8s.io", "ListOptions"};

// How long a list waits for a revision that is still to come, as kube-apiserver does.
constexpr Duration kRevisionPatience = std::chrono::seconds(3);
// Watches end by themselves, at different times, so that they do not all come back at once.
constexpr int kShortestWatchSeconds = 1800;

[[noreturn]] void forbid(std::string_view field, std::string_view why) {
  model::throw_invalid(kListOptions, "", {model::forbidden(std::string(field), why)});
}

std::optional<store::Revision> parse_revision(std::string_view text) {
  store::Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return revision;
}

std::string revision_complaint(std::string_view text) {
  return fmt::format(
      "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
      json_quote(text));
}

// Where the next page begins. Opaque to clients; the shape is the one kube-apiserver uses.
struct Continue {
  store::Revision revision = 0;
  store::ListQuery::Place after;
};

std::string render_continue(const Continue& next) {
  const std::string start = next.after.ns + "/" + next.after.name;
  std::string token = base64_encode(fmt::format(R"({{"v":"meta.k8s.io/v1","rv":{},"start":{}}})",
                                                next.revision, json_quote(start)));
  for (char& c : token) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (token.ends_with('=')) token.pop_back();
  return token;
}

Continue parse_continue(std::string_view token) {
  const auto bytes = base64_decode(token);
  if (!bytes)
    model::throw_bad_request(
        "invalid continue token: continue key is not valid: illegal base64 data");
  try {
    const Json json = model::parse_json(*bytes).value;
    const std::string_view start = model::text_at(json, {"start"});
    const std::size_t slash = start.find('/');
    if (const auto revision = model::number_at(json, {"rv"});
        revision && *revision > 0 && slash != start.npos)
      return {static_cast<store::Revision>(*revision),
              {std::string(start.substr(0, slash)), std::string(start.substr(slash + 1))}};
  } catch (const Error&) {  // told below
  }
  model::throw_bad_request("invalid continue token: continue key is not valid");
}

void check_list_options(const Query& query) {
  const std::string_view match = query.text("resourceVersionMatch");
  const std::string_view revision = query.text("resourceVersion");
  if (query.has("sendInitialEvents"))
    forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
  query.number("timeoutSeconds");  // as much of it as a list needs: whether it is one
  if (!query.text("continue").empty() && !revision.empty() && revision != "0")
    model::throw_bad_request("specifying resource version is not allowed when using continue");
  if (match.empty()) return;
  if (revision.empty())
    forbid("resourceVersionMatch",
           "resourceVersionMatch is forbidden unless resourceVersion is provided");
  if (query.has("continue") && !query.text("continue").empty())
    forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  if (match != "Exact" && match != "NotOlderThan")
    model::throw_invalid(kListOptions, "",
                         {model::not_supported("resourceVersionMatch", json_quote(match),
                                               {"Exact", "NotOlderThan", ""})});
  if (match == "Exact" && revision == "0")
    forbid("resourceVersionMatch",
           "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
}

[[noreturn]] void throw_continue_expired(const Continue& asked, store::Revision current) {
  model::Status status{.code = 410, .reason = "Expired"};
  status.message =
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new "
      "list without the continue parameter, or use the continue token in this response to retrieve "
      "the "
      "remainder of the results. Continuing with the provided token results in an inconsistent "
      "list - "
      "objects that were created, modified, or deleted between the time the first chunk was "
      "returned and "
      "now may show up in the list.";
  status.continue_token = render_continue({current, asked.after});
  throw model::StatusError(std::move(status));
}

struct Page {
  store::Snapshot snapshot;
  std::string next;  // the token of the next page
  std::optional<std::size_t> remaining;
};

Page read_page(store::Store& store, const Call& call, const Selection& selection) {
  const Query& query = call.query;
  check_list_options(query);
  const std::string_view wanted_text = query.text("resourceVersion");
  const auto wanted = wanted_text.empty() ? 0 : parse_revision(wanted_text);
  if (!wanted)
    model::throw_bad_request("invalid resource version: " + revision_complaint(wanted_text));
  std::size_t limit = 0;
  if (const auto asked = query.number("limit"); asked && *asked > 0)
    limit = static_cast<std::size_t>(*asked);
  // "Anything you have" is answered whole.
  if (wanted_text == "0") limit = 0;

  store::ListQuery list;
  list.resource = call.resource->store_name;
  list.ns = selection.ns;
  std::optional<store::Revision> at;
  const std::string_view token = query.text("continue");
  std::optional<Continue> continued;
  if (!token.empty()) {
    continued = parse_continue(token);
    list.after = continued->after;
    at = continued->revision;
  } else if (query.text("resourceVersionMatch") == "Exact") {
    at = *wanted;
  }
  if (*wanted > store.revision() && !store.wait_for(*wanted, kRevisionPatience))
    throw model::StatusError(too_new(*wanted, store.revision()));
  if (at && *at > store.revision())
    model::throw_bad_request("invalid continue token: it is from the future");

  if (!selection.has_selector()) list.limit = limit;
  Page page;
  if (at) {
    auto snapshot = store.list_at(list, *at);
    if (!snapshot && continued) throw_continue_expired(*continued, store.revision());
    if (!snapshot) model::throw_expired("The resourceVersion for the provided list is too old.");
    page.snapshot = std::move(*snapshot);
    page.snapshot.revision = *at;
  } else {
    page.snapshot = store.list(list);
  }
  std::vector<store::ObjectPtr>& objects = page.snapshot.objects;
  if (selection.has_selector()) {
    std::erase_if(objects, [&](const store::ObjectPtr& object) {
      return !selection.matches(*object, *call.resource);
    });
    if (limit > 0 && objects.size() > limit) {
      objects.resize(limit);
      page.next = render_continue(
          {page.snapshot.revision, {objects.back()->key.ns, objects.back()->key.name}});
    }
  } else if (page.snapshot.remaining > 0) {
    page.remaining = page.snapshot.remaining;
    page.next = render_continue(
        {page.snapshot.revision, {objects.back()->key.ns, objects.back()->key.name}});
  }
  return page;
}

std::string list_metadata(const Page& page, bool is_built_in) {
  std::string text = fmt::format(R"({{"resourceVersion":"{}")", page.snapshot.revision);
  if (!page.next.empty() || !is_built_in) text += fmt::format(R"(,"continue":"{}")", page.next);
  if (page.remaining) text += fmt::format(R"(,"remainingItemCount":{})", *page.remaining);
  return text + "}";
}

std::string render_list(const Resource& resource, const Page& page) {
  std::string text;
  std::size_t bytes = 256;
  for (const store::ObjectPtr& object : page.snapshot.objects) bytes += object->text.size() + 1;
  text.reserve(bytes);
  text += fmt::format(R"({{"kind":{},"apiVersion":{},"metadata":{},"items":[)",
                      json_quote(resource.list_kind), json_quote(resource.api_version()),
                      list_metadata(page, resource.built_in));
  append_items(text, page.snapshot.objects, resource);
  text += "]}";
  return text;
}

http::Response json_answer(std::string text) {
  http::Response response{200, {{"Content-Type", "application/json"}}, std::move(text)};
  response.headers.add("Cache-Control", "no-cache, private");
  return response;
}

}  // namespace

Selection Front::selection_of(const Call& call) const {
  Selection selection;
  selection.ns = call.path->ns;
  selection.labels = model::LabelSelector::parse(call.query.text("labelSelector"));
  selection.fields = model::FieldSelector::parse(call.query.text("fieldSelector"));
  const std::vector<std::string>& own = selectable_fields(*call.resource);
  std::vector<std::string> known = own;
  known.insert(known.end(), {"metadata.name", "metadata.namespace"});
  selection.fields.require_known(known, !own.empty() || !call.resource->built_in);
  return selection;
}

http::Response Front::list(const Call& call, std::vector<store::ObjectPtr>* listed) {
  const Selection selection = selection_of(call);
  const Page page = read_page(parts_.store, call, selection);
  if (listed) *listed = page.snapshot.objects;
  const Wanted wanted_form = negotiate(call.request.headers.value("Accept"));
  const Resource& resource = *call.resource;
  if (wanted_form.shape == Shape::object && !wanted_form.is_yaml && !call.is_pretty)
    return json_answer(render_list(resource, page) + "\n");

  Json json = model::read_json(render_list(resource, page));
  // Custom kinds show an empty token, other shapes of their lists do not.
  if (wanted_form.shape != Shape::object && page.next.empty())
    model::erase_at(json, {"metadata", "continue"});
  if (wanted_form.shape == Shape::table)
    json = TablePrinter(resource).print(json, table_options(call, wanted_form));
  else if (wanted_form.shape == Shape::metadata)
    json = to_partial_metadata(json, wanted_form.meta_version);
  if (wanted_form.is_yaml) {
    http::Response response = json_answer(model::to_yaml(json));
    response.headers.set("Content-Type", "application/yaml");
    return response;
  }
  return json_answer((call.is_pretty ? model::to_pretty_text(json) : model::to_text(json)) + "\n");
}

Front::Watching Front::open_watch(const Call& call, std::function<void()> wake) {
  const Query& query = call.query;
  const auto initial = query.optional_flag("sendInitialEvents");
  const std::string_view match = query.text("resourceVersionMatch");
  const std::string_view wanted_text = query.text("resourceVersion");
  if (initial && match != "NotOlderThan")
    forbid("resourceVersionMatch",
           "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (!initial && !match.empty())
    forbid("resourceVersionMatch",
           "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  const auto wanted = wanted_text.empty() ? 0 : parse_revision(wanted_text);
  if (!wanted)
    throw model::StatusError(
        {.code = 500, .reason = "", .message = revision_complaint(wanted_text)});

  Watching watching;
  watching.bookmarks = query.flag("allowWatchBookmarks");
  FeedOptions options;
  options.selection = selection_of(call);
  options.bookmarks = watching.bookmarks;
  options.initial_events = initial.value_or(*wanted == 0);
  options.closing_bookmark = options.initial_events && watching.bookmarks;
  options.revision = *wanted;
  if (initial && !*initial && *wanted == 0) options.revision = parts_.store.revision();

  const Wanted wanted_form = negotiate(call.request.headers.value("Accept"));
  const ResourcePtr resource = call.resource;
  Feed::Render render = [resource](const store::Object& object) {
    return view_text(object, *resource);
  };
  if (wanted_form.shape == Shape::table) {
    const auto printer = std::make_shared<const TablePrinter>(*resource);
    render = [resource, printer, options = table_options(call, wanted_form),
              &clock = parts_.clock](const store::Object& object) mutable {
      options.now = clock.now();
      Json table = printer->print(view(object, *resource), options);
      options.has_columns = false;
      return model::to_text(table);
    };
  } else if (wanted_form.shape == Shape::metadata) {
    render = [resource, version = wanted_form.meta_version](const store::Object& object) {
      return model::to_text(to_partial_metadata(view(object, *resource), version));
    };
  }
  watching.feed = std::make_unique<Feed>(parts_.store, resource, std::move(options),
                                         std::move(render), std::move(wake));
  watching.head = json_answer("");
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto asked = query.number("timeoutSeconds").value_or(0);
  watching.timeout = std::chrono::seconds(
      asked > 0 ? asked
                : kShortestWatchSeconds + static_cast<int>(random() % kShortestWatchSeconds));
  return watching;
}

}  // namespace hearth::apiserver
