// The Kubernetes API as controllers, front doors and the command line use it.
//
// Two implementations: in this process (apiserver::LocalClient) and over HTTP to any cluster
// (HttpClient). Objects are JSON with apiVersion and kind, so that fields nobody here knows
// survive. Every call blocks; all are thread-safe. What the server refuses is thrown as
// model::StatusError, what keeps us from asking it as Error (unavailable, timeout).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"
#include "model/status.h"

namespace hearth::client {

using model::Json;

// {"agents.x-k8s.io", "v1beta1", "sandboxes"}; the core group is "".
struct ResourceId {
  std::string group;
  std::string version;
  std::string plural;
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

// Shared and never changed: whoever wants another one makes a copy.
using Object = std::shared_ptr<const Json>;

// What the server answers: the object as it is now, or a Status. Copied only by those who want a
// copy.
class Answer {
 public:
  // NOLINTBEGIN(google-explicit-constructor): the rest of the world has plain JSON
  Answer(Object object) : object_(std::move(object)) {}
  Answer(Json json) : object_(std::make_shared<const Json>(std::move(json))) {}
  operator Json() const { return *object_; }
  operator const Object&() const { return object_; }
  // NOLINTEND(google-explicit-constructor)

  const Object& object() const { return object_; }

 private:
  Object object_;  // never null
};

struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::int64_t limit = 0;  // 0: everything at once
  std::string continue_token;
  std::string resource_version;
};

struct List {
  std::vector<Json> items;  // always with apiVersion and kind
  std::string resource_version;
  std::string continue_token;  // of the next page
};

struct WriteOptions {
  std::string manager;  // fieldManager; empty: the client's own name
  bool dry_run = false;
};

enum class PatchKind { json, merge, strategic, apply };

struct PatchOptions {
  std::string subresource;  // "status", "scale" or ""
  std::string manager;
  bool force = false;  // of an apply
  bool dry_run = false;
  // A merge patch that the engine made of words that it has checked: a server in this process asks
  // no rule of the kind again. Any other server does.
  bool is_checked = false;
  // And with that: whoever waits for it will be told. Such a server lets those who watch know a few
  // milliseconds later, when the burst that it is part of may be over.
  bool news_can_wait = false;
};

struct DeleteOptions {
  std::string propagation;  // Foreground, Background, Orphan; empty: the kind's default
  std::string uid;          // preconditions
  std::string resource_version;
  std::optional<std::int64_t> grace_seconds;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  bool bookmarks = true;
  // Everything that is there first, then a bookmark that says so.
  bool initial_events = false;
  Duration timeout = std::chrono::minutes(5);
};

enum class EventKind { added, modified, deleted, bookmark };

struct Event {
  EventKind kind = EventKind::added;
  Object object;  // never null
};

enum class WatchEnd {
  closed,   // its time was over, or the connection: go on from the last resourceVersion seen
  expired,  // changes that were not seen are gone: list again
  stopped,  // as asked
};

class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Throws 404.
  virtual Answer get(const ResourceId& resource, std::string_view ns, std::string_view name) = 0;
  virtual List list(const ResourceId& resource, const ListOptions& options) = 0;
  // The namespace is the object's own.
  virtual Answer create(const ResourceId& resource, const Json& object,
                        const WriteOptions& options = {}) = 0;
  // `subresource`: "", "status", ...; replaces the object whose resourceVersion it has.
  virtual Answer update(const ResourceId& resource, const Json& object,
                        std::string_view subresource = {}, const WriteOptions& options = {}) = 0;
  virtual Answer patch(const ResourceId& resource, std::string_view ns, std::string_view name,
                       PatchKind kind, const Json& patch, const PatchOptions& options = {}) = 0;
  // The object on its way out, or a Status.
  virtual Answer remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                        const DeleteOptions& options = {}) = 0;
  // POST to a subresource: eviction, binding, token.
  virtual Answer post(const ResourceId& resource, std::string_view ns, std::string_view name,
                      std::string_view subresource, const Json& body) = 0;

  // Calls `handler` for each event, on the calling thread, until the watch ends. What the handler
  // throws ends it, and comes out. Throws StatusError for a watch that is refused, and for an
  // error event other than "expired".
  virtual WatchEnd watch(const ResourceId& resource, const WatchOptions& options,
                         const std::function<void(Event event)>& handler,
                         const std::stop_token& stop) = 0;

  // Nothing instead of a 404.
  std::optional<Json> find(const ResourceId& resource, std::string_view ns, std::string_view name);
  // Every page.
  List list_all(const ResourceId& resource, ListOptions options);
};

// "/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE"; empty parts are left out.
std::string resource_path(const ResourceId& resource, std::string_view ns,
                          std::string_view name = {}, std::string_view subresource = {});

}  // namespace hearth::client
