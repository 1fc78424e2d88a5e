#include "gateway/gateway.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "client/watch_cache.h"
#include "gateway/ahead.h"
#include "gateway/dialler.h"
#include "gateway/errands.h"
#include "gateway/lane.h"
#include "gateway/spares.h"
#include "gateway/table.h"
#include "net/workers.h"

namespace hearth::gateway {
namespace {

// Connecting takes a millisecond where the sandbox is here, and blocks.
constexpr unsigned kDialThreads = 16;
constexpr std::size_t kDialQueue = 4096;
// Each looks at every sandbox there is.
constexpr std::size_t kSignerQueue = 256;
// Waking takes tens of milliseconds or seconds.
constexpr unsigned kWakeThreads = 32;
constexpr std::size_t kWakeQueue = 1024;

constexpr int kBacklog = 4096;

// Descriptors for the rest of the process.
constexpr std::size_t kOtherDescriptors = 512 + 2 * Spares::kMost;

constexpr Refusal kWakeForbidden{403, "The sandbox may not be resumed"};
constexpr Refusal kWakeConflict{409, "The sandbox is in transition"};
constexpr Refusal kWakeTooMany{429, "Too many sandboxes run already"};

Refusal refusal_from(Code code) {
  switch (code) {
    case Code::forbidden:
    case Code::unauthenticated:
      return kWakeForbidden;
    case Code::conflict:
      return kWakeConflict;
    case Code::exhausted:
      return kWakeTooMany;
    default:
      return kNotFound;
  }
}

// A request costs two descriptors.
std::size_t connection_limit(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t spare = limit.rlim_cur > 2 * kOtherDescriptors
                                ? limit.rlim_cur - kOtherDescriptors
                                : limit.rlim_cur / 2;
  return std::min(wanted, std::max<std::size_t>(spare / 2, 16));
}

std::uint16_t port_of(int socket_fd) {
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  if (::getsockname(socket_fd, reinterpret_cast<sockaddr*>(&place), &size) != 0) return 0;
  if (place.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in&>(place).sin_port);
  if (place.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6&>(place).sin6_port);
  return 0;
}

linux::Fd listen_on(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    fail(Code::invalid, "'{}' is not an address to listen on", address);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  linux::Fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_errno("make a socket");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw_errno("listen on {}:{}", address, port);
  }
  return socket;
}

}  // namespace

struct Gateway::State {
  State(const client::WatchCache& pods, GatewayOptions options)
      : table(table_options(options)),
        dialler(pods, options.reach),
        dials(std::make_unique<net::Workers>(kDialThreads, kDialQueue)),
        signers(1, kSignerQueue, Errands::Rank::background),
        wakers(std::make_unique<net::Workers>(kWakeThreads, kWakeQueue)),
        ahead(dialler),
        spares(dialler,
               options.registry == nullptr
                   ? nullptr
                   : &options.registry->gauge("hearth_gateway_spare_connections",
                                              "Connections to sandboxes that nobody has yet.")) {
    if (options.registry != nullptr) {
      learnt = &options.registry->counter("hearth_gateway_routes_learnt_total",
                                          "Sandboxes learnt of before the watch told.");
      forgotten = &options.registry->counter("hearth_gateway_routes_forgotten_total",
                                             "Sandboxes known to be gone before the watch told.");
    }
    shared.rules = {.key_owner = options.key_owner,
                    .router_token = options.router_token,
                    .router_open = options.router_open};
    shared.table = &table;
    shared.dialler = &dialler;
    shared.dials = dials.get();
    shared.signers = &signers;
    shared.ahead = &ahead;
    shared.spares = &spares;
    shared.upstream_tls = net::make_tls_context(net::TlsClientOptions{.verify = false});
    shared.max_connections = connection_limit(options.limits.connections);
    if (options.wake) shared.wake = [this](const model::Key& key) { return wake(key); };
    shared.options = std::move(options);
    for (const Listen& listen : shared.options.listens) {
      contexts.push_back(listen.tls ? net::make_tls_context(*listen.tls) : nullptr);
    }
  }

  TableOptions table_options(const GatewayOptions& options) {
    return {
        .envd_token = options.envd_token,
        .traffic_token = options.traffic_token,
        .on_change =
            [this](const RoutePtr& before, const RoutePtr& now) {
              look_after_first(before, now);
              if (before && now && before->serial == now->serial && before->is_e2b == now->is_e2b)
                return;
              const std::lock_guard lock(lanes_mutex);
              for (const auto& lane : lanes) lane->after_change(before, now);
            },
        .entries = options.registry == nullptr
                       ? nullptr
                       : &options.registry->gauge("hearth_gateway_routes",
                                                  "Sandboxes that requests can go to.")};
  }

  // The connection for its first request. Who has just been given one will soon send it something.
  void look_after_first(const RoutePtr& before, const RoutePtr& now) {
    const bool is_same = before && now && before->serial == now->serial;
    if (before && !is_same) ahead.drop({.serial = before->serial, .port = kEnvdPort});
    if (shared.options.reach == nullptr) return;
    const bool is_spare = now && now->is_spare;
    if (before && before->is_spare && !(is_same && is_spare)) {
      Dialled made = spares.take(*before);
      if (is_same && made.state == DialState::connected)
        ahead.put({.serial = now->serial, .port = kEnvdPort}, std::move(made));
    }
    if (is_spare) spares.keep(now);
  }

