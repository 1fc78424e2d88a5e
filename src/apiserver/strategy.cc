// Which kind has which strategy.
#include "apiserver/strategy.h"

#include "apiserver/kinds_strategies_internal.h"
#include "model/conversion.h"

namespace hearth::apiserver {
namespace {

// The older version of the agent-sandbox kinds; objects are kept in the newer one.
class OlderVersionStrategy : public Strategy {
 public:
  void to_storage(Json& object) const override { model::to_v1beta1(object); }
  void from_storage(Json& object) const override { model::to_v1alpha1(object); }
};

struct Row {
  std::string_view group;
  std::string_view kind;
  const Strategy& strategy;
};

const std::vector<Row>& rows() {
  static const PlainStrategy kPlain;
  static const std::vector<Row> kRows = {
      {"", "Pod", pod_strategy()},
      {"", "Service", service_strategy()},
      {"", "ConfigMap", config_map_strategy()},
      {"", "Secret", secret_strategy()},
      {"", "Namespace", namespace_strategy()},
      {"", "PersistentVolumeClaim", claim_strategy()},
      {"", "PersistentVolume", volume_strategy()},
      {"", "Event", core_event_strategy()},
      {"", "Node", node_strategy()},
      {"", "Endpoints", endpoints_strategy()},
      {"", "ServiceAccount", kPlain},
      {"events.k8s.io", "Event", event_strategy()},
      {"coordination.k8s.io", "Lease", lease_strategy()},
      {"discovery.k8s.io", "EndpointSlice", endpoint_slice_strategy()},
      {"networking.k8s.io", "NetworkPolicy", network_policy_strategy()},
      {"node.k8s.io", "RuntimeClass", runtime_class_strategy()},
      {"storage.k8s.io", "StorageClass", storage_class_strategy()},
      {"rbac.authorization.k8s.io", "Role", role_strategy(/*namespaced=*/true)},
      {"rbac.authorization.k8s.io", "ClusterRole", role_strategy(/*namespaced=*/false)},
      {"rbac.authorization.k8s.io", "RoleBinding", role_binding_strategy(/*namespaced=*/true)},
      {"rbac.authorization.k8s.io", "ClusterRoleBinding",
       role_binding_strategy(/*namespaced=*/false)},
      {"apiextensions.k8s.io", "CustomResourceDefinition", crd_strategy()},
  };
  return kRows;
}

}  // namespace

const Strategy* find_strategy(std::string_view group, std::string_view version,
                              std::string_view kind) {
  static const Strategy kCustom;
  static const OlderVersionStrategy kOlder;
  if (version == "v1alpha1" && model::has_conversion(group, kind)) return &kOlder;
  for (const Row& row : rows())
    if (row.group == group && row.kind == kind) return &row.strategy;
  return &kCustom;
}

}  // namespace hearth::apiserver
