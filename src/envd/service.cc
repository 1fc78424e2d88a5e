#include <algorithm>

#include "base/json_text.h"
#include "envd/cors.h"
#include "envd/envd.h"
#include "envd/service_internal.h"
#include "inside/paths.h"
#include "serve/server.h"

namespace hearth::envd {

struct Service::RpcRoute {
  std::string_view path;
  Rpc run;
  bool streams = false;
};

struct Service::RestRoute {
  std::string_view path;
  std::string_view method;
  Rest run;
  bool open = false;  // decides itself who may call it
};

const Service::RpcRoute* Service::find_rpc(std::string_view path) {
  static constexpr RpcRoute kRoutes[] = {
      {"/process.Process/Start", &Service::start, true},
      {"/process.Process/Connect", &Service::connect, true},
      {"/process.Process/List", &Service::list},
      {"/process.Process/Update", &Service::update},
      {"/process.Process/SendInput", &Service::send_input},
      {"/process.Process/StreamInput", &Service::stream_input, true},
      {"/process.Process/SendSignal", &Service::send_signal},
      {"/process.Process/CloseStdin", &Service::close_stdin},
      {"/filesystem.Filesystem/Stat", &Service::stat},
      {"/filesystem.Filesystem/MakeDir", &Service::make_dir},
      {"/filesystem.Filesystem/Move", &Service::move},
      {"/filesystem.Filesystem/ListDir", &Service::list_dir},
      {"/filesystem.Filesystem/Remove", &Service::remove},
      {"/filesystem.Filesystem/WatchDir", &Service::watch_dir, true},
      {"/filesystem.Filesystem/CreateWatcher", &Service::create_watcher},
      {"/filesystem.Filesystem/GetWatcherEvents", &Service::get_watcher_events},
      {"/filesystem.Filesystem/RemoveWatcher", &Service::remove_watcher},
  };
  const auto* found = std::ranges::find(kRoutes, path, &RpcRoute::path);
  return found == std::end(kRoutes) ? nullptr : found;
}

// HEAD is a GET whose answer has no body: the exchange sees to that.
const Service::RestRoute* Service::find_rest(std::string_view path, std::string_view method) {
  static constexpr RestRoute kRoutes[] = {
      {"/health", "GET", &Service::get_health, true},
      {"/metrics", "GET", &Service::get_metrics},
      {"/envs", "GET", &Service::get_envs},
      {"/init", "POST", &Service::post_init, true},
      {"/files", "GET", &Service::get_file, true},
      {"/files", "POST", &Service::post_files, true},
      {"/files/compose", "POST", &Service::compose_files},
  };
  const RestRoute* of_path = nullptr;
  for (const RestRoute& route : kRoutes) {
    if (route.path != path) continue;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) return &route;
    of_path = &route;
  }
  if (of_path != nullptr) throw RestError(405, "method not allowed");
  return nullptr;
}

namespace {

unsigned rest_status(const Error& error) {
  if (const auto* rest = dynamic_cast<const RestError*>(&error)) return rest->status();
  if (const auto* rpc = dynamic_cast<const RpcError*>(&error)) return status_of(rpc->rpc_code());
  // The only thing that runs out for these calls is the disk.
  if (error.code() == Code::exhausted) return 507;
  return http::status_from_code(error.code());
}

// Each holds a thread of the server, and may for days. The rest of its threads is for what is done
// at once: whatever listens, the sandbox answers, lists its files, and kills.
constexpr std::size_t kMostStreams = 896;
static_assert(kMostStreams < serve::ServerOptions{}.threads);

void respond_problem(serve::Exchange& exchange, unsigned status, std::string_view message) {
  respond_json(exchange, status,
               fmt::format(R"({{"code":{},"message":{}}})", status, json_quote(message)));
}

// Reads on, so that a client that sends first and listens later hears the answer. Strangers do not
// get a thread for as long as they like.
void drain(serve::Exchange& exchange, bool is_stranger) {
  if (exchange.is_body_held_back()) return;
  if (is_stranger) {
    exchange.drain();
    return;
  }
  while (!exchange.read_piece().empty()) {
  }
}

}  // namespace

Service::Service(guest::Core& core) : core_(core), processes_(core) {
  write_ids();
  rehearse();
}

