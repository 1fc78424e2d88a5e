#include "node/provisioner.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "model/status.h"
#include "reconcile/event_recorder.h"
#include "runtime/runtime.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::text_at;

constexpr std::string_view kDefaultAnnotation = "storageclass.kubernetes.io/is-default-class";
constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";
// A sandbox that is on its way out still uses its volumes.
constexpr Duration kUsedPause = std::chrono::seconds(1);

bool is_reason(const model::StatusError& error, std::string_view reason) {
  return error.status().reason == reason;
}

std::string volume_name_for(const Json& claim) {
  return fmt::format("pvc-{}", model::uid_of(claim));
}

std::uint64_t bytes_of(const Json& claim) {
  const auto size =
      model::Quantity::parse(text_at(claim, {"spec", "resources", "requests", "storage"}));
  if (!size || *size <= model::Quantity())
    fail(Code::invalid, "the claim asks for no size that makes sense");
  return static_cast<std::uint64_t>(size->units());
}

JsonObject reference_to(const Json& claim) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"namespace", model::namespace_of(claim)},
          {"name", model::name_of(claim)},
          {"uid", model::uid_of(claim)}};
}

// Only this machine has what is on it.
JsonObject affinity_to(const std::string& node) {
  JsonObject expression{
      {"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", JsonArray{node}}};
  JsonObject term{{"matchExpressions", JsonArray{std::move(expression)}}};
  return {{"required", JsonObject{{"nodeSelectorTerms", JsonArray{std::move(term)}}}}};
}

Json make_volume(const Json& claim, const Json& storage_class, const std::string& node) {
  const std::string name = volume_name_for(claim);
  std::string_view policy = text_at(storage_class, {"reclaimPolicy"});
  if (policy.empty()) policy = "Delete";
  const Json* modes = model::find(claim, {"spec", "accessModes"});
  JsonObject spec{
      {"capacity",
       JsonObject{{"storage", text_at(claim, {"spec", "resources", "requests", "storage"})}}},
      {"accessModes", modes ? *modes : Json(JsonArray())},
      {"persistentVolumeReclaimPolicy", policy},
      {"storageClassName", model::name_of(storage_class)},
      {"volumeMode", "Filesystem"},
      {"csi", JsonObject{{"driver", kProvisioner}, {"volumeHandle", name}, {"fsType", "ext4"}}},
      {"nodeAffinity", affinity_to(node)},
      {"claimRef", reference_to(claim)}};
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       JsonObject{{"name", name}, {"annotations", JsonObject{{kProvisionedBy, kProvisioner}}}}},
      {"spec", std::move(spec)}};
}

void set_phase(client::Client& client, const Json& volume, std::string_view phase) {
  if (text_at(volume, {"status", "phase"}) == phase) return;
  client.patch(client::kPersistentVolumes, "", model::name_of(volume), client::PatchKind::merge,
               JsonObject{{"status", JsonObject{{"phase", phase}}}}, {.subresource = "status"});
}

// Of that size if this machine can do it.
void make_runtime_volume(runtime::Runtime& runtime, const std::string& name, std::uint64_t bytes) {
  try {
    try {
      runtime.create_volume(name, bytes);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      log::warning("volume without a limit", {{"volume", name}, {"why", error.what()}});
      runtime.create_volume(name, 0);
    }
  } catch (const Error& error) {
    if (error.code() != Code::already_exists) throw;
  }
}

}  // namespace

Provisioner::Provisioner(client::Client& client, runtime::Runtime& runtime,
                         reconcile::EventRecorder* events, ProvisionerOptions options)
    : client_(client), runtime_(runtime), events_(events), options_(std::move(options)) {}

void Provisioner::furnish() {
  if (client_.find(client::kStorageClasses, "", kStorageClass)) return;
  JsonObject metadata{{"name", kStorageClass}};
  if (options_.is_default) metadata["annotations"] = JsonObject{{kDefaultAnnotation, "true"}};
  const JsonObject storage_class{
      {"apiVersion", "storage.k8s.io/v1"}, {"kind", "StorageClass"},
      {"metadata", std::move(metadata)},   {"provisioner", kProvisioner},
      {"reclaimPolicy", "Delete"},         {"volumeBindingMode", "Immediate"}};
  try {
    client_.create(client::kStorageClasses, storage_class);
  } catch (const model::StatusError& error) {
    if (!is_reason(error, "AlreadyExists")) throw;
  }
}

