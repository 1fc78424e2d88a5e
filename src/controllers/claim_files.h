// Files that a claim brings along, as volumes of a pod that is not there yet. (A warm pod gets them
// through the guest: claim_outfit.h.)
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

// Annotations of the pod that hold the text of such files.
inline constexpr std::string_view kFileAnnotationPrefix = "hearth.dev/claim-file-";

// spec.files, mounted in the first container. `pod` is a podTemplate with a spec.
void add_files(const Json& claim, Json& pod);

// Throws Error(invalid) for a path that is not absolute or climbs.
void check_file_path(std::string_view path);

}  // namespace hearth::controllers
