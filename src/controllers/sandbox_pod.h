// The pod of a Sandbox: how it is made, and how its labels and annotations follow the template.
//
// Pure. Keys of our own prefixes are ours alone: a template cannot set them, whatever it says, and
// what an earlier controller let through is removed.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// What its annotation says, if that can be a pod's name, or the Sandbox's own name.
std::string_view pod_name_of(const Json& sandbox);
bool is_suspended(const Json& sandbox);

bool is_system_label(std::string_view key);
bool is_system_annotation(std::string_view key);
// Clients that we know; "unknown" for others: it becomes a label of metrics.
std::string_view normalised_creator(std::string_view created_by);

// Named like the Sandbox and controlled by it.
Json new_pod(const Json& sandbox);

// The merge patch that brings metadata of an existing pod to where the Sandbox wants it, without
// its owners; null when nothing differs.
Json pod_metadata_repair(const Json& pod, const Json& sandbox);

// Whether somebody waits for what such a patch says: pausing, egress.
bool is_urgent(const Json& repair);

// Adds the Sandbox as the pod's controller to a patch, which then holds for this very version.
void add_adoption(Json& patch, const Json& pod, const Json& sandbox);

// Whether an update of a pod can change anything about its Sandbox.
bool concerns_sandbox(const Json& before, const Json& now);

}  // namespace hearth::controllers