void Service::handle(serve::Exchange& exchange) {
  try {
    route(exchange);
  } catch (const Error& error) {
    if (exchange.begun() || error.code() == Code::unavailable) throw;
    const unsigned status = rest_status(error);
    const std::string message = error.what();
    drain(exchange, status == 401);
    respond_problem(exchange, status, message);
  }
}

void Service::route(serve::Exchange& exchange) {
  const http::Request& request = exchange.request();
  if (request.method == "OPTIONS") return exchange.respond(preflight_response(request));
  const RestRoute* rest = find_rest(request.path, request.method);
  if (rest == nullptr || !rest->open) check_token(request, core_.settings().token);
  if (rest != nullptr) return (this->*rest->run)(exchange);
  const RpcRoute* rpc = find_rpc(request.path);
  if (rpc == nullptr) throw RestError(404, "page not found");
  if (request.method != "POST") throw RestError(405, "method not allowed");
  run_rpc(exchange, *rpc);
}

void Service::run_rpc(serve::Exchange& exchange, const RpcRoute& route) {
  auto call = find_call(exchange.request().headers);
  if (!call || call->is_stream != route.streams) {
    http::Response response{.status = 415};
    response.headers.add("Accept-Post", route.streams
                                            ? "application/connect+json, application/connect+proto"
                                            : "application/json, application/proto");
    add_cors(response.headers);
    return exchange.respond(response);
  }
  try {
    read_call_head(exchange.request().headers, *call);
    std::optional<Seat> seat;
    if (route.streams && !seat.emplace(streams_, kMostStreams)) {
      throw RpcError(RpcCode::resource_exhausted,
                     fmt::format("{} streams are open in this sandbox; close some", kMostStreams));
    }
    (this->*route.run)(exchange, *call);
  } catch (const Error& error) {
    const RpcProblem problem = rpc_problem(error);
    if (route.streams) return RpcStream(exchange, call->codec).finish(problem);
    if (exchange.begun()) throw;
    respond_json(exchange, status_of(problem.code), problem_json(problem));
  }
}

std::string receive_message(serve::Exchange& exchange, const Call& call) {
  if (!call.is_stream) {
    std::string body = exchange.read_body(kMaxMessage);
    return body.empty() && call.codec == Codec::json ? "{}" : body;
  }
  auto envelope = EnvelopeReader(exchange.source(), &exchange.kept()).next();
  if (!envelope || (envelope->flags & kEndOfStream) != 0)
    fail(Code::invalid, "the call has no message");
  return std::move(envelope->payload);
}

http::Response unary_response(const Call& call, std::string body) {
  http::Response response;
  response.headers.add("Content-Type",
                       call.codec == Codec::json ? "application/json" : "application/proto");
  add_cors(response.headers);
  response.body = std::move(body);
  return response;
}

void respond_json(serve::Exchange& exchange, unsigned status, std::string json) {
  http::Response response = http::json_response(status, std::move(json));
  add_cors(response.headers);
  exchange.respond(response);
}

Service::Place Service::place_of(const std::string& user, const std::string& path) const {
  const guest::Settings settings = core_.settings();
  Place place{.user = find_user(user, settings.user), .path = {}};
  place.path = inside::expand_path(path, {.home = place.user.home, .working = settings.directory});
  return place;
}

EntryInfo entry_info(inside::Entry entry, bool shortened) {
  EntryInfo info;
  info.name = std::move(entry.name);
  info.path = std::move(entry.path);
  switch (entry.kind) {
    case inside::Entry::Kind::file:
      info.type = FileType::file;
      break;
    case inside::Entry::Kind::folder:
      info.type = FileType::directory;
      break;
    case inside::Entry::Kind::other:
      break;
  }
  if (shortened) return info;
  info.size = entry.size;
  info.mode = entry.mode;
  info.permissions = std::move(entry.permissions);
  info.owner = std::move(entry.owner);
  info.group = std::move(entry.group);
  info.modified_time = entry.modified;
  info.symlink_target = std::move(entry.link_target);
  info.metadata = std::move(entry.metadata);
  info.is_symlink = entry.is_link;
  return info;
}

std::vector<std::pair<std::string, std::string>> sandbox_variables(
    const std::vector<std::string>& environment) {
  std::vector<std::pair<std::string, std::string>> variables{{"E2B_SANDBOX", "true"}};
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos)
      variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

serve::Handler make_handler(guest::Core& core) {
  auto service = std::make_shared<Service>(core);
  return [service](serve::Exchange& exchange) { service->handle(exchange); };
}

}  // namespace hearth::envd