namespace {

// The class whose annotation says so, the newest of several; nothing: there is none.
std::optional<Json> find_default_class(client::Client& client) {
  std::optional<Json> found;
  for (Json& one : client.list_all(client::kStorageClasses, {}).items) {
    if (model::annotation_of(one, kDefaultAnnotation) != "true") continue;
    if (!found || model::created_at(*found) < model::created_at(one)) found = std::move(one);
  }
  return found;
}

std::optional<Json> find_class(client::Client& client, const Json& claim) {
  const Json* name = model::find(claim, {"spec", "storageClassName"});
  if (!name || !name->is_string()) return find_default_class(client);
  if (name->get_string().empty()) return std::nullopt;  // whoever says so wants a given volume
  return client.find(client::kStorageClasses, "", name->get_string());
}

// Whether `volume` is there for this claim and nobody else.
bool is_for(const Json& volume, const Json& claim) {
  const std::string_view uid = text_at(volume, {"spec", "claimRef", "uid"});
  if (!uid.empty()) return uid == model::uid_of(claim);
  const std::string_view name = text_at(volume, {"spec", "claimRef", "name"});
  return name.empty() ||
         (name == model::name_of(claim) &&
          text_at(volume, {"spec", "claimRef", "namespace"}) == model::namespace_of(claim));
}

}  // namespace

reconcile::Next Provisioner::reconcile(const model::Key& key) {
  const auto claim = client_.find(client::kPersistentVolumeClaims, key.ns, key.name);
  if (!claim || model::is_deleting(*claim)) return reconcile::kWhenChanged;
  if (text_at(*claim, {"status", "phase"}) == "Bound") return reconcile::kWhenChanged;
  if (const std::string_view given = text_at(*claim, {"spec", "volumeName"}); !given.empty()) {
    const auto volume = client_.find(client::kPersistentVolumes, "", given);
    if (volume && is_for(*volume, *claim)) bind(*claim, *volume);
    return reconcile::kWhenChanged;
  }
  const auto storage_class = find_class(client_, *claim);
  if (!storage_class || text_at(*storage_class, {"provisioner"}) != kProvisioner)
    return reconcile::kWhenChanged;
  try {
    provision(*claim, *storage_class);
  } catch (const Error& error) {
    tell(*claim, false, "ProvisioningFailed",
         fmt::format("failed to provision volume with StorageClass \"{}\": {}",
                     model::name_of(*storage_class), error.what()));
    throw;
  }
  return reconcile::kWhenChanged;
}

void Provisioner::provision(const Json& claim, const Json& storage_class) {
  if (text_at(claim, {"spec", "volumeMode"}) == "Block")
    fail(Code::invalid, "block devices are not given to sandboxes");
  const std::uint64_t bytes = bytes_of(claim);
  const std::string name = volume_name_for(claim);
  auto volume = client_.find(client::kPersistentVolumes, "", name);
  if (!volume) {
    volume = client_.create(client::kPersistentVolumes,
                            make_volume(claim, storage_class, options_.node_name));
  }
  try {
    make_runtime_volume(runtime_, name, bytes);
  } catch (const Error&) {
    // The next try makes it anew; a claim of an impossible size leaves nothing but itself.
    Reclaimer(client_, runtime_).reconcile({"", name});
    throw;
  }
  bind(claim, *volume);
  tell(claim, true, "ProvisioningSucceeded",
       fmt::format("Successfully provisioned volume {}", name));
}

void Provisioner::bind(const Json& claim, const Json& volume) {
  const std::string_view ns = model::namespace_of(claim);
  const std::string_view name = model::name_of(claim);
  if (text_at(volume, {"spec", "claimRef", "uid"}).empty())
    client_.patch(client::kPersistentVolumes, "", model::name_of(volume), client::PatchKind::merge,
                  JsonObject{{"metadata",
                              JsonObject{{"resourceVersion", model::resource_version_of(volume)}}},
                             {"spec", JsonObject{{"claimRef", reference_to(claim)}}}});
  set_phase(client_, volume, "Bound");
  JsonObject annotations{{"pv.kubernetes.io/bind-completed", "yes"},
                         {"pv.kubernetes.io/bound-by-controller", "yes"},
                         {"volume.kubernetes.io/storage-provisioner", kProvisioner}};
  JsonObject spec{{"volumeName", model::name_of(volume)}};
  if (const Json* own = model::find(claim, {"spec", "storageClassName"}); !own || !own->is_string())
    spec["storageClassName"] = text_at(volume, {"spec", "storageClassName"});
  client_.patch(client::kPersistentVolumeClaims, ns, name, client::PatchKind::merge,
                JsonObject{{"metadata", JsonObject{{"uid", model::uid_of(claim)},
                                                   {"annotations", std::move(annotations)}}},
                           {"spec", std::move(spec)}});
  JsonObject status{{"phase", "Bound"}};
  if (const Json* modes = model::find(volume, {"spec", "accessModes"}))
    status["accessModes"] = *modes;
  if (const Json* capacity = model::find(volume, {"spec", "capacity"}))
    status["capacity"] = *capacity;
  client_.patch(client::kPersistentVolumeClaims, ns, name, client::PatchKind::merge,
                JsonObject{{"status", std::move(status)}}, {.subresource = "status"});
}

