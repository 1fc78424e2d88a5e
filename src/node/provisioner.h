// Volumes for PersistentVolumeClaims: each is a volume of the runtime, of the size that was asked
// for.
//
//   claim ──Provisioner──▶ PersistentVolume, runtime volume of the same name, both bound
//   volume whose claim is gone ──Reclaimer──▶ Delete: nothing is left; Retain: Released
//
// The PersistentVolume is written before the runtime's volume is made, and removed after that is
// gone: whenever we die, what is left is found by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "model/json.h"
#include "reconcile/reconciler.h"

namespace hearth::runtime {
class Runtime;
}
namespace hearth::reconcile {
class EventRecorder;
}

namespace hearth::node {

using model::Json;

// Who makes these volumes: in StorageClasses, and as the CSI driver of PersistentVolumes, whose
// volumeHandle is the runtime's name.
inline constexpr std::string_view kProvisioner = "local.hearth.dev";
inline constexpr std::string_view kStorageClass = "hearth-local";

struct ProvisionerOptions {
  std::string node_name;
  // What claims that name no class get; other nodes' provisioners may be there too.
  bool is_default = true;
};

// Keys are those of PersistentVolumeClaims.
class Provisioner final : public reconcile::Reconciler {
 public:
  // All must outlive it; `events` may be null.
  Provisioner(client::Client& client, runtime::Runtime& runtime, reconcile::EventRecorder* events,
              ProvisionerOptions options);

  // Makes the StorageClass if it is not there. What somebody changed about it stays.
  void furnish();
  reconcile::Next reconcile(const model::Key& key) override;

 private:
  void provision(const Json& claim, const Json& storage_class);
  void bind(const Json& claim, const Json& volume);
  void tell(const Json& claim, bool is_well, std::string_view reason, std::string note);

  client::Client& client_;
  runtime::Runtime& runtime_;
  reconcile::EventRecorder* events_;
  ProvisionerOptions options_;
};

// Keys are those of PersistentVolumes. To be asked again when a claim goes: volumes_of_claim().
class Reclaimer final : public reconcile::Reconciler {
 public:
  // Both must outlive it.
  Reclaimer(client::Client& client, runtime::Runtime& runtime)
      : client_(client), runtime_(runtime) {}

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  reconcile::Next release(const Json& volume);
  void let_go(const Json& volume);

  client::Client& client_;
  runtime::Runtime& runtime_;
};

// The volumes that a claim is or will be bound to, for Controller::watch_mapped().
std::vector<model::Key> volumes_of_claim(const Json& claim);

}  // namespace hearth::node
