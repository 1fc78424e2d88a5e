#include "node/node_object.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "model/status.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr std::string_view kLeases = "kube-node-lease";
constexpr std::size_t kMostImages = 50;

std::string architecture_word(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

std::string bytes_text(std::uint64_t bytes) {
  return model::Quantity::of(static_cast<std::int64_t>(bytes >> 10 << 10),
                             model::Quantity::Form::binary)
      .text();
}

JsonObject amounts(const NodeFacts& facts) {
  return {{"cpu", std::to_string(facts.cpus)},
          {"memory", bytes_text(facts.memory_bytes)},
          {"ephemeral-storage", bytes_text(facts.disk_bytes)},
          {"pods", std::to_string(facts.pods)}};
}

struct Wording {
  std::string_view type;
  bool is_true;
  std::string_view reason_true, reason_false;
  std::string_view message_true, message_false;
};

JsonArray conditions(const NodePressure& pressure, const Json& before, Time now) {
  const Wording wordings[] = {
      {"MemoryPressure", pressure[Supply::memory], "KubeletHasInsufficientMemory",
       "KubeletHasSufficientMemory", "kubelet has insufficient memory available",
       "kubelet has sufficient memory available"},
      {"DiskPressure", pressure[Supply::disk], "KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
       "kubelet has disk pressure", "kubelet has no disk pressure"},
      {"PIDPressure", pressure[Supply::processes], "KubeletHasInsufficientPID",
       "KubeletHasSufficientPID", "kubelet has insufficient PID available",
       "kubelet has sufficient PID available"},
      {"Ready", true, "KubeletReady", "KubeletNotReady", "hearth is posting ready status", ""}};
  const std::string moment = format_rfc3339(now);
  JsonArray all;
  for (const Wording& wording : wordings) {
    const std::string_view status = wording.is_true ? "True" : "False";
    const Json* old = model::find_condition(before, wording.type);
    const bool is_same = old && text_at(*old, {"status"}) == status &&
                         !text_at(*old, {"lastTransitionTime"}).empty();
    all.push_back(
        JsonObject{{"type", wording.type},
                   {"status", status},
                   {"lastHeartbeatTime", moment},
                   {"lastTransitionTime",
                    is_same ? Json(text_at(*old, {"lastTransitionTime"})) : Json(moment)},
                   {"reason", wording.is_true ? wording.reason_true : wording.reason_false},
                   {"message", wording.is_true ? wording.message_true : wording.message_false}});
  }
  return all;
}

JsonArray images_json(std::vector<image::Image> images) {
  std::ranges::sort(images, std::ranges::greater(), &image::Image::bytes);
  if (images.size() > kMostImages) images.resize(kMostImages);
  JsonArray all;
  for (const image::Image& image : images)
    all.push_back(JsonObject{{"names", JsonArray{image.name}},
                             {"sizeBytes", static_cast<std::int64_t>(image.bytes)}});
  return all;
}

JsonObject node_info(const NodeFacts& facts) {
  return {{"architecture", facts.architecture},
          {"bootID", facts.boot_id},
          {"containerRuntimeVersion", facts.runtime_version},
          {"kernelVersion", facts.kernel},
          {"kubeProxyVersion", ""},
          {"kubeletVersion", facts.version},
          {"machineID", facts.machine_id},
          {"operatingSystem", "linux"},
          {"osImage", facts.os_image},
          {"systemUUID", facts.machine_id}};
}

// Without the times, which change whenever somebody looks.
Json without_heartbeats(Json status) {
  if (Json* all = model::find(status, {"conditions"}); all && all->is_array())
    for (Json& one : all->get_array()) model::erase_at(one, {"lastHeartbeatTime"});
  return status;
}

JsonObject labels(const NodeFacts& facts) {
  return {{"kubernetes.io/hostname", facts.name},
          {"kubernetes.io/os", "linux"},
          {"kubernetes.io/arch", facts.architecture}};
}

}  // namespace

NodeFacts read_node_facts(const std::string& state_dir) {
  NodeFacts facts;
  utsname names{};
  if (::uname(&names) != 0) throw_errno("ask for the name of this machine");
  facts.hostname = names.nodename;
  facts.kernel = names.release;
  facts.architecture = architecture_word(names.machine);
  facts.os_image = value_of(read_or_nothing("/etc/os-release"), "PRETTY_NAME");
  facts.boot_id = read_or_nothing("/proc/sys/kernel/random/boot_id");
  facts.machine_id = read_or_nothing("/etc/machine-id");
  facts.version = "v1.36.0+hearth";
  facts.runtime_version = "hearth://" HEARTH_VERSION;
  facts.cpus = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.memory_bytes = read_memory().capacity;
  facts.disk_bytes = read_disk(state_dir).capacity;
  return facts;
}

