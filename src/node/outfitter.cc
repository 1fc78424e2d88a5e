#include "node/outfitter.h"

#include "base/error.h"
#include "client/kinds.h"
#include "guest/configuration.h"
#include "model/meta.h"
#include "node/pod_status.h"
#include "node/provisioner.h"
#include "runtime/runtime.h"

namespace hearth::node {
namespace {

// Of a container that runs; empty for none. Without a name it is the first one.
std::string running_sandbox(const model::Json& pod, std::string_view name) {
  const auto* statuses = model::array_at(pod, {"status", "containerStatuses"});
  if (statuses == nullptr) return {};
  if (name.empty()) {
    const auto* containers = model::array_at(pod, {"spec", "containers"});
    if (containers == nullptr || containers->empty()) return {};
    name = model::text_at(containers->front(), {"name"});
  }
  for (const model::Json& status : *statuses) {
    if (model::text_at(status, {"name"}) != name) continue;
    const std::string_view id = model::text_at(status, {"containerID"});
    if (model::find(status, {"state", "running"}) == nullptr) return {};
    if (!id.starts_with(kContainerScheme)) return {};
    return std::string(id.substr(kContainerScheme.size()));
  }
  return {};
}

guest::Configuration configuration_of(const pool::Outfit& outfit) {
  guest::Configuration configuration;
  configuration.environment = outfit.environment;
  configuration.directory = outfit.directory;
  configuration.user = outfit.user;
  configuration.token = outfit.token;
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

}  // namespace

bool NodeOutfitter::can_outfit(const model::Json& pod) {
  return model::text_at(pod, {"spec", "nodeName"}) == node_ && !running_sandbox(pod, {}).empty();
}

void NodeOutfitter::outfit(const model::Json& pod, const pool::Outfit& outfit) {
  if (outfit.is_empty()) return;
  const std::string sandbox = running_sandbox(pod, outfit.container);
  if (sandbox.empty())
    fail(Code::unavailable, "the container '{}' of pod '{}' does not run here", outfit.container,
         model::key_of(pod).text());
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

}  // namespace hearth::node
