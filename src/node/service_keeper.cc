#include "node/service_keeper.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

constexpr Duration kSyncPatience = std::chrono::minutes(1);
// Pods come and go by the hundred: once for all of them is enough.
constexpr Duration kRest = std::chrono::milliseconds(30);
constexpr Duration kMostRest = std::chrono::seconds(1);
// How soon a runtime that was started again is told.
constexpr Duration kLookPeriod = std::chrono::seconds(2);

bool is_same(const Json& left, const Json& right, std::string_view member) {
  const Json* one = model::find(left, {member});
  const Json* other = model::find(right, {member});
  return (!one && !other) || (one && other && model::is_same(*one, *other));
}

}  // namespace

ServiceKeeper::ServiceKeeper(client::Client& client, client::WatchCache& pods,
                             client::WatchCache& services, ServiceKeeperOptions options)
    : client_(client),
      pods_(pods),
      services_(services),
      options_(std::move(options)),
      slices_(client, client::kEndpointSlices) {
  for (client::WatchCache* cache : {&pods_, &services_})
    cache->add_handlers(
        {.on_add = [this](const client::Object&) { note(); },
         .on_update = [this](const client::Object&, const client::Object&) { note(); },
         .on_delete = [this](const client::Object&) { note(); }});
}

void ServiceKeeper::answer_names(std::uint16_t port, std::function<void(Names names)> on_names) {
  options_.name_server = port;
  options_.on_names = std::move(on_names);
}

void ServiceKeeper::start() {
  slices_.start();
  for (const client::WatchCache* cache : {&services_, &pods_, &slices_})
    if (!cache->wait_synced(kSyncPatience))
      fail(Code::timeout, "services could not be listed within a minute");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void ServiceKeeper::stop() {
  thread_ = {};
  slices_.stop();
}

void ServiceKeeper::note() {
  const std::lock_guard lock(mutex_);
  has_changed_ = true;
  news_.notify_one();
}

void ServiceKeeper::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      news_.wait_for(lock, stop, kLookPeriod, [&] { return has_changed_; });
      if (stop.stop_requested()) return;
      const bool is_news = std::exchange(has_changed_, false);
      if (!is_news && !is_runtime_gone()) continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    try {
      const std::vector<client::Object> services = services_.list();
      const PodIndex pods(pods_.list());
      if (options_.on_names) options_.on_names(service_names(services, pods, options_.domain));
      tell_runtime(service_rules(services, pods));
      write_slices(services, pods);
    } catch (const std::exception& error) {
      log::warning("services are not up to date; trying again", {{"error", error.what()}});
      runtime_.reset();
    }
    const Duration took = std::chrono::steady_clock::now() - begin;
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, stop, std::clamp(10 * took, kRest, kMostRest), [] { return false; });
  }
}

bool ServiceKeeper::is_runtime_gone() const {
  if (!runtime_) return true;
  pollfd wanted{.fd = runtime_->fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, 0) != 0;
}

void ServiceKeeper::tell_runtime(std::vector<network::Service> rules) {
  const bool is_new = is_runtime_gone();
  if (is_new) runtime_ = std::make_unique<runtime::RuntimeClient>(options_.state_dir);
  if (!is_new && rules == told_) return;
  runtime_->set_services(rules, options_.name_server);
  told_ = std::move(rules);
}

void ServiceKeeper::write_slices(std::span<const client::Object> services, const PodIndex& pods) {
  for (const client::Object& service : services) {
    const model::JsonObject* selector = model::object_at(*service, {"spec", "selector"});
    if (!selector || selector->empty() || model::is_deleting(*service)) continue;
    try {
      write_slice(endpoint_slice(*service, pods));
    } catch (const model::StatusError& error) {
      // The Service, its namespace or an older version of the slice is gone; there will be news.
      log::debug("an EndpointSlice was not written", {{"error", error.what()}});
    }
  }
}

// Those that no longer have a Service go with it: it owns them.
void ServiceKeeper::write_slice(const Json& wanted) {
  const client::Object known = slices_.find(model::namespace_of(wanted), model::name_of(wanted));
  if (!known) {
    client_.create(client::kEndpointSlices, wanted);
    return;
  }
  if (is_same(*known, wanted, "endpoints") && is_same(*known, wanted, "ports")) return;
  Json next = *known;
  next.as_object()["endpoints"] = wanted.at("endpoints");
  next.as_object()["ports"] = wanted.at("ports");
  client_.update(client::kEndpointSlices, next);
}

}  // namespace hearth::node
