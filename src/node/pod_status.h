// What is known of a pod, as a kubelet writes it into the pod's status. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "node/life.h"

namespace hearth::node {

// The whole status that the pod is to have. What the node says nothing about (qosClass, conditions
// of others) stays as it is in `pod`; transition times change only with what they are about.
Json make_status(const Json& pod, const Pod& known, Time now);

// What has to be sent to turn the pod's present status into `status`: a strategic patch of the
// subresource, or null when there is nothing to say.
Json status_patch(const Json& pod, const Json& status);

// What an earlier life of this agent had written down. Sandboxes are not asked: a container that
// ran is said to run.
Pod known_from_status(const Json& pod);

}  // namespace hearth::node