  // One for all who wait.
  bool wake(const model::Key& key) {
    const bool is_new = waking.with([&](auto& keys) { return keys.insert(key).second; });
    if (!is_new) return true;
    const auto work = [this, key] {
      std::optional<Refusal> refusal;
      try {
        if (shared.is_stopping) fail(Code::unavailable, "the gateway is going down");
        shared.options.wake(key);
      } catch (const Error& error) {
        log::warning("wake a sandbox", {{"sandbox", key.text()}, {"why", error.what()}});
        refusal = refusal_from(error.code());
      } catch (const std::exception& error) {
        log::warning("wake a sandbox", {{"sandbox", key.text()}, {"why", error.what()}});
        refusal = kNotFound;
      }
      waking.with([&](auto& keys) { keys.erase(key); });
      const std::lock_guard lock(lanes_mutex);
      for (const auto& lane : lanes) lane->after_wake(key, refusal);
    };
    // Those of one namespace leave threads to others.
    const bool is_begun = wakers->start(work, key.ns);
    if (!is_begun) waking.with([&](auto& keys) { keys.erase(key); });
    return is_begun;
  }

  void listen() {
    for (std::size_t i = 0; i < shared.options.listens.size(); ++i) {
      const Listen& listen = shared.options.listens[i];
      const bool is_given = listen.listen_fd >= 0;
      linux::Fd socket =
          is_given ? linux::Fd(listen.listen_fd) : listen_on(listen.address, listen.port);
      linux::set_nonblocking(socket.get(), true);
      ports.push_back(port_of(socket.get()));
      lanes[i % lanes.size()]->add_listener(std::move(socket), contexts[i]);
    }
  }

  metrics::Counter* learnt = nullptr;  // null: nobody counts
  metrics::Counter* forgotten = nullptr;
  Table table;
  Dialler dialler;
  Shared shared;
  std::vector<std::shared_ptr<net::TlsContext>> contexts;
  std::vector<std::uint16_t> ports;
  Guarded<std::set<model::Key>> waking;
  std::mutex lanes_mutex;  // guards lanes against news before start() and after stop()
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<std::jthread> threads;
  std::unique_ptr<net::Workers> dials;
  Errands signers;
  std::unique_ptr<net::Workers> wakers;
  Ahead ahead;
  Spares spares;
};

Gateway::Gateway(client::WatchCache& sandboxes, const client::WatchCache& pods,
                 GatewayOptions options)
    : state_(std::make_unique<State>(pods, std::move(options))) {
  Table* table = &state_->table;
  sandboxes.add_handlers(
      {.on_add = [table](const client::Object& now) { table->put(*now); },
       .on_update = [table](const client::Object&, const client::Object& now) { table->put(*now); },
       .on_delete = [table](const client::Object& last) { table->remove(*last); }});
}

Gateway::~Gateway() {
  stop();
}

void Gateway::start() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.lanes_mutex);
    for (unsigned i = 0; i < std::max(state.shared.options.threads, 1U); ++i) {
      state.lanes.push_back(std::make_unique<Lane>(state.shared));
      state.shared.lanes.push_back(state.lanes.back().get());
    }
  }
  state.listen();
  for (const auto& lane : state.lanes) {
    state.threads.emplace_back([&lane = *lane] {
      try {
        lane.run();
      } catch (const std::exception& error) {
        log::error("a thread of the gateway ended", {{"why", error.what()}});
        std::abort();  // its connections would hang for ever
      }
    });
  }
}

void Gateway::stop(Duration grace) {
  State& state = *state_;
  if (state.threads.empty()) return;
  for (const auto& lane : state.lanes) lane->drain();
  const Deadline end = Deadline::after(grace);
  while (state.shared.connections > 0 && !end.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const auto& lane : state.lanes) lane->cut();
  state.threads.clear();
  state.shared.is_stopping = true;
  state.dials.reset();
  state.signers.stop();
  state.wakers.reset();
  state.ahead.stop();
  state.spares.stop();
  const std::lock_guard lock(state.lanes_mutex);
  state.lanes.clear();
}

std::vector<std::uint16_t> Gateway::ports() const {
  return state_->ports;
}

std::size_t Gateway::connections() const {
  return state_->shared.connections;
}

void Gateway::learn(const model::Json& sandbox) {
  if (state_->table.put(sandbox) && state_->learnt != nullptr) state_->learnt->add();
}

void Gateway::forget(const model::Json& last) {
  if (state_->table.remove(last) && state_->forgotten != nullptr) state_->forgotten->add();
}

// Where many ask, whoever was first would wait for what the others may need.
void Gateway::expect(const model::Key& key, std::uint16_t port) {
  const Shared& shared = state_->shared;
  if (shared.control_requests > std::max(shared.options.threads, 1U)) return;
  const RoutePtr route = state_->table.find(key.ns, key.name);
  if (!route || route->state != RouteState::running) return;
  if (port == kEnvdPort && state_->spares.has(*route)) return;
  state_->ahead.dial(route, port);
}

std::optional<ActivityReport> Gateway::activity(const model::Key& key) const {
  const RoutePtr route = state_->table.find(key.ns, key.name);
  if (!route) return std::nullopt;
  const Activity& activity = *route->activity;
  return ActivityReport{.last = Time(std::chrono::milliseconds(activity.last_milliseconds.load())),
                        .open = activity.open};
}

}  // namespace hearth::gateway
