// The guest in the pods of a cluster whose nodes are not ours.
//
// An init container copies it from an image of ours into a volume; the first container of the pod
// begins with it, and it starts what the container was to run (guest/contained.h). No rights are
// needed, and none are taken.
//
// Pure. It happens when a pod is made and is written nowhere else: what templates, pools and
// Sandboxes are compared by does not know of it, so that another image, or none, is for the pods
// that are made from then on, and nothing that runs is stale because of it.
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// The name of the init container and of the volume.
inline constexpr std::string_view kGuestName = "hearth-guest";
// Where the volume is, in both containers.
inline constexpr std::string_view kGuestFolder = "/hearth/bin";

// Adds the guest to a new pod of the Sandbox. An empty image: nothing. Pods that say so
// (hearth.dev/guest: "off"), that want no surface, and those that a guest cannot be in are left as
// they are.
void add_guest(Json& pod, const Json& sandbox, std::string_view image);

}  // namespace hearth::controllers
