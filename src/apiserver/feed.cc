#include "apiserver/feed.h"

#include <algorithm>

#include <fmt/format.h>

#include "apiserver/kept.h"
#include "base/json_text.h"

namespace hearth::apiserver {
namespace {

// As much as fits a few packets: a slow reader holds no more of our memory than this.
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kChangesAtOnce = 64;

// The state before with the revision of the change that took it away.
store::ObjectPtr with_revision(const store::Object& object, store::Revision revision) {
  static constexpr std::string_view kMember = R"("metadata":{"resourceVersion":")";
  auto copy = std::make_shared<store::Object>(object);
  copy->companion.reset();
  const std::size_t at = copy->text.find(kMember);
  if (at == std::string::npos) return copy;
  const std::size_t begin = at + kMember.size();
  copy->text.replace(begin, copy->text.find('"', begin) - begin, std::to_string(revision));
  copy->revision = revision;
  return copy;
}

FeedEvent error_event(const model::Status& status) {
  return {"ERROR", nullptr, model::to_text(model::to_json(status))};
}

}  // namespace

model::Status too_new(store::Revision wanted, store::Revision current) {
  model::Status status{.code = 504, .reason = "Timeout"};
  status.message =
      fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current);
  status.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  status.retry_after_seconds = 1;
  return status;
}

std::string event_line(std::string_view type, std::string_view object_text) {
  std::string line;
  line.reserve(object_text.size() + type.size() + 32);
  line.append(R"({"type":")")
      .append(type)
      .append(R"(","object":)")
      .append(object_text)
      .append("}\n");
  return line;
}

Feed::Feed(store::Store& store, ResourcePtr resource, FeedOptions options, Render render,
           std::function<void()> wake)
    : store_(store),
      resource_(std::move(resource)),
      options_(std::move(options)),
      render_(std::move(render)),
      seen_(options_.revision) {
  const Selection& selection = options_.selection;
  if (options_.initial_events) {
    store::ListQuery query;
    query.resource = resource_->store_name;
    query.ns = selection.ns;
    store::Snapshot snapshot = store_.list(query);
    if (options_.revision > snapshot.revision)
      failure_ = too_new(options_.revision, snapshot.revision);
    seen_ = snapshot.revision;
    std::erase_if(snapshot.objects, [&](const store::ObjectPtr& object) {
      return !selection.matches(*object, *resource_);
    });
    std::reverse(snapshot.objects.begin(), snapshot.objects.end());
    initial_ = std::move(snapshot.objects);
    owes_closing_bookmark_ = options_.closing_bookmark;
  }
  store::Scope scope{
      .resource = resource_->store_name, .ns = selection.ns, .name = selection.only_name()};
  watch_ = store_.watch(std::move(scope), seen_, std::move(wake));
}

void Feed::append_change(std::vector<FeedEvent>& events, const store::Change& change) const {
  const Selection& selection = options_.selection;
  const bool is =
      change.kind != store::ChangeKind::deleted && selection.matches(*change.object, *resource_);
  const bool was = change.previous && selection.matches(*change.previous, *resource_);
  if (change.kind == store::ChangeKind::deleted) {
    if (was) events.push_back({"DELETED", change.object, ""});
  } else if (is) {
    events.push_back({was ? "MODIFIED" : "ADDED", change.object, ""});
  } else if (was) {
    events.push_back({"DELETED", with_revision(*change.previous, change.revision), ""});
  }
}

FeedEvent Feed::bookmark_event(store::Revision revision, bool is_end_of_initial) const {
  const std::string annotations =
      is_end_of_initial ? R"("annotations":{"k8s.io/initial-events-end":"true"},)" : "";
  return {"BOOKMARK", nullptr,
          fmt::format(R"({{"kind":{},"apiVersion":{},"metadata":{{{}"resourceVersion":"{}"}}}})",
                      json_quote(resource_->kind), json_quote(resource_->api_version()),
                      annotations, revision)};
}

std::string Feed::bookmark() const {
  const FeedEvent event = bookmark_event(seen_, /*is_end_of_initial=*/false);
  return event_line(event.type, event.text);
}

FeedEvent Feed::expired(store::Revision oldest) const {
  return error_event({.code = 410,
                      .reason = "Expired",
                      .message = fmt::format("too old resource version: {} ({})", seen_, oldest)});
}

std::vector<FeedEvent> Feed::next_events() {
  std::vector<FeedEvent> events;
  if (failure_) {
    events.push_back(error_event(*failure_));
    return events;
  }
  for (std::size_t bytes = 0; !initial_.empty() && bytes < kPieceBytes; initial_.pop_back()) {
    bytes += initial_.back()->text.size();
    events.push_back({"ADDED", std::move(initial_.back()), ""});
  }
  if (initial_.empty() && owes_closing_bookmark_) {
    events.push_back(bookmark_event(seen_, /*is_end_of_initial=*/true));
    owes_closing_bookmark_ = false;
  }
  // Changes that are none to this selection are passed over, in turns that others can come between.
  while (events.empty()) {
    const store::Taken taken = watch_->take(kChangesAtOnce);
    if (taken.expired) {
      events.push_back(expired(store_.oldest()));
      break;
    }
    for (const store::ChangePtr& change : taken.changes) append_change(events, *change);
    seen_ = std::max(seen_, taken.up_to);
    if (taken.changes.empty()) break;
  }
  return events;
}

Feed::Piece Feed::next() {
  Piece piece;
  for (const FeedEvent& event : next_events()) {
    piece.lines += event_line(event.type, event.object ? render_(*event.object) : event.text);
    piece.ended = event.type == "ERROR";
  }
  return piece;
}

}  // namespace hearth::apiserver