void Provisioner::tell(const Json& claim, bool is_well, std::string_view reason, std::string note) {
  using reconcile::EventType;
  if (events_)
    events_->record(claim, is_well ? EventType::normal : EventType::warning, reason, "Provisioning",
                    std::move(note));
}

std::vector<model::Key> volumes_of_claim(const Json& claim) {
  std::vector<model::Key> keys{{"", volume_name_for(claim)}};
  const std::string_view bound = text_at(claim, {"spec", "volumeName"});
  if (!bound.empty() && bound != keys.front().name) keys.push_back({"", std::string(bound)});
  return keys;
}

reconcile::Next Reclaimer::reconcile(const model::Key& key) {
  const auto volume = client_.find(client::kPersistentVolumes, "", key.name);
  if (!volume) return reconcile::kWhenChanged;
  const std::string_view uid = text_at(*volume, {"spec", "claimRef", "uid"});
  if (uid.empty()) {
    if (model::is_deleting(*volume))
      let_go(*volume);
    else if (text_at(*volume, {"spec", "claimRef", "name"}).empty())
      set_phase(client_, *volume, "Available");
    return reconcile::kWhenChanged;
  }
  const auto claim = client_.find(client::kPersistentVolumeClaims,
                                  text_at(*volume, {"spec", "claimRef", "namespace"}),
                                  text_at(*volume, {"spec", "claimRef", "name"}));
  if (claim && model::uid_of(*claim) == uid) return reconcile::kWhenChanged;
  return release(*volume);
}

reconcile::Next Reclaimer::release(const Json& volume) {
  const bool is_ours = text_at(volume, {"spec", "csi", "driver"}) == kProvisioner;
  const bool keeps = text_at(volume, {"spec", "persistentVolumeReclaimPolicy"}) != "Delete";
  if (!is_ours || keeps) {
    if (model::is_deleting(volume))
      let_go(volume);
    else
      set_phase(client_, volume, "Released");
    return reconcile::kWhenChanged;
  }
  try {
    runtime_.remove_volume(std::string(text_at(volume, {"spec", "csi", "volumeHandle"})));
  } catch (const Error& error) {
    if (error.code() == Code::conflict) {
      set_phase(client_, volume, "Released");
      return kUsedPause;
    }
    if (error.code() != Code::not_found) throw;
  }
  if (!model::is_deleting(volume)) {
    try {
      client_.remove(client::kPersistentVolumes, "", model::name_of(volume),
                     {.uid = std::string(model::uid_of(volume))});
    } catch (const model::StatusError& error) {
      if (!is_reason(error, "NotFound")) throw;
    }
  }
  let_go(volume);
  return reconcile::kWhenChanged;
}

// Takes our finalizer off one that is being deleted, and leaves those of others.
void Reclaimer::let_go(const Json& volume) {
  auto current = client_.find(client::kPersistentVolumes, "", model::name_of(volume));
  if (!current || model::uid_of(*current) != model::uid_of(volume)) return;
  const JsonArray* finalizers = model::array_at(*current, {"metadata", "finalizers"});
  if (!finalizers) return;
  JsonArray others;
  for (const Json& one : *finalizers)
    if (!one.is_string() || one.get_string() != kVolumeProtection) others.push_back(one);
  if (others.size() == finalizers->size()) return;
  model::make_object_at(*current, {"metadata"})["finalizers"] = std::move(others);
  try {
    client_.update(client::kPersistentVolumes, *current);
  } catch (const model::StatusError& error) {
    if (!is_reason(error, "NotFound")) throw;
  }
}

}  // namespace hearth::node
