#include "apiserver/local_client.h"

#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "client/query.h"
#include "model/read_json.h"

namespace hearth::apiserver {
namespace {

// A bell between the thread that commits and the one that watches.
class Wakeup {
 public:
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    changed_.notify_one();
  }
  // False when called off or too late.
  bool wait(const std::stop_token& stop, std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    const bool rung = changed_.wait_until(lock, stop, until, [&] { return rung_; });
    rung_ = false;
    return rung;
  }

 private:
  std::mutex mutex_;  // guards rung_
  std::condition_variable_any changed_;
  bool rung_ = false;
};

// What `work` returns. Failures as StatusError, whatever they are inside.
template <typename Work>
auto with_status(const Work& work) {
  try {
    return work();
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    throw model::StatusError(model::status_of(error));
  }
}

// Nothing for the error that says "expired".
std::optional<client::Event> event_of(const FeedEvent& event, const Resource& resource) {
  if (!event.object) return client::parse_event(event_line(event.type, event.text));
  return client::Event{client::event_kind(event.type), look(*event.object, resource)};
}

}  // namespace

client::Answer LocalClient::ask(std::string method, std::string path, std::string query,
                                const Json* body, std::string_view content_type) {
  http::Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.query = std::move(query);
  request.headers.add("User-Agent", kOwnManager);
  request.headers.add("Content-Type", std::string(content_type));
  Call call = front_.understand_as(request, user_);
  call.body = body;
  const Reply reply = with_status([&] { return front_.reply(call); });
  if (const auto* written = std::get_if<Written>(&reply)) {
    if (written->object) return look(*written->object, *call.resource);
    return model::read_json(written->text);
  }
  const auto& response = std::get<http::Response>(reply);
  if (response.headers.value("Content-Type") != "application/json")
    fail(http::code_from_status(response.status), "{} {}: {}", request.method, request.path,
         response.status);
  return model::read_json(response.body);
}

client::Answer LocalClient::get(const client::ResourceId& resource, std::string_view ns,
                                std::string_view name) {
  return ask("GET", client::resource_path(resource, ns, name), "");
}

client::List LocalClient::list(const client::ResourceId& resource,
                               const client::ListOptions& options) {
  const client::Answer answer =
      ask("GET", client::resource_path(resource, options.ns), client::query_of(options));
  return client::list_from_json(*answer.object(), resource);
}

client::Answer LocalClient::create(const client::ResourceId& resource, const Json& object,
                                   const client::WriteOptions& options) {
  return ask("POST", client::resource_path(resource, namespace_of(object)),
             client::query_of(options), &object);
}

client::Answer LocalClient::update(const client::ResourceId& resource, const Json& object,
                                   std::string_view subresource,
                                   const client::WriteOptions& options) {
  return ask("PUT",
             client::resource_path(resource, namespace_of(object), name_of(object), subresource),
             client::query_of(options), &object);
}

client::Answer LocalClient::patch(const client::ResourceId& resource, std::string_view ns,
                                  std::string_view name, client::PatchKind kind, const Json& patch,
                                  const client::PatchOptions& options) {
  if (options.is_checked)
    return with_status([&] {
      return front_.patch_checked(user_, resource, ns, name, patch, options.news_can_wait);
    });
  return ask("PATCH", client::resource_path(resource, ns, name, options.subresource),
             client::query_of(options, kind), &patch, client::content_type_of(kind));
}

client::Answer LocalClient::remove(const client::ResourceId& resource, std::string_view ns,
                                   std::string_view name, const client::DeleteOptions& options) {
  const Json body = client::body_of(options);
  return ask("DELETE", client::resource_path(resource, ns, name), "", &body);
}

client::Answer LocalClient::post(const client::ResourceId& resource, std::string_view ns,
                                 std::string_view name, std::string_view subresource,
                                 const Json& body) {
  return ask("POST", client::resource_path(resource, ns, name, subresource), "", &body);
}

client::WatchEnd LocalClient::watch(const client::ResourceId& resource,
                                    const client::WatchOptions& options,
                                    const std::function<void(client::Event event)>& handler,
                                    const std::stop_token& stop) {
  http::Request request;
  request.path = client::resource_path(resource, options.ns);
  request.query = client::query_of(options);
  const Call call = front_.understand_as(request, user_);
  if (!call.resource) model::throw_not_found({resource.group, resource.plural}, "");
  const auto wakeup = std::make_shared<Wakeup>();
  const Front::Watching watching = front_.open_watch(call, [wakeup] { wakeup->ring(); });
  const auto end = std::chrono::steady_clock::now() + watching.timeout;
  while (!stop.stop_requested()) {
    const std::vector<FeedEvent> events = watching.feed->next_events();
    for (const FeedEvent& event : events) {
      auto told = event_of(event, *call.resource);
      if (!told) return client::WatchEnd::expired;
      handler(std::move(*told));
    }
    if (!events.empty()) continue;
    if (!wakeup->wait(stop, end)) break;
  }
  return stop.stop_requested() ? client::WatchEnd::stopped : client::WatchEnd::closed;
}

}  // namespace hearth::apiserver
