#include "client/http_client.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/guarded.h"
#include "base/log.h"
#include "client/backoff_internal.h"
#include "client/credentials_internal.h"
#include "client/lines_internal.h"
#include "client/query.h"
#include "model/read_json.h"
#include "net/client.h"

namespace hearth::client {
namespace {

// Beyond the time that a watch asked for: the server ends it, not we.
constexpr Duration kWatchSlack = std::chrono::seconds(30);
constexpr Duration kLongestWatch = std::chrono::hours(24);
// Of a refusal: a Status with all its causes, or somebody's page.
constexpr std::size_t kMostRefusalBytes = 1 << 20;
constexpr std::size_t kMostQuotedBytes = 512;

using Send = std::function<net::Response(net::Client&, net::Request)>;

struct Connection {
  Credential used_for;
  std::shared_ptr<net::Client> client;
};

bool may_be_asked_twice(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

// Nothing where the server does not say; dates are not said by API servers.
std::optional<int> retry_after(const net::Response& response) {
  const std::string* said = response.headers.find("Retry-After");
  if (!said) return std::nullopt;
  constexpr int kMost = 24 * 3600;
  int seconds = 0;
  const auto [end, error] = std::from_chars(said->data(), said->data() + said->size(), seconds);
  if (error != std::errc() || end != said->data() + said->size()) return std::nullopt;
  return std::clamp(seconds, 0, kMost);
}

// What a proxy or a load balancer said, in the shape of a Status.
model::Status status_of_text(const net::Response& response, std::string_view where) {
  std::string reason(http::reason_phrase(response.status));
  std::erase(reason, ' ');
  std::string_view said = response.body;
  said = said.substr(0, std::min(said.find_last_not_of(" \r\n") + 1, kMostQuotedBytes));
  return {.code = response.status,
          .reason = std::move(reason),
          .message = fmt::format("{} answers {} '{}'", where, response.status, said)};
}

model::Status status_of(const net::Response& response, std::string_view where) {
  model::Status status;
  try {
    const Json json = model::read_json(response.body);
    const bool is_status = model::text_at(json, {"kind"}) == "Status";
    status = is_status ? model::status_from_json(json, response.status)
                       : status_of_text(response, where);
  } catch (const Error&) {
    status = status_of_text(response, where);
  }
  status.code = response.status;
  if (const auto seconds = retry_after(response)) status.retry_after_seconds = *seconds;
  return status;
}

void note_warnings(const net::Response& response) {
  for (const net::Field& field : response.headers) {
    if (!net::equal_ignoring_case(field.name, "Warning")) continue;
    log::debug("the API server warns", {{"warning", field.value}});
  }
}

std::string_view name_of(const Json& object) {
  const std::string_view name = model::text_at(object, {"metadata", "name"});
  if (name.empty()) fail(Code::invalid, "an object without a name cannot be updated");
  return name;
}

std::string_view namespace_of(const Json& object) {
  return model::text_at(object, {"metadata", "namespace"});
}

// The path of one object, or of the collection that `name` is made in. An empty part would make
// it the path of something else.
std::string checked_path(const ResourceId& resource, std::string_view ns, std::string_view name,
                         std::string_view subresource = {}) {
  if (resource.namespaced && ns.empty()) {
    fail(Code::invalid, "{} '{}' without a namespace", resource.plural, name);
  }
  return resource_path(resource, ns, name, subresource);
}

std::string object_path(const ResourceId& resource, std::string_view ns, std::string_view name,
                        std::string_view subresource = {}) {
  if (name.empty()) fail(Code::invalid, "one of {} without a name", resource.plural);
  return checked_path(resource, ns, name, subresource);
}

net::Request request_for(std::string method, std::string path, const std::string& query = {}) {
  net::Request request{.method = std::move(method), .target = std::move(path)};
  if (!query.empty()) request.target += "?" + query;
  return request;
}

net::Request with_body(net::Request request, const Json& body,
                       std::string_view type = "application/json") {
  request.body = model::to_text(body);
  request.headers.set("Content-Type", std::string(type));
  return request;
}

// The answer to a watch: its lines become events.
class WatchStream {
 public:
  WatchStream(const std::function<void(Event event)>& handler, const std::stop_token& stop,
              std::size_t most_line_bytes)
      : handler_(handler), stop_(stop), lines_(most_line_bytes) {}

  void begin(const net::Response& head) {
    is_open_ = head.status == 200;
    refusal_.clear();
    note_warnings(head);
  }

  void receive(const net::Response&, std::string_view piece) {
    if (!is_open_) {
      refusal_ += piece.substr(0, kMostRefusalBytes - refusal_.size());
      return;
    }
    try {
      lines_.feed(piece, [this](std::string_view line) { take(line); });
    } catch (...) {
      thrown_ = std::current_exception();
      throw;
    }
    if (is_expired_) fail(Code::not_found, "the watch has expired");
  }

  // How a watch ended whose exchange failed; nothing if it never was one. Throws what a line or
  // the handler threw.
  std::optional<WatchEnd> end_of_failure() const {
    if (thrown_) std::rethrow_exception(thrown_);
    if (is_expired_) return WatchEnd::expired;
    if (stop_.stop_requested()) return WatchEnd::stopped;
    if (is_open_) return WatchEnd::closed;
    return std::nullopt;
  }

  const std::string& refusal() const { return refusal_; }

 private:
  void take(std::string_view line) {
    if (is_expired_ || stop_.stop_requested()) return;
    auto event = parse_event(line);
    if (event) return handler_(*std::move(event));
    is_expired_ = true;
  }

  const std::function<void(Event event)>& handler_;
  const std::stop_token& stop_;
  LineSplitter lines_;
  std::string refusal_;  // the body of an answer that is no stream
  std::exception_ptr thrown_;
  bool is_open_ = false;
  bool is_expired_ = false;
};

}  // namespace

struct HttpClient::State {
  State(const ClusterAccess& given, HttpClientOptions chosen)
      : access(given),
        options(std::move(chosen)),
        url(parse_server_url(given.server)),
        credentials(given, clock) {
    if (!options.pause) options.pause = [](Duration time) { std::this_thread::sleep_for(time); };
  }

