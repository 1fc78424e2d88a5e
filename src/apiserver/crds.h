// CustomResourceDefinitions: which names they get, and what their status says about it.
#pragma once

#include <string_view>
#include <vector>

#include "model/json.h"

namespace hearth::apiserver {

using model::Json;

// What the status of `crd` should be, given the other CRDs with theirs: a name that another CRD of
// the group has accepted, or a built-in kind has, is not accepted here; a CRD whose names are all
// its own is established. `now` is RFC 3339 and marks conditions that changed. `problem` is why the
// catalogue cannot serve it, if it cannot (Catalogue::problems).
Json crd_status(const Json& crd, const std::vector<Json>& others, std::string_view now,
                std::string_view problem = {});

// Whether its condition says so.
bool is_established(const Json& crd);

// The version whose `storage` is true; empty if there is none.
std::string_view storage_version(const Json& crd);

// Whether the left version comes first in its group: v2, v1, v1beta1, v1alpha2, and then others.
bool is_preferred_version(std::string_view left, std::string_view right);

// What requests to a deprecated version are told when the CRD has no words of its own.
std::string deprecation_warning(const Json& crd, std::string_view version);

}  // namespace hearth::apiserver
