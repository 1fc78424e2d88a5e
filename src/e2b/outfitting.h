// What a sandbox's pod gets from us when it becomes somebody's, and again when another pod takes
// its place: the user's variables, the ids that programs inside look for, the token of its
// surfaces.
//
// The user's variables are in a Secret that the Sandbox owns; the token is made of its key. Members
// of pools and sandboxes that start cold are made with all but the user's variables
// (model::kDressAnnotation): then nobody has to reach into them before they are handed out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "e2b/body.h"
#include "e2b/core.h"
#include "pool/outfit.h"

namespace hearth::e2b {

// "ID-e2b"
std::string environment_secret_name(std::string_view id);
Json environment_secret(const Json& sandbox, const Texts& environment);
// Empty where the sandbox has none. Throws StatusError.
Texts read_environment(Core& core, const Json& sandbox);

// NAME=value: the ids that programs inside look for. Of every E2B sandbox.
std::vector<std::string> variables_of(std::string_view id, std::string_view template_id);
pool::Outfit outfit_of(const Core& core, const Json& sandbox, const Texts& environment);

// The pod of a sandbox that is meant to run, when it can be reached into. Throws Error(timeout).
Object wait_for_pod(Core& core, const Json& sandbox, Duration patience);
// The sandbox as soon as it is Ready. Throws Error(timeout) with what it lacks, Refusal(404) when
// it goes.
Object wait_until_ready(Core& core, const Json& sandbox, Duration patience);

// Whether the sandbox's pod is known to have all that it would get: then there is nothing to wait
// for and nothing to give.
bool find_dressed(Core& core, const Json& sandbox, const Texts& environment);
// Gives the pod its outfit and its rules of egress, unless this very container has it. Throws
// Error.
void outfit_pod(Core& core, const Json& sandbox, const Json& pod, const Texts& environment);
// The id of the pod's first container; empty while there is none.
std::string_view container_of(const Json& pod);
// Of the sandbox's own pod, as the cache has it; empty where there is none.
std::string container_now(const Core& core, const Json& sandbox);
// Whether that is another one than the sandbox had: whatever was in it is gone.
bool has_lost_its_state(const Core& core, const Json& sandbox);

}  // namespace hearth::e2b