  ClusterAccess access;
  HttpClientOptions options;
  ServerUrl url;
  SystemClock clock;
  Credentials credentials;
  Guarded<Connection> connection;

  std::shared_ptr<net::Client> connect(const Credential& credential);
  net::Request signed_with(net::Request request, const Credential& credential) const;
  net::Response ask(const net::Request& request, const Send& send);
  net::Response ask_once(const net::Request& request, Duration timeout);
  net::Response call(const net::Request& request);
  Json call_json(const net::Request& request);
  WriteOptions completed(WriteOptions given) const;
};

// The certificate belongs to the connection: another one means another connection.
std::shared_ptr<net::Client> HttpClient::State::connect(const Credential& credential) {
  return connection.with([&](Connection& kept) {
    const bool is_same = kept.client && kept.used_for.certificate == credential.certificate &&
                         kept.used_for.key == credential.key;
    if (is_same) return kept.client;
    net::Endpoint endpoint{.host = url.host, .port = url.port};
    if (url.is_tls) {
      endpoint.tls = net::make_tls_context(net::TlsClientOptions{
          .ca = access.ca,
          .certificate = {.file = {}, .text = credential.certificate},
          .key = {.file = {}, .text = credential.key},
          .server_name = access.tls_server_name,
          .verify = !access.is_insecure,
      });
    }
    kept = {credential, std::make_shared<net::Client>(std::move(endpoint))};
    return kept.client;
  });
}

net::Request HttpClient::State::signed_with(net::Request request,
                                            const Credential& credential) const {
  request.target = url.base + request.target;
  request.headers.set("User-Agent", "hearth/" HEARTH_VERSION);
  if (!request.headers.find("Accept")) request.headers.set("Accept", "application/json");
  if (!credential.authorization.empty()) {
    request.headers.set("Authorization", credential.authorization);
  }
  if (!access.as.empty()) request.headers.set("Impersonate-User", access.as);
  if (!access.as_uid.empty()) request.headers.set("Impersonate-Uid", access.as_uid);
  for (const std::string& group : access.as_groups) request.headers.add("Impersonate-Group", group);
  return request;
}

// Once more with a new credential, if the one that was kept is no longer accepted.
net::Response HttpClient::State::ask(const net::Request& request, const Send& send) {
  const Credential used = credentials.current();
  net::Response response = send(*connect(used), signed_with(request, used));
  if (response.status != 401) return response;
  credentials.refuse(used);
  const Credential renewed = credentials.current();
  if (renewed == used) return response;
  return send(*connect(renewed), signed_with(request, renewed));
}

net::Response HttpClient::State::ask_once(const net::Request& request, Duration timeout) {
  const net::FetchOptions fetch{.timeout = timeout, .max_body_bytes = options.most_body_bytes};
  return ask(request, [&](net::Client& client, net::Request ready) {
    return client.fetch(std::move(ready), fetch);
  });
}

net::Response HttpClient::State::call(const net::Request& request) {
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  Backoff backoff(options.first_pause, options.most_pause);
  for (unsigned left = options.tries;; --left) {
    Duration pause{};
    const auto may_wait = [&] {
      return left > 1 && std::chrono::steady_clock::now() + pause < deadline;
    };
    try {
      net::Response response = ask_once(request, deadline - std::chrono::steady_clock::now());
      note_warnings(response);
      if (response.status >= 200 && response.status < 300) return response;
      const auto seconds = retry_after(response);
      const bool is_later = seconds && (response.status == 429 || response.status >= 500);
      // What was told to wait together shall not come back together.
      pause = std::chrono::seconds(seconds.value_or(0)) + backoff.next();
      if (!is_later || !may_wait()) {
        throw model::StatusError(status_of(response, access.server));
      }
    } catch (const model::StatusError&) {
      throw;
    } catch (const Error& error) {
      pause = backoff.next();
      const bool is_worth_it =
          error.code() == Code::unavailable && may_be_asked_twice(request.method);
      if (!is_worth_it || !may_wait()) throw;
    }
    options.pause(pause);
  }
}

Json HttpClient::State::call_json(const net::Request& request) {
  const net::Response response = call(request);
  try {
    return model::read_json(response.body);
  } catch (const Error& error) {
    fail(Code::invalid, "bad answer from {}: {}", access.server, error.what());
  }
}

WriteOptions HttpClient::State::completed(WriteOptions given) const {
  if (given.manager.empty()) given.manager = options.manager;
  return given;
}

HttpClient::HttpClient(const ClusterAccess& access, HttpClientOptions options)
    : state_(std::make_unique<State>(access, std::move(options))) {}

HttpClient::~HttpClient() = default;

Answer HttpClient::get(const ResourceId& resource, std::string_view ns, std::string_view name) {
  return state_->call_json(request_for("GET", object_path(resource, ns, name)));
}

List HttpClient::list(const ResourceId& resource, const ListOptions& options) {
  const std::string path = resource_path(resource, options.ns);
  return list_from_json(state_->call_json(request_for("GET", path, query_of(options))), resource);
}

Answer HttpClient::create(const ResourceId& resource, const Json& object,
                          const WriteOptions& options) {
  std::string path = checked_path(resource, namespace_of(object), {});
  const std::string query = query_of(state_->completed(options));
  return state_->call_json(with_body(request_for("POST", std::move(path), query), object));
}

Answer HttpClient::update(const ResourceId& resource, const Json& object,
                          std::string_view subresource, const WriteOptions& options) {
  std::string path = object_path(resource, namespace_of(object), name_of(object), subresource);
  const std::string query = query_of(state_->completed(options));
  return state_->call_json(with_body(request_for("PUT", std::move(path), query), object));
}

Answer HttpClient::patch(const ResourceId& resource, std::string_view ns, std::string_view name,
                         PatchKind kind, const Json& patch, const PatchOptions& options) {
  PatchOptions completed = options;
  if (completed.manager.empty()) completed.manager = state_->options.manager;
  std::string path = object_path(resource, ns, name, options.subresource);
  net::Request request = request_for("PATCH", std::move(path), query_of(completed, kind));
  return state_->call_json(with_body(std::move(request), patch, content_type_of(kind)));
}

Answer HttpClient::remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                          const DeleteOptions& options) {
  net::Request request = request_for("DELETE", object_path(resource, ns, name));
  return state_->call_json(with_body(std::move(request), body_of(options)));
}

Answer HttpClient::post(const ResourceId& resource, std::string_view ns, std::string_view name,
                        std::string_view subresource, const Json& body) {
  net::Request request = request_for("POST", object_path(resource, ns, name, subresource));
  return state_->call_json(with_body(std::move(request), body));
}

http::Response HttpClient::fetch(const http::Request& request) {
  return state_->call(request);
}

WatchEnd HttpClient::watch(const ResourceId& resource, const WatchOptions& options,
                           const std::function<void(Event event)>& handler,
                           const std::stop_token& stop) {
  WatchStream stream(handler, stop, state_->options.most_event_bytes);
  const Duration time = options.timeout > Duration::zero() ? options.timeout : kLongestWatch;
  const net::FetchOptions fetch{
      .timeout = time + kWatchSlack,
      .max_body_bytes = std::numeric_limits<std::uint64_t>::max(),
      .head = state_->options.timeout,
      .on_head = std::bind_front(&WatchStream::begin, &stream),
  };
  const Send send = [&](net::Client& client, net::Request ready) {
    return client.fetch_into(std::move(ready), std::bind_front(&WatchStream::receive, &stream),
                             fetch, stop);
  };
  net::Response response;
  try {
    const std::string path = resource_path(resource, options.ns);
    response = state_->ask(request_for("GET", path, query_of(options)), send);
  } catch (const Error&) {
    const auto end = stream.end_of_failure();
    if (!end) throw;
    return *end;
  }
  if (stop.stop_requested()) return WatchEnd::stopped;
  if (response.status == 200) return WatchEnd::closed;
  if (response.status == 410) return WatchEnd::expired;
  response.body = stream.refusal();
  throw model::StatusError(status_of(response, state_->access.server));
}

}  // namespace hearth::client
