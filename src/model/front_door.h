// Words on objects that front doors (E2B, the gateway), controllers and the node agent share.
#pragma once

#include <cstddef>
#include <string_view>

namespace hearth::model {

// --- Sandboxes that a front door handed out.

// Label: through which door; "e2b".
inline constexpr std::string_view kFrontLabel = "hearth.dev/front";
// Label: the template that was asked for, by its first name.
inline constexpr std::string_view kTemplateLabel = "hearth.dev/template";
// What the user said about it: a JSON object of texts. Pairs that can be labels are labels too,
// with this prefix.
inline constexpr std::string_view kMetadataAnnotation = "hearth.dev/metadata";
inline constexpr std::string_view kMetadataLabelPrefix = "metadata.hearth.dev/";
// When it became somebody's (RFC 3339): its creation may be that of a warm sandbox, long before.
inline constexpr std::string_view kStartedAnnotation = "hearth.dev/started-at";
// When its time is over (RFC 3339), and what happens then: "kill" (then spec.shutdownTime says the
// same) or "pause".
inline constexpr std::string_view kEndAnnotation = "hearth.dev/end-at";
inline constexpr std::string_view kOnTimeoutAnnotation = "hearth.dev/on-timeout";

// --- Pausing.

// On a Sandbox, and from there on its pod: "memory" makes the node stand it still. Absent: it runs.
// (Files only is operatingMode Suspended with the committed image in the pod template.)
inline constexpr std::string_view kPauseAnnotation = "hearth.dev/pause";
// Condition of a pod that stands still, and of its Sandbox.
inline constexpr std::string_view kPausedCondition = "hearth.dev/Paused";
// "true": the gateway wakes it when somebody knocks.
inline constexpr std::string_view kAutoResumeAnnotation = "hearth.dev/auto-resume";

// --- Who may talk to it through the gateway, on a Sandbox; or on the SandboxTemplate that it is
// made of, warm or cold, by any door: then it bears the same.

// "token" (its own token, or a signature), "team-key" (a key of its team), or "open". Absent: open
// for what has no front door, token for what has one.
inline constexpr std::string_view kAccessAnnotation = "hearth.dev/access";
// Of ports that are the user's own: "token" asks for the traffic token. "open", or absent: open.
inline constexpr std::string_view kTrafficAnnotation = "hearth.dev/traffic";
// The Host header that its services see; "${PORT}" stands for the port.
inline constexpr std::string_view kMaskHostAnnotation = "hearth.dev/mask-request-host";
// Ports that are spoken to with TLS: "8443,9443".
inline constexpr std::string_view kHttpsPortsAnnotation = "hearth.dev/https-ports";
inline constexpr std::size_t kMostHttpsPorts = 128;  // more are not looked at

// --- Egress: a JSON object {"allow": [CIDR...], "deny": [CIDR...]}, on a Sandbox and its pod.
// Allow wins over deny; neither gets through the walls (network/policy.h).
inline constexpr std::string_view kEgressAnnotation = "hearth.dev/egress";

// --- The guest and its surfaces, on a pod template and so on its pod.

// Which of them listen: "envd,runtime-api=9000", or "none".
inline constexpr std::string_view kSurfacesAnnotation = "hearth.dev/surfaces";
// Who may use `sudo` inside: names, separated by commas.
inline constexpr std::string_view kSudoAnnotation = "hearth.dev/sudo";
// On a cluster where pods are given a guest, also on the Sandbox itself: "off" leaves one alone.
inline constexpr std::string_view kGuestAnnotation = "hearth.dev/guest";

// --- What sandboxes of the E2B API wear: its variables, and the token that its surfaces ask for.

// On a pod template and so on its pod: its first container is made with all that, of the template
// whose id this is. Whoever takes such a sandbox for something else takes the token off.
inline constexpr std::string_view kDressAnnotation = "hearth.dev/dress";

// --- Pools.

// On a SandboxWarmPool: "id" makes it name its sandboxes as E2B does, `i` and 20 characters of
// [a-z0-9]. Absent: the pool's name, a hyphen and five characters.
inline constexpr std::string_view kNamesAnnotation = "hearth.dev/sandbox-names";

// --- Teams and keys.

// On a Namespace: it is this team's. On a Secret in kSystemNamespace: the key is this team's.
inline constexpr std::string_view kTeamLabel = "hearth.dev/team";
// On a SandboxTemplate: every team may use it.
inline constexpr std::string_view kPublicLabel = "hearth.dev/public";
inline constexpr std::string_view kSystemNamespace = "hearth-system";
inline constexpr std::string_view kApiKeyType = "hearth.dev/api-key";

}  // namespace hearth::model
