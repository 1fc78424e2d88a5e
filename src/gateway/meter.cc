#include "gateway/meter.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace hearth::gateway {
namespace {

// Clients can make methods up; each would be a time series.
constexpr std::array<std::string_view, 8> kMethods = {"GET",    "HEAD",    "POST",  "PUT",
                                                      "DELETE", "OPTIONS", "PATCH", "other"};

std::uint32_t method_number(std::string_view method) {
  for (std::uint32_t i = 0; i + 1 < kMethods.size(); ++i) {
    if (kMethods[i] == method) return i;
  }
  return kMethods.size() - 1;
}

std::vector<double> router_buckets() {
  return {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 180};
}

}  // namespace

Meter::Meter(metrics::Registry* registry) : registry_(registry) {
  if (registry_ == nullptr) return;
  inflight_ = &registry_->gauge("sandbox_router_inflight_requests", "Requests under way.");
  connections_ = &registry_->gauge("hearth_gateway_connections", "Connections of clients.");
  retries_ = &registry_->counter("sandbox_router_upstream_retries_total",
                                 "Connections to sandboxes that were tried again.");
  bytes_up_ = &registry_->counter("hearth_gateway_bytes_total", "Bytes of bodies passed on.",
                                  {{"direction", "up"}});
  bytes_down_ = &registry_->counter("hearth_gateway_bytes_total", "Bytes of bodies passed on.",
                                    {{"direction", "down"}});
  wakes_ = &registry_->counter("hearth_gateway_wakes_total", "Requests that woke a sandbox.");
  const auto misses = [&](std::string what) {
    return &registry_->counter("hearth_gateway_route_misses_total",
                               "Requests for sandboxes that are not known.",
                               {{"sandbox", std::move(what)}});
  };
  unknown_ = misses("unknown");
  gone_ = misses("gone");
  first_byte_ = &registry_->histogram("hearth_gateway_first_byte_seconds",
                                      "From a request's head to that of its answer.",
                                      metrics::exponential_buckets(.0001, 2, 16));
  registry_
      ->gauge("sandbox_router_build_info", "The version that runs.", {{"version", HEARTH_VERSION}})
      .set(1);
}

Meter::Space* Meter::space(const std::string& ns) {
  if (registry_ == nullptr) return nullptr;
  Space& found = spaces_[ns];
  if (found.granted == nullptr) {
    found.ns = ns;
    const auto decisions = [&](std::string decision) {
      return &registry_->counter("sandbox_router_authz_decisions_total",
                                 "Whether requests were let in.",
                                 {{"sandbox_namespace", ns}, {"decision", std::move(decision)}});
    };
    found.granted = decisions("allow");
    found.denied = decisions("deny");
  }
  return &found;
}

void Meter::began() {
  if (inflight_ != nullptr) inflight_->add(1);
}

void Meter::ended() {
  if (inflight_ != nullptr) inflight_->add(-1);
}

void Meter::answered(Space* space, std::string_view method, unsigned status, Duration took) {
  if (registry_ == nullptr || space == nullptr) return;
  const std::uint32_t number = method_number(method);
  Space::Pair& pair = space->answers[(number << 16) | status];
  if (pair.count == nullptr) {
    const metrics::Labels labels = {{"method", std::string(kMethods[number])},
                                    {"code", fmt::format("{}", status)},
                                    {"sandbox_namespace", space->ns}};
    pair.count = &registry_->counter("sandbox_router_requests_total",
                                     "Requests to sandboxes, by answer.", labels);
    pair.time = &registry_->histogram("sandbox_router_request_duration_seconds",
                                      "From a request's head to the end of its answer.",
                                      router_buckets(), labels);
  }
  pair.count->add();
  pair.time->observe(took);
}

void Meter::failed(Space* space, std::string_view reason) {
  if (registry_ == nullptr || space == nullptr) return;
  registry_
      ->counter("sandbox_router_upstream_errors_total", "Requests that a sandbox did not answer.",
                {{"sandbox_namespace", space->ns}, {"reason", std::string(reason)}})
      .add();
}

void Meter::decided(Space* space, bool is_granted) {
  if (space != nullptr) (is_granted ? space->granted : space->denied)->add();
}

void Meter::first_byte(Duration took) {
  if (first_byte_ != nullptr) first_byte_->observe(took);
}

void Meter::retried() {
  if (retries_ != nullptr) retries_->add();
}

void Meter::connected(int by) {
  if (connections_ != nullptr) connections_->add(by);
}

void Meter::moved(std::uint64_t up, std::uint64_t down) {
  if (bytes_up_ == nullptr) return;
  if (up > 0) bytes_up_->add(up);
  if (down > 0) bytes_down_->add(down);
}

void Meter::woke() {
  if (wakes_ != nullptr) wakes_->add();
}

void Meter::missed(bool is_gone) {
  if (registry_ != nullptr) (is_gone ? gone_ : unknown_)->add();
}

}  // namespace hearth::gateway
