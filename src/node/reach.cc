#include "node/reach.h"

#include <utility>

#include "base/error.h"
#include "client/kinds.h"
#include "guest/configuration.h"
#include "model/container_id.h"
#include "model/containers.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/pod_policy.h"
#include "node/provisioner.h"
#include "runtime/runtime.h"

namespace hearth::node {
namespace {

using model::Json;

// A guest answers in microseconds. One that does not stands still, or its machine does.
constexpr Duration kConnectPatience = std::chrono::seconds(5);
// More at once come and go.
constexpr std::size_t kMostIdleDoors = 4;

// Of a container that runs; empty for none. Without a name it is the first one.
std::string running_sandbox(const model::Json& pod, std::string_view name) {
  const Json* status =
      model::find_container_status(pod, name.empty() ? model::first_container_of(pod) : name);
  if (status == nullptr || model::find(*status, {"state", "running"}) == nullptr) return {};
  return std::string(model::sandbox_of_container(model::text_at(*status, {"containerID"})));
}

guest::Configuration configuration_of(const pool::Outfit& outfit) {
  guest::Configuration configuration;
  configuration.environment = outfit.environment;
  configuration.directory = outfit.directory;
  configuration.user = outfit.user;
  configuration.token = outfit.token;
  configuration.drops_token = outfit.drops_token;
  for (const pool::OutfitFile& file : outfit.files)
    configuration.files.push_back(
        {.path = file.path, .content = file.content, .mode = file.mode, .user = {}});
  return configuration;
}

// The runtime's name of the volume that a claim is bound to.
std::string volume_of(client::Client& client, std::string_view ns, const std::string& claim_name) {
  const model::Json claim = client.get(client::kPersistentVolumeClaims, ns, claim_name);
  const std::string_view name = model::text_at(claim, {"spec", "volumeName"});
  if (name.empty())
    fail(Code::unavailable, "the claim '{}/{}' is not bound to a volume yet", ns, claim_name);
  const model::Json volume = client.get(client::kPersistentVolumes, "", name);
  if (model::text_at(volume, {"spec", "csi", "driver"}) != kProvisioner)
    fail(Code::invalid, "the volume '{}' is none of this machine's", name);
  return std::string(model::text_at(volume, {"spec", "csi", "volumeHandle"}));
}

bool is_refusal(const Error& error) {
  return error.code() == Code::unavailable &&
         std::string_view(error.what()).find("refused") != std::string_view::npos;
}

}  // namespace

NodeReach::NodeReach(client::Client& client, runtime::Runtime& runtime, std::string node,
                     Enforce enforce)
    : client_(client), runtime_(runtime), node_(std::move(node)), enforce_(std::move(enforce)) {}

bool NodeReach::is_here(const Json& pod) {
  return model::text_at(pod, {"spec", "nodeName"}) == node_ && !running_sandbox(pod, {}).empty();
}

std::string NodeReach::sandbox_of(const Json& pod, std::string_view container) const {
  std::string sandbox;
  if (model::text_at(pod, {"spec", "nodeName"}) == node_) sandbox = running_sandbox(pod, container);
  if (sandbox.empty())
    fail(Code::unavailable, "the container '{}' of pod '{}' does not run here", container,
         model::key_of(pod).text());
  return sandbox;
}

void NodeReach::outfit(const Json& pod, const pool::Outfit& outfit) {
  if (outfit.is_empty()) return;
  const std::string sandbox = sandbox_of(pod, outfit.container);
  runtime::Belongings belongings;
  belongings.configuration = configuration_of(outfit);
  for (const pool::OutfitVolume& volume : outfit.volumes) {
    runtime::MountSpec mount;
    mount.source = volume_of(client_, model::namespace_of(pod), volume.claim_name);
    mount.target = volume.path;
    mount.read_only = volume.read_only;
    belongings.volumes.push_back(std::move(mount));
  }
  try {
    runtime_.configure(sandbox, belongings);
  } catch (const Error& error) {
    // Once in its life, and a sandbox is claimed once: it was us, and we did not live to say so.
    if (error.code() != Code::conflict) throw;
  }
}

linux::Fd NodeReach::connect(const Json& pod, std::uint16_t port) {
  const std::string_view uid = model::uid_of(pod);
  const std::string sandbox = sandbox_of(pod);
  const auto go_through = [&](guest::Connection door) {
    try {
      linux::Fd made = door.connect(port, Deadline::after(kConnectPatience));
      give_back(uid, sandbox, std::move(door));
      return made;
    } catch (const Error& error) {
      // An answer, and the door is as good as before.
      if (is_refusal(error)) give_back(uid, sandbox, std::move(door));
      if (error.code() == Code::timeout)
        fail(Code::unavailable, "the sandbox of pod '{}' does not answer",
             model::key_of(pod).text());
      throw;
    }
  };
  if (auto door = take_door(uid, sandbox)) {
    try {
      return go_through(std::move(*door));
    } catch (const Error& error) {
      // One that was kept may lead nowhere by now; a new one tells.
      if (is_refusal(error) || error.code() != Code::unavailable) throw;
    }
  }
  return go_through(guest::Connection(runtime_.connect(sandbox)));
}

std::optional<guest::Connection> NodeReach::take_door(std::string_view uid,
                                                      const std::string& sandbox) {
  return doors_.with([&](auto& doors) -> std::optional<guest::Connection> {
    const auto found = doors.find(uid);
    if (found == doors.end() || found->second.idle.empty()) return std::nullopt;
    if (found->second.sandbox != sandbox) {  // of an earlier life of the container
      doors.erase(found);
      return std::nullopt;
    }
    guest::Connection door = std::move(found->second.idle.back());
    found->second.idle.pop_back();
    return door;
  });
}

void NodeReach::give_back(std::string_view uid, const std::string& sandbox,
                          guest::Connection door) {
  doors_.with([&](auto& doors) {
    Doors& of_pod = doors[std::string(uid)];
    if (of_pod.sandbox != sandbox) of_pod = {.sandbox = sandbox, .idle = {}};
    if (of_pod.idle.size() < kMostIdleDoors) of_pod.idle.push_back(std::move(door));
  });
}

void NodeReach::forget(const Json& pod) {
  doors_.with([&](auto& doors) { doors.erase(std::string(model::uid_of(pod))); });
}

void NodeReach::commit(const Json& pod, const std::string& image) {
  runtime_.commit(sandbox_of(pod), image);
}

bool NodeReach::remove_image(const std::string& image) {
  return runtime_.remove_image(image);
}

std::vector<std::string> NodeReach::find_images(std::string_view prefix) {
  std::vector<std::string> names;
  for (image::Image& each : runtime_.list_images())
    if (each.name.starts_with(prefix)) names.push_back(std::move(each.name));
  return names;
}

void NodeReach::set_egress(const Json& pod, const pool::Egress& egress) {
  const std::string sandbox = sandbox_of(pod);
  Json wanted = pod;
  model::make_object_at(wanted, {"metadata", "annotations"})[model::kEgressAnnotation] =
      egress_text(egress);
  // Containers of a pod share its network: what is said of one holds for all.
  enforce_(wanted, sandbox);
}

pool::PodUsage NodeReach::usage(const Json& pod) {
  const runtime::Sandbox sandbox = runtime_.get(sandbox_of(pod));
  return {.cpu_microseconds = sandbox.usage.cpu_microseconds,
          .memory_bytes = sandbox.usage.memory_bytes,
          .memory_limit_bytes = sandbox.limits.memory_bytes,
          .disk_bytes = sandbox.usage.disk_bytes,
          .disk_limit_bytes = sandbox.limits.disk_bytes,
          .cpu_millis = sandbox.limits.cpu_millis};
}

}  // namespace hearth::node
