// Words on objects that only this room reads and writes; what others read too is in
// model/front_door.h.
#pragma once

#include <string_view>

namespace hearth::e2b {

inline constexpr std::string_view kFront = "e2b";  // of model::kFrontLabel

// --- On Sandboxes; all are annotations.

// Seconds that were asked for when it was made: what waking it gives it again.
inline constexpr std::string_view kTimeoutAnnotation = "hearth.dev/timeout";
// "files": what the end of its time pauses is its files alone. Absent: memory as well.
inline constexpr std::string_view kTimeoutPauseAnnotation = "hearth.dev/on-timeout-pause";
// The Secret with the user's variables; absent: there are none.
inline constexpr std::string_view kEnvironmentAnnotation = "hearth.dev/environment";
// The container that its files and processes are in, as the pod's status names it. In another one
// they are not. Absent: nobody knows yet.
inline constexpr std::string_view kContainerAnnotation = "hearth.dev/container";
// Images that pausing its files made, with commas: they go when it goes.
inline constexpr std::string_view kImagesAnnotation = "hearth.dev/images";
// NS/NAME of the SandboxTemplate that it was made of: what clients call it by is a bare name, which
// other teams have as well.
inline constexpr std::string_view kMadeOfAnnotation = "hearth.dev/made-of";
// "true" or "false", if the user said so.
inline constexpr std::string_view kInternetAnnotation = "hearth.dev/internet-access";
// "KEY HASH": the Idempotency-Key of the request that made it, and what that asked for.
inline constexpr std::string_view kIdempotencyAnnotation = "hearth.dev/idempotency-key";

// --- On SandboxTemplates.

// Annotation: further names of it, "alias" or "alias:tag", with commas. Its own name is one anyway.
inline constexpr std::string_view kTemplateNamesAnnotation = "hearth.dev/template-names";
// Annotation: when it was made, more exactly than by `creationTimestamp`, which has whole seconds.
inline constexpr std::string_view kMadeAnnotation = "hearth.dev/made-at";
// Label: it is a snapshot, of the sandbox with this id.
inline constexpr std::string_view kSnapshotLabel = "hearth.dev/snapshot-of";

}  // namespace hearth::e2b
