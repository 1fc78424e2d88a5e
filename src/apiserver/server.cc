#include "apiserver/server.h"

#include <filesystem>

#include <boost/asio/awaitable.hpp>
#include <fmt/format.h>

#include "apiserver/backups.h"
#include "apiserver/body.h"
#include "apiserver/crds.h"
#include "apiserver/front.h"
#include "apiserver/furniture.h"
#include "apiserver/gate.h"
#include "apiserver/housekeeper.h"
#include "apiserver/local_client.h"
#include "apiserver/object_meta.h"
#include "apiserver/watching.h"
#include "base/guarded.h"
#include "base/time_text.h"
#include "linux/resource_limits.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/workers.h"
#include "remote/remote.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

namespace asio = boost::asio;

// A watch costs a connection; a cluster's worth of controllers has thousands.
constexpr std::size_t kMostConnections = 16384;
// Writes that wait for a worker; more are told to come back.
constexpr std::size_t kMostWaitingWrites = 4096;
constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";
// Keeps a definition until its objects are gone.
constexpr std::string_view kCleanup = "customresourcecleanup.apiextensions.k8s.io";
constexpr Duration kGrace = std::chrono::seconds(2);

// A catalogue and its documents.
struct Served {
  CataloguePtr catalogue;
  std::shared_ptr<const OpenApi> open_api;
};

// `previous`: what is the same is taken over.
Served make_served(const std::vector<Json>& definitions, const Catalogue* previous, bool measures) {
  Served served;
  served.catalogue = std::make_shared<const Catalogue>(definitions, previous, measures);
  served.open_api = std::make_shared<const OpenApi>(
      served.catalogue->groups(), served.catalogue->digest(), schema::object_meta());
  return served;
}

// As it stands in a URL.
std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : '[' + address + ']';
}

bool is_pod_stream(const Call& call) {
  if (!call.resource || call.resource->store_name != "pods" || call.path->name.empty())
    return false;
  const std::string& sub = call.path->subresource;
  return sub == "exec" || sub == "attach" || sub == "portforward" ||
         (sub == "log" && call.request.method == "GET");
}

net::Response too_large() {
  return Front::refuse(
      model::StatusError(
          {.code = 413,
           .reason = "RequestEntityTooLarge",
           .message = fmt::format("Request entity too large: limit is {}", kMostBodyBytes)}),
      /*is_pretty=*/false);
}

}  // namespace

struct Server::State {
  explicit State(ServerOptions given)
      : options(std::move(given)),
        folder(options.state_dir + "/kube"),
        store(prepare_store(folder)),
        served(make_served({}, nullptr, static_cast<bool>(options.measure))),
        objects(store, clock, [this] { return current(); }),
        gate(store, {options.state_dir, server_names(options), options.admin_token}, clock),
        housekeeper(store, objects, [this] { return current(); }, clock,
                    {.ca_pem = gate.ca_certificate(),
                     .definitions_changed = [this] { read_definitions(); }}),
        front({.store = store,
               .objects = objects,
               .gate = gate,
               .clock = clock,
               .catalogue = [this] { return current(); },
               .open_api =
                   [this] { return served.with([](const Served& now) { return now.open_api; }); },
               .definitions_changed = [this] { read_definitions(); },
               .address = {},
               .measure = options.measure}),
        local(front, gate.admin()),
        workers(options.workers, kMostWaitingWrites),
        backups(store, folder) {}

  static std::vector<std::string> server_names(const ServerOptions& options) {
    std::vector<std::string> names = options.names;
    names.push_back(options.address);
    return names;
  }

