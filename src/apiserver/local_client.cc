#include "apiserver/local_client.h"

#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "apiserver/object_meta.h"
#include "client/query.h"
#include "model/read_json.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kName = "hearth";

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

}  // namespace

Json LocalClient::ask(std::string method, std::string path, std::string query, std::string body,
                      std::string_view content_type) {
  http::Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.query = std::move(query);
  request.headers.add("User-Agent", std::string(kName));
  request.headers.add("Content-Type", std::string(content_type));
  request.body = std::move(body);
  const Call call = front_.understand_as(request, user_);
  const http::Response response = front_.answer(call);
  if (response.headers.value("Content-Type") != "application/json")
    fail(http::code_from_status(response.status), "{} {}: {}", request.method, request.path,
         response.status);
  Json json = model::read_json(response.body);
  if (response.status >= 400)
    throw model::StatusError(model::status_from_json(json, response.status));
  return json;
}

Json LocalClient::get(const client::ResourceId& resource, std::string_view ns,
                      std::string_view name) {
  return ask("GET", client::resource_path(resource, ns, name), "");
}

client::List LocalClient::list(const client::ResourceId& resource,
                               const client::ListOptions& options) {
  const Json json =
      ask("GET", client::resource_path(resource, options.ns), client::query_of(options));
  return client::list_from_json(json, resource);
}

Json LocalClient::create(const client::ResourceId& resource, const Json& object,
                         const client::WriteOptions& options) {
  return ask("POST", client::resource_path(resource, namespace_of(object)),
             client::query_of(options), model::to_text(object));
}

Json LocalClient::update(const client::ResourceId& resource, const Json& object,
                         std::string_view subresource, const client::WriteOptions& options) {
  return ask("PUT",
             client::resource_path(resource, namespace_of(object), name_of(object), subresource),
             client::query_of(options), model::to_text(object));
}

Json LocalClient::patch(const client::ResourceId& resource, std::string_view ns,
                        std::string_view name, client::PatchKind kind, const Json& patch,
                        const client::PatchOptions& options) {
  return ask("PATCH", client::resource_path(resource, ns, name, options.subresource),
             client::query_of(options, kind), model::to_text(patch), client::content_type_of(kind));
}

Json LocalClient::remove(const client::ResourceId& resource, std::string_view ns,
                         std::string_view name, const client::DeleteOptions& options) {
  return ask("DELETE", client::resource_path(resource, ns, name), "",
             model::to_text(client::body_of(options)));
}

Json LocalClient::post(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, std::string_view subresource, const Json& body) {
  return ask("POST", client::resource_path(resource, ns, name, subresource), "",
             model::to_text(body));
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
    const Feed::Piece piece = watching.feed->next();
    std::string_view lines = piece.lines;
    while (!lines.empty()) {
      const std::size_t newline = lines.find('\n');
      auto event = client::parse_event(lines.substr(0, newline));
      if (!event) return client::WatchEnd::expired;
      handler(std::move(*event));
      lines = newline == std::string_view::npos ? std::string_view() : lines.substr(newline + 1);
    }
    if (piece.ended) return client::WatchEnd::expired;
    if (!piece.lines.empty()) continue;
    if (!wakeup->wait(stop, end)) break;
  }
  return stop.stop_requested() ? client::WatchEnd::stopped : client::WatchEnd::closed;
}

}  // namespace hearth::apiserver
