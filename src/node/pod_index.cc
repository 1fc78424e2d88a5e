#include "node/pod_index.h"

#include <algorithm>

#include "base/error.h"
#include "model/meta.h"

namespace hearth::node {
namespace {

using model::text_at;
using network::Protocol;

constexpr std::int64_t kMostPort = 65535;

// No namespace has a slash.
std::string label_key(std::string_view ns, std::string_view key, std::string_view value) {
  return fmt::format("{}/{}={}", ns, key, value);
}

}  // namespace

std::uint32_t address_of_pod(const Json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  const std::string_view address = text_at(pod, {"status", "podIP"});
  if (phase == "Succeeded" || phase == "Failed" || address.empty()) return 0;
  try {
    return network::parse_cidr(address).address;
  } catch (const Error&) {
    return 0;
  }
}

std::optional<Protocol> find_protocol(std::string_view text) {
  if (text.empty() || text == "TCP") return Protocol::tcp;
  if (text == "UDP") return Protocol::udp;
  return std::nullopt;
}

std::uint16_t port_number(const Json& value, model::Path path) {
  const std::int64_t number = model::number_at(value, path).value_or(0);
  return number > 0 && number <= kMostPort ? static_cast<std::uint16_t>(number) : std::uint16_t{0};
}

std::uint16_t find_named_port(const Json& pod, std::string_view name, Protocol protocol) {
  for (const char* kind : {"containers", "initContainers"}) {
    const model::JsonArray* containers = model::array_at(pod, {"spec", kind});
    if (!containers) continue;
    for (const Json& container : *containers) {
      const model::JsonArray* ports = model::array_at(container, {"ports"});
      if (!ports) continue;
      for (const Json& port : *ports)
        if (text_at(port, {"name"}) == name &&
            find_protocol(text_at(port, {"protocol"})) == protocol)
          return port_number(port, {"containerPort"});
    }
  }
  return 0;
}

std::uint16_t target_port(const Json& service_port, const Json& pod) {
  const std::string_view name = text_at(service_port, {"targetPort"});
  if (!name.empty()) {
    const auto protocol = find_protocol(text_at(service_port, {"protocol"}));
    return protocol ? find_named_port(pod, name, *protocol) : std::uint16_t{0};
  }
  const std::uint16_t number = port_number(service_port, {"targetPort"});
  return number != 0 ? number : port_number(service_port, {"port"});
}

bool selects(const Json& service, const Json& pod) {
  const model::JsonObject* selector = model::object_at(service, {"spec", "selector"});
  if (!selector || selector->empty()) return false;
  return std::ranges::all_of(*selector, [&](const auto& label) {
    const Json* value = model::find(pod, {"metadata", "labels", std::string_view(label.key())});
    return value && *value == label.value();
  });
}

const PodIndex::ByLabel& PodIndex::by_label() const {
  if (by_label_) return *by_label_;
  by_label_.emplace();
  for (const client::Object& pod : pods_) {
    const model::JsonObject* labels = model::object_at(*pod, {"metadata", "labels"});
    if (!labels || address_of_pod(*pod) == 0) continue;
    for (const auto& label : *labels)
      if (label.value().is_string())
        (*by_label_)[label_key(model::namespace_of(*pod), label.key(), label.value().get_string())]
            .push_back(pod);
  }
  return *by_label_;
}

std::vector<client::Object> PodIndex::selected_by(const Json& service) const {
  const model::JsonObject* selector = model::object_at(service, {"spec", "selector"});
  if (!selector) return {};
  // The label that the fewest have is looked at; the others are compared.
  const std::vector<client::Object>* fewest = nullptr;
  for (const auto& label : *selector) {
    if (!label.value().is_string()) return {};
    const auto found = by_label().find(
        label_key(model::namespace_of(service), label.key(), label.value().get_string()));
    if (found == by_label().end()) return {};
    if (!fewest || found->second.size() < fewest->size()) fewest = &found->second;
  }
  std::vector<client::Object> all;
  if (!fewest) return all;
  std::ranges::copy_if(*fewest, std::back_inserter(all),
                       [&](const client::Object& pod) { return selects(service, *pod); });
  return all;
}

}  // namespace hearth::node
