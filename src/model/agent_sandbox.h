// Words of agents.x-k8s.io that controllers, pools and nodes share: labels, annotations, kinds.
#pragma once

#include <string_view>

namespace hearth::model {

inline constexpr std::string_view kCoreGroup = "agents.x-k8s.io";
inline constexpr std::string_view kExtensionsGroup = "extensions.agents.x-k8s.io";

// Labels. Hashes are name_hash (model/meta.h).
inline constexpr std::string_view kNameHashLabel = "agents.x-k8s.io/sandbox-name-hash";
inline constexpr std::string_view kPoolLabel = "agents.x-k8s.io/warm-pool-sandbox";
inline constexpr std::string_view kTemplateRefHashLabel =
    "agents.x-k8s.io/sandbox-template-ref-hash";
inline constexpr std::string_view kTemplateHashLabel = "agents.x-k8s.io/sandbox-template-hash";
inline constexpr std::string_view kPodTemplateHashLabel =
    "agents.x-k8s.io/sandbox-pod-template-hash";
inline constexpr std::string_view kLaunchTypeLabel = "agents.x-k8s.io/launch-type";
inline constexpr std::string_view kCreatedByLabel = "agents.x-k8s.io/created-by";
inline constexpr std::string_view kClaimUidLabel = "agents.x-k8s.io/claim-uid";
inline constexpr std::string_view kAdoptableLabel = "agents.x-k8s.io/adoptable";

// Annotations.
inline constexpr std::string_view kPodNameAnnotation = "agents.x-k8s.io/pod-name";
inline constexpr std::string_view kTemplateRefAnnotation = "agents.x-k8s.io/sandbox-template-ref";
inline constexpr std::string_view kPropagatedLabelsAnnotation = "agents.x-k8s.io/propagated-labels";
inline constexpr std::string_view kPropagatedAnnotationsAnnotation =
    "agents.x-k8s.io/propagated-annotations";
inline constexpr std::string_view kSandboxNameAnnotation = "agents.x-k8s.io/sandbox-name";
inline constexpr std::string_view kFirstObservedAnnotation =
    "agents.x-k8s.io/controller-first-observed-at";
inline constexpr std::string_view kFirstReadyAnnotation = "agents.x-k8s.io/claim-first-ready-at";
inline constexpr std::string_view kFirstRequestedAnnotation =
    "agents.x-k8s.io/client-first-requested-at";
inline constexpr std::string_view kWebhookObservedAnnotation =
    "agents.x-k8s.io/webhook-first-observed-at";
inline constexpr std::string_view kTraceContextAnnotation = "opentelemetry.io/trace-context";
inline constexpr std::string_view kSafeToEvictAnnotation =
    "cluster-autoscaler.kubernetes.io/safe-to-evict";

}  // namespace hearth::model