  static store::Options prepare_store(const std::string& folder) {
    std::filesystem::create_directories(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    store::Options store_options;
    store_options.path = folder + "/objects.db";
    return store_options;
  }

  CataloguePtr current() const {
    return served.with([](const Served& now) { return now.catalogue; });
  }

  // Makes what CRDs describe served, or no longer served.
  void read_definitions() {
    const std::lock_guard lock(definitions_mutex);
    std::vector<Json> definitions;
    store::ListQuery query;
    query.resource = kDefinitions;
    for (const store::ObjectPtr& object : store.list(query).objects)
      definitions.push_back(model::parse_json(object->text).value);
    for (std::size_t at = 0; at < definitions.size(); ++at) settle(definitions, at, "");
    Served next = make_served(definitions, current().get(), static_cast<bool>(options.measure));
    for (std::size_t at = 0; at < definitions.size(); ++at)
      if (const auto problem = next.catalogue->problems().find(name_of(definitions[at]));
          problem != next.catalogue->problems().end())
        settle(definitions, at, problem->second);
    served.with([&](Served& now) { now = std::move(next); });
  }

  // Writes into a definition's status what became of its names, if that is news.
  void settle(std::vector<Json>& definitions, std::size_t at, std::string_view problem) {
    std::vector<Json> others;
    for (std::size_t other = 0; other < definitions.size(); ++other)
      if (other != at) others.push_back(definitions[other]);
    Json& definition = definitions[at];
    const Json status = crd_status(definition, others, format_rfc3339(clock.now()), problem);
    const Json* known = model::find(definition, {"status"});
    if (known && model::is_same(*known, status)) return;
    definition.as_object()["status"] = status;
    const ResourcePtr resource = current()->storage(kDefinitions);
    objects.amend({*resource, "", std::string(name_of(definition))}, [&](Json& object) {
      object.as_object()["status"] = status;
      if (!is_deleting(object)) add_finalizer(object, kCleanup);
      return true;
    });
  }

  asio::awaitable<void> serve(net::Request request, net::Stream& stream) {
    std::optional<Call> call;
    std::optional<net::Response> refusal;
    try {
      call.emplace(front.understand(request));
    } catch (const std::exception& failure) {
      refusal = Front::refuse(failure, /*is_pretty=*/false);
    }
    if (!refusal && is_pod_stream(*call)) {
      try {
        co_await serve_pod_stream(request, *call, stream);
      } catch (const model::StatusError& failure) {
        // Only thrown as long as nothing was answered.
        refusal = Front::refuse(failure, call->is_pretty);
      }
    } else if (!refusal && call->is_watch && call->resource && !call->resource->measured) {
      co_await serve_watch(front, *call, stream);
    } else if (!refusal && request.path == kBackupPath && request.method == "GET") {
      linux::Fd copy;
      try {
        copy = co_await workers.run([&] { return backups.copy(); });
      } catch (const Error& failure) {
        refusal = Front::refuse(failure, call->is_pretty);
      }
      if (!refusal) co_await Backups::send(std::move(copy), stream, workers);
    } else if (!refusal) {
      co_await serve_whole(request, *call, stream);
    }
    if (refusal) co_await stream.respond(std::move(*refusal));
  }

  asio::awaitable<void> serve_whole(net::Request& request, const Call& call, net::Stream& stream) {
    bool fits = true;
    try {
      request.body = co_await stream.read_all(kMostBodyBytes);
    } catch (const Error& error) {
      if (error.code() != Code::exhausted) throw;
      fits = false;
    }
    net::Response response;
    if (!fits) {
      response = too_large();
      response.headers.add("Connection", "close");
    } else if (front.may_block(call)) {
      response = co_await workers.run([&] { return front.answer(call); });
    } else {
      response = front.answer(call);
    }
    co_await stream.respond(std::move(response));
  }

  asio::awaitable<void> serve_pod_stream(net::Request request, const Call& call,
                                         net::Stream& stream) {
    const std::string sub = call.path->subresource;
    const Json pod = front.pod_of(call);
    remote::Backend& backend = options.backend ? *options.backend : no_node;
    if (sub == "log")
      co_await remote::serve_log(std::move(request), stream, pod, backend);
    else if (sub == "exec")
      co_await remote::serve_exec(std::move(request), stream, pod, backend);
    else if (sub == "attach")
      co_await remote::serve_attach(std::move(request), stream, pod, backend);
    else
      co_await remote::serve_portforward(std::move(request), stream, pod, backend);
  }

  const SystemClock clock;
  ServerOptions options;
  std::string folder;
  store::Store store;
  Guarded<Served> served;
  std::mutex definitions_mutex;  // one reader of definitions at a time
  Objects objects;
  Gate gate;
  Housekeeper housekeeper;
  Front front;
  LocalClient local;
  remote::NoNode no_node;
  net::Workers workers;
  Backups backups;
  std::unique_ptr<net::Server> http;
  std::string kubeconfig;
};

Server::Server(ServerOptions options) : state_(std::make_unique<State>(std::move(options))) {
  State& state = *state_;
  put_definitions(state.objects, state.store, *state.current());
  state.read_definitions();
  furnish(state.objects, state.store, *state.current());
}

Server::~Server() {
  stop();
}

void Server::start() {
  State& state = *state_;
  // Shells give a process 1,024 descriptors unless it asks for more; each watch takes one.
  linux::raise_own_limit(RLIMIT_NOFILE);
  net::Router router;
  router.add_stream("*", "/{path...}", std::bind_front(&State::serve, &state));
  router.set_error_renderer([](const net::Problem& problem, const net::Request&) {
    model::Status status = model::status_of(Error(problem.code, problem.message));
    status.code = problem.status;
    if (problem.status == 413) status.reason = "RequestEntityTooLarge";
    return Front::refuse(model::StatusError(std::move(status)), /*is_pretty=*/false);
  });
  net::ServerOptions http;
  http.address = state.options.address;
  http.port = state.options.port;
  http.listen_fd = std::exchange(state.options.listen_fd, -1);
  http.threads = state.options.io_threads;
  http.max_connections = kMostConnections;
  http.tls = state.gate.tls();
  state.http = std::make_unique<net::Server>(std::move(http), std::move(router));
  state.http->start();
  state.front.set_address(fmt::format("{}:{}", bracketed(state.options.address), port()));
  state.kubeconfig = state.gate.write_kubeconfig(url());
  state.housekeeper.start();
}

void Server::stop() {
  if (!state_) return;
  if (state_->http) state_->http->stop(kGrace);
  state_->housekeeper.stop();
}

std::uint16_t Server::port() const {
  return state_->http->port();
}

std::string Server::url() const {
  return fmt::format("https://{}:{}", bracketed(state_->options.address), port());
}

const std::string& Server::kubeconfig_path() const {
  return state_->kubeconfig;
}

void Server::welcome(const client::ResourceId& kind, client::Welcomer welcomer) {
  state_->objects.set_welcomer({kind.group, kind.plural}, std::move(welcomer));
}

void Server::hurry_news() {
  state_->store.hurry_news();
}

client::Client& Server::client() {
  return state_->local;
}

void Server::backup(const std::string& path) {
  state_->store.backup(path);
}

}  // namespace hearth::apiserver
