// Pods as Services and network policies look at them: addresses, ports, labels. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/watch_cache.h"
#include "model/json.h"
#include "network/policy.h"

namespace hearth::node {

using model::Json;

// Where a pod is reached: status.podIP of one that is not over. 0: nowhere.
std::uint32_t address_of_pod(const Json& pod);

// Of a port, wherever it is said; nothing for SCTP, which does not pass.
std::optional<network::Protocol> find_protocol(std::string_view text);
// 0 for none.
std::uint16_t port_number(const Json& value, model::Path path);
// A container's port by its name; protocols have to agree. 0 for none.
std::uint16_t find_named_port(const Json& pod, std::string_view name, network::Protocol protocol);
// The number that a Service's port leads to in a pod: targetPort, by name or number. 0: nowhere.
std::uint16_t target_port(const Json& service_port, const Json& pod);

// Whether spec.selector of a Service, if it has one, selects the pod. Namespaces are not compared.
bool selects(const Json& service, const Json& pod);

// Pods that have an address, by their labels: there may be as many Services as pods. Made when the
// first one asks, and on one machine often nobody does. One thread at a time.
class PodIndex {
 public:
  explicit PodIndex(std::vector<client::Object> pods) : pods_(std::move(pods)) {}

  // Those of its namespace that a Service selects.
  std::vector<client::Object> selected_by(const Json& service) const;

 private:
  using ByLabel = std::unordered_map<std::string, std::vector<client::Object>>;
  const ByLabel& by_label() const;

  std::vector<client::Object> pods_;
  mutable std::optional<ByLabel> by_label_;
};

}  // namespace hearth::node
