#include "node/node_object.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "linux/fd.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "model/status.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr std::string_view kLeases = "kube-node-lease";
// A kubelet's own limits for evictions.
constexpr std::uint64_t kLeastMemory = std::uint64_t{100} << 20;
constexpr std::uint64_t kLeastDiskPart = 10;  // a tenth
constexpr std::uint64_t kLeastProcessesPart = 10;
constexpr std::size_t kMostImages = 50;

std::string read_or_nothing(const std::string& path) {
  try {
    std::string text = linux::read_file(path);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  } catch (const Error&) {
    return {};
  }
}

std::uint64_t number_in(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_of("0123456789")));
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The value behind NAME in lines such as "NAME=value" or "NAME: value".
std::string value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.size(), line.find_first_not_of("=: \"")));
    while (line.ends_with('"')) line.remove_suffix(1);
    return std::string(line);
  }
  return {};
}

std::string architecture_word(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

struct Disk {
  std::uint64_t bytes = 0;
  std::uint64_t free = 0;
};

Disk read_disk(const std::string& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return {};
  return {status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
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
      {"MemoryPressure", pressure.memory, "KubeletHasInsufficientMemory",
       "KubeletHasSufficientMemory", "kubelet has insufficient memory available",
       "kubelet has sufficient memory available"},
      {"DiskPressure", pressure.disk, "KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
       "kubelet has disk pressure", "kubelet has no disk pressure"},
      {"PIDPressure", pressure.processes, "KubeletHasInsufficientPID", "KubeletHasSufficientPID",
       "kubelet has insufficient PID available", "kubelet has sufficient PID available"},
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
  facts.memory_bytes = number_in(value_of(read_or_nothing("/proc/meminfo"), "MemTotal")) << 10;
  facts.disk_bytes = read_disk(state_dir).bytes;
  return facts;
}

NodePressure read_node_pressure(const std::string& state_dir) {
  NodePressure pressure;
  const std::string available = value_of(read_or_nothing("/proc/meminfo"), "MemAvailable");
  pressure.memory = !available.empty() && number_in(available) << 10 < kLeastMemory;
  const Disk disk = read_disk(state_dir);
  pressure.disk = disk.bytes != 0 && disk.free < disk.bytes / kLeastDiskPart;
  // "0.01 0.02 0.00 1/234 5678": running of all.
  const std::string load = read_or_nothing("/proc/loadavg");
  const std::size_t slash = load.find('/');
  const std::uint64_t most = number_in(read_or_nothing("/proc/sys/kernel/pid_max"));
  const std::uint64_t used =
      slash == std::string::npos ? 0 : number_in(std::string_view(load).substr(slash));
  pressure.processes = most != 0 && used > most - most / kLeastProcessesPart;
  return pressure;
}

Json node_status(const NodeFacts& facts, const NodePressure& pressure,
                 const std::vector<image::Image>& images, const Json& before, Time now) {
  JsonArray addresses;
  if (!facts.address.empty())
    addresses.push_back(JsonObject{{"type", "InternalIP"}, {"address", facts.address}});
  addresses.push_back(JsonObject{{"type", "Hostname"}, {"address", facts.hostname}});
  return JsonObject{
      {"addresses", std::move(addresses)}, {"capacity", amounts(facts)},
      {"allocatable", amounts(facts)},     {"conditions", conditions(pressure, before, now)},
      {"nodeInfo", node_info(facts)},      {"images", images_json(images)}};
}

NodeReporter::NodeReporter(client::Client& client, const Clock& clock, NodeReporterOptions options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

void NodeReporter::start() {
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
  while (sleep_for(stop, options_.lease_period)) {
    try {
      renew_lease();
      report();
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
  Json status =
      node_status(options_.facts, read_node_pressure(options_.state_dir), images, node, now);
  // Compared with what the Node says, so that a Node that was made anew gets its status at once.
  const Json* kept = model::find(node, {"status", "conditions"});
  const bool is_news = !kept || !model::is_same(without_heartbeats(status), last_status_);
  if (!is_news && now - reported_ < options_.status_period) return;
  client_.patch(client::kNodes, "", options_.facts.name, client::PatchKind::merge,
                JsonObject{{"status", status}}, {.subresource = "status"});
  last_status_ = without_heartbeats(std::move(status));
  reported_ = now;
}

void NodeReporter::renew_lease() {
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
