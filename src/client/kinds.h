// Where the kinds are that our own code asks for.
#pragma once

#include "client/client.h"

namespace hearth::client {

inline const ResourceId kSandboxes{"agents.x-k8s.io", "v1beta1", "sandboxes"};
inline const ResourceId kSandboxTemplates{"extensions.agents.x-k8s.io", "v1beta1",
                                          "sandboxtemplates"};
inline const ResourceId kSandboxClaims{"extensions.agents.x-k8s.io", "v1beta1", "sandboxclaims"};
inline const ResourceId kSandboxWarmPools{"extensions.agents.x-k8s.io", "v1beta1",
                                          "sandboxwarmpools"};
inline const ResourceId kPods{"", "v1", "pods"};
inline const ResourceId kServices{"", "v1", "services"};
inline const ResourceId kEndpoints{"", "v1", "endpoints"};
inline const ResourceId kEndpointSlices{"discovery.k8s.io", "v1", "endpointslices"};
inline const ResourceId kConfigMaps{"", "v1", "configmaps"};
inline const ResourceId kSecrets{"", "v1", "secrets"};
inline const ResourceId kServiceAccounts{"", "v1", "serviceaccounts"};
inline const ResourceId kNamespaces{"", "v1", "namespaces", false};
inline const ResourceId kNodes{"", "v1", "nodes", false};
inline const ResourceId kLeases{"coordination.k8s.io", "v1", "leases"};
inline const ResourceId kEvents{"events.k8s.io", "v1", "events"};
inline const ResourceId kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims"};
inline const ResourceId kPersistentVolumes{"", "v1", "persistentvolumes", false};
inline const ResourceId kStorageClasses{"storage.k8s.io", "v1", "storageclasses", false};
inline const ResourceId kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies"};

}  // namespace hearth::client