Json node_status(const NodeFacts& facts, const NodePressure& pressure,
                 const std::vector<image::Image>& images, const Json& before, Time now) {
  JsonArray addresses;
  if (!facts.address.empty())
    addresses.push_back(JsonObject{{"type", "InternalIP"}, {"address", facts.address}});
  addresses.push_back(JsonObject{{"type", "Hostname"}, {"address", facts.hostname}});
  return JsonObject{{"addresses", std::move(addresses)},
                    {"capacity", amounts(facts)},
                    {"allocatable", amounts(facts)},
                    {"conditions", conditions(pressure, before, now)},
                    {"nodeInfo", node_info(facts)},
                    {"images", images_json(images)},
                    {"features", JsonObject{{"supplementalGroupsPolicy", true}}}};
}

NodeReporter::NodeReporter(client::Client& client, const Clock& clock, NodeReporterOptions options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

void NodeReporter::start() {
  if (options_.pressure) pressure_ = options_.pressure();
  report();
  renew_lease();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void NodeReporter::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void NodeReporter::run(const std::stop_token& stop) {
  while (sleep_for(stop, options_.look_period)) {
    try {
      const NodePressure before = pressure_;
      if (options_.pressure) pressure_ = options_.pressure();
      const bool is_time = clock_.now() - renewed_ >= options_.lease_period;
      if (is_time) renew_lease();
      if (is_time || pressure_ != before) report();
    } catch (const std::exception& error) {
      log::warning("node not reported", {{"node", options_.facts.name}, {"why", error.what()}});
    }
  }
}

Json NodeReporter::ensure_node() {
  const NodeFacts& facts = options_.facts;
  if (auto node = client_.find(client::kNodes, "", facts.name)) return std::move(*node);
  const JsonObject node{{"apiVersion", "v1"},
                        {"kind", "Node"},
                        {"metadata", JsonObject{{"name", facts.name}, {"labels", labels(facts)}}},
                        {"spec", JsonObject()}};
  try {
    return client_.create(client::kNodes, node);
  } catch (const model::StatusError& error) {
    if (error.status().reason != "AlreadyExists") throw;
    return client_.get(client::kNodes, "", facts.name);
  }
}

void NodeReporter::report() {
  const Json node = ensure_node();
  const Time now = clock_.now();
  const auto images = options_.images ? options_.images() : std::vector<image::Image>();
  Json status = node_status(options_.facts, pressure_, images, node, now);
  if (options_.taints) keep_taints(node);
  // Compared with what the Node says, so that a Node that was made anew gets its status at once.
  const Json* kept = model::find(node, {"status", "conditions"});
  const bool is_news = !kept || !model::is_same(without_heartbeats(status), last_status_);
  if (!is_news && now - reported_ < options_.status_period) return;
  client_.patch(client::kNodes, "", options_.facts.name, client::PatchKind::merge,
                JsonObject{{"status", status}}, {.subresource = "status"});
  last_status_ = without_heartbeats(std::move(status));
  reported_ = now;
}

// Those of others stay.
void NodeReporter::keep_taints(const Json& node) {
  JsonArray before;
  if (const auto* there = model::array_at(node, {"spec", "taints"})) before = *there;
  JsonArray taints = before;
  for (const Supply supply : kSupplies) {
    const std::string_view key = pressure_taint(supply);
    const auto is_it = [&](const Json& taint) { return text_at(taint, {"key"}) == key; };
    const bool is_there = std::ranges::any_of(taints, is_it);
    if (is_there && !pressure_[supply]) {
      const auto rest = std::ranges::remove_if(taints, is_it);
      taints.erase(rest.begin(), rest.end());
    }
    if (!is_there && pressure_[supply])
      taints.push_back(JsonObject{{"key", key}, {"effect", "NoSchedule"}});
  }
  if (model::is_same(taints, before)) return;
  // With the version that was read: whoever taints it meanwhile is not overwritten.
  const JsonObject patch{
      {"metadata", JsonObject{{"resourceVersion", model::resource_version_of(node)}}},
      {"spec", JsonObject{{"taints", taints.empty() ? Json(nullptr) : Json(std::move(taints))}}}};
  client_.patch(client::kNodes, "", options_.facts.name, client::PatchKind::merge, patch);
}

void NodeReporter::renew_lease() {
  renewed_ = clock_.now();
  const std::string& name = options_.facts.name;
  const std::string now = format_rfc3339(clock_.now(), 6);
  JsonObject spec{{"holderIdentity", name},
                  {"leaseDurationSeconds",
                   std::chrono::duration_cast<std::chrono::seconds>(options_.lease_life).count()},
                  {"renewTime", now}};
  try {
    client_.patch(client::kLeases, kLeases, name, client::PatchKind::merge,
                  JsonObject{{"spec", spec}});
  } catch (const model::StatusError& error) {
    if (error.status().reason != "NotFound") throw;
    client_.create(client::kLeases,
                   JsonObject{{"apiVersion", "coordination.k8s.io/v1"},
                              {"kind", "Lease"},
                              {"metadata", JsonObject{{"name", name}, {"namespace", kLeases}}},
                              {"spec", std::move(spec)}});
  }
}

}  // namespace hearth::node
